"""The steps of a recorded run computed again, from the model and its batches."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import runtime
from ...arrays import Array, Arrays
from ...runtime.optim import clip_by_value
from ...runtime.step.batch import batch_arrays
from ...runtime.step.eager import averaged
from ...runtime.step.evaluate import Evaluation
from ...runtime.step.loss_call import RunPoint
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.format.schema import CLIP_EVENT
from ..v2.read.reader import StepView, Trace
from ..v2.verdict import Verdict
from .replay_state import ReplayState

LossFn: TypeAlias = Callable[..., Any]
Batches: TypeAlias = Iterable[Batch]


_MOST_TOGETHER = 1 << 16
"""Micro-batches of a step that are gathered; a file may claim four thousand million."""


class CannotExecuteError(Exception):
    """A step cannot be computed again, for what the file says of it."""


class Evaluated(NamedTuple):
    """A step up to its clipping by norm: one pass for each micro-batch, the means of loss and gradients."""

    passes: list[Evaluation]
    loss: Array
    grads: dict[str, Array]

    @property
    def buffers(self) -> dict[str, Array]:
        """The state of the model after the step."""
        return self.passes[-1].model_state


class Execution:
    """A loss function and the batches of a run, from its beginning.

    As in training, so many batches in turn are one step as the first step says, and a rest of fewer at the end of
    an epoch is left out.
    """

    def __init__(self, trace: Trace, loss_fn: LossFn, batches: Batches) -> None:
        self._trace = trace
        self._loss_fn = loss_fn
        self._given = batches
        self.together = 1
        self._batches = _epochs(batches, self.together)
        self._clip_event = None if trace.schema.clips_by_value else _clip_event(trace)
        self._params = [t.name for t in trace.schema.tensors if t.role is TensorRole.PARAM]

    def begin(self, view: StepView) -> None:
        """Get ready for a step; for every step in turn, from the first.

        Raises:
            CannotExecuteError: too many micro-batches.
        """
        if view.step == 0:
            self.together = view.micro_batches
            self._batches = _epochs(self._given, self.together)
        if self.together > _MOST_TOGETHER:
            text = f"{self.together} micro-batches in one step; at most {_MOST_TOGETHER} are executed again"
            raise CannotExecuteError(text)

    def take(self) -> tuple[Batch, ...] | None:
        """The micro-batches of the step. None if there are no more."""
        return next(self._batches, None)

    def recorded(self, batch: tuple[Batch, ...]) -> Batch:
        """Micro-batches as a trace digests them."""
        return batch[0] if self.together == 1 else tuple(batch_arrays(batch))

    def point(self, state: ReplayState) -> RunPoint:
        """Where in the run the step is, as the optimizer counts: random draws are keyed by it.

        Raises:
            CannotExecuteError: the state has no count of steps.
        """
        count = state.values.get("step")
        if count is None or count.shape != () or count.dtype.kind not in "iu":
            text = "the trace has no tensor 'step' of one integer, from which the model's random draws follow"
            raise CannotExecuteError(text)
        return RunPoint(int(count), self._trace.header.seed, state.of_role(TensorRole.BUFFER))

    def evaluate(self, view: StepView, params: Arrays, batch: tuple[Batch, ...], point: RunPoint) -> Evaluated:
        """Evaluate each micro-batch, the model's state handed on, average, and clip by value as was recorded."""
        passes = list[Evaluation]()
        for micro in batch:
            passes.append(runtime.evaluate(self._loss_fn, params, micro, point))
            point = point.after(passes[-1].model_state)
        loss, grads = averaged(passes, self._params)
        bound = self._clip_event if view.clip_value is None else view.clip_value
        return Evaluated(passes, np.asarray(loss), grads if bound is None else clip_by_value(grads, bound))


def _clip_event(trace: Trace) -> float | None:
    """The bound of clipping by value as traces held it before their schemas did."""
    for _, event in trace.events():
        if event.kind == CLIP_EVENT:
            try:
                limit = float(event.text)
            except ValueError:
                limit = -1.0
            if not limit >= 0:
                raise InvalidTraceError(Verdict.CORRUPT, f"the bound of clipping by value is {event.text!r}")
            return limit
    return None


def _epochs(batches: Batches, n: int) -> Iterator[tuple[Batch, ...]]:
    """The batches, ``n`` at a time, iterated again when they end, until an iteration gives no step."""
    more = True
    while more:
        more, items = False, iter(batches)
        while len(together := tuple(islice(items, n))) == n:
            more = True
            yield together
