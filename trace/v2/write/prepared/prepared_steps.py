"""What prepares the steps of a run, kind by kind."""

from collections.abc import Callable
from operator import attrgetter
from typing import Generic, TypeVar

import numpy as np

from .....base.arrays import Array
from .....base.runs.completed_step import CompletedStep
from ...format.digest import batch_arrays, is_plain
from ...format.layout import FrameLayout
from ..scalar_names import ScalarNames
from ..tensors import RecordedTensors, is_loss
from .prepared_front import MOST, PreparedFront, StepKind

KINDS = 64
"""How many kinds of steps are kept prepared; with more, as batches of ever other shapes make them, all begin anew."""

P = TypeVar("P", bound=PreparedFront)

_KIND = attrgetter("dtype", "shape")
_F64 = np.dtype(np.float64)


class PreparedSteps(Generic[P]):
    """Steps that can be made in one call, by what ``make`` makes for their kind."""

    def __init__(
        self, names: ScalarNames, tensors: RecordedTensors, layout: FrameLayout, make: Callable[[StepKind], P | None]
    ) -> None:
        self._names, self._tensors, self._layout, self._make = names, tensors, layout, make
        self._known: dict[StepKind, P | None] = {}
        self.last: list[P | None] = [None, None]
        """What the last step was made by, of those whose state is not due and of those whose is."""

    def run(self, done: CompletedStep) -> tuple[P, tuple[Array, ...]] | None:
        """What has made a step, and the arrays that it is of.

        None, with nothing done, where the step is to be made of its parts: an array is not as it is written, of another
        dtype, shape or order, or with an infinity or NaN; or nothing is made for its kind.
        """
        due = self._layout.due(done.step)
        step = self.last[due]
        if step is not None and (arrays := step.run(done)) is not None:
            return step, arrays
        other = self._of_kind(_kind(done, due=due))
        if other is None or other is step or (arrays := other.run(done)) is None:
            return None
        self.last[due] = other
        return other, arrays

    def next(self, step: int) -> tuple[P | None, int]:
        """What made the last step like the one of this number, and how many in turn are of its kind, at most `MOST`.

        None where that is one alone.
        """
        room = min(MOST, self._layout.alike(step))
        return (self.last[self._layout.due(step)], room) if room > 1 else (None, 0)

    def _of_kind(self, kind: StepKind) -> P | None:
        """What makes the steps of a kind; None if that cannot be prepared."""
        if kind not in self._known:
            if len(self._known) == KINDS:
                self._known.clear()
            self._known[kind] = self._make(kind) if self._is_simple(kind) else None
        return self._known[kind]

    def _is_simple(self, kind: StepKind) -> bool:
        """Whether the numbers of a step are written as they lie in memory."""
        corrections = [dtype for dtype, _ in self._tensors.state_kinds(self._names.corrections)]
        native = all(dtype.isnative and is_plain(dtype) for dtype, _ in (kind.loss, *kind.batch))
        return native and self._tensors.is_plain and is_loss(*kind.loss) and all(dtype == _F64 for dtype in corrections)


def _kind(done: CompletedStep, *, due: bool) -> StepKind:
    names, batch = batch_arrays(done.batch)
    said = (tuple(done.grads), done.clip is not None, done.micro_batches, done.order, _KIND(np.asarray(done.loss)))
    return StepKind(due, *said, batch is done.batch, names, tuple(map(_KIND, batch)))
