"""What a trainer measures besides its history, for what is worth a look; cheap, since few steps are looked at."""

from collections.abc import Sized
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.diagnosis import Looks, Remark, clipping, is_looked_at, short_batches
from ..step.batch import batch_arrays
from ..step.training_step import TrainingStep
from .history import History


class Watch:
    """Looks at some steps of a fit; of steps with ranks or on a GPU, whose gradients are elsewhere, at losses alone."""

    def __init__(self, step: TrainingStep) -> None:
        own = step.gradients_are_here
        frozen = step.recipe.frozen_of(step.params)
        self._trained = {name: array for name, array in step.params.items() if name not in frozen} if own else {}
        self._matrices = {} if self._goes_on(step) else {n: a for n, a in self._trained.items() if a.ndim > 1}
        """Vectors, such as biases, may begin at 0; in a run that goes on rates may rightly have come to their end."""
        self._looks, self._rows = Looks(self._trained), list[int]()
        self._before = self._copied()

    def step(self, step: TrainingStep, number: int, batch: Any) -> None:
        """A step is done on a batch."""
        count = len(self._rows)
        self._rows.append(_length(batch))
        if not self._trained:
            return
        if is_looked_at(count):
            self._looks.add(number, step.consumed)
            self._looks.add_update(self._before, self._trained)
        self._before = self._copied() if is_looked_at(count + 1) else {}

    def findings(self, history: History, clip_norm: float | None) -> tuple[Remark, ...]:
        """What is worth a look in the fit."""
        losses, epochs, norms = history.measured()
        rows, found = np.array(self._rows[: len(losses)], np.int64), self._looks.findings()
        found += short_batches(losses, epochs, rows, history.first)
        if clip_norm is not None:
            found += clipping(np.where(norms > clip_norm, 0.0, 1.0), history.first)
        return tuple(found)

    def _copied(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self._matrices.items()}

    def _goes_on(self, step: TrainingStep) -> bool:
        return bool(self._trained) and step.point.step > 0


def _length(batch: Any) -> int:
    """The rows of a batch's first array; 0 of what has none."""
    first = next(batch_arrays(batch), None)
    try:
        return len(first) if isinstance(first, Sized) else 0
    except TypeError:  # an array of no dimension
        return 0
