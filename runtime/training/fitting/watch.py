"""What a trainer measures besides its history, for what is worth a look; cheap, since few steps are looked at."""

import numpy as np

from ....base.arrays import Array
from ....base.diagnosis import Looks, Remark, clipping, looked_at_from, short_batches
from ...step.training_step import TrainingStep
from ..history import History


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

    @property
    def room(self) -> int:
        """How many steps may be done before they are told: up to the next that is looked at, which comes alone."""
        count = len(self._rows)
        return max(1, looked_at_from(count) - count)

    def steps(self, step: TrainingStep, number: int, rows: int, n: int) -> None:
        """So many steps are done, each on a batch of so many rows; ``number`` is that of the first."""
        count = len(self._rows)
        self._rows += [rows] * n
        if not self._trained:
            return
        if looked_at_from(count) == count:
            self._looks.add(number, step.consumed)
            self._looks.add_update(self._before, self._trained)
        self._before = self._copied() if looked_at_from(count + n) == count + n else {}

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
