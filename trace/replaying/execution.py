"""The steps of a recorded run computed again, from the model and its batches."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice, tee
from typing import Any, TypeAlias

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...runtime.data import Epochs
from ...runtime.optim import clip_by_global_norm, clip_by_value
from ...runtime.step.batch import batch_arrays
from ...runtime.step.eager import averaged
from ...runtime.step.evaluate import Evaluation, evaluations
from ...runtime.step.loss_call import RunPoint
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.format.schema import CLIP_EVENT
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .replay_state import ReplayState

LossFn: TypeAlias = Callable[..., Any]
Batches: TypeAlias = Iterable[Batch]


_MOST_TOGETHER = 1 << 16
"""Micro-batches of a step that are gathered; a file may claim four thousand million."""


class CannotExecuteError(DgrrError):
    """A step cannot be computed again, for what the file says of it."""


@dataclass(frozen=True, slots=True)
class ComputedStep:
    """A step, computed up to its update: gradients before they are clipped by norm, buffers after it.

    `passes`: one for each micro-batch.
    """

    loss: Array
    grads: dict[str, Array]
    buffers: dict[str, Array]
    passes: list[Evaluation]

    def consumed(self, view: StepView) -> tuple[dict[str, Array], tuple[float, float] | None]:
        """The gradients as the rule consumes them, clipped by norm as the recorded step was; threshold and scale."""
        if view.clip is None:
            return self.grads, None
        clipped = clip_by_global_norm(self.grads, view.clip[0])
        return clipped.grads, (view.clip[0], clipped.scale)


class Execution:
    """A loss function and the batches of a run, from its beginning.

    As in training, so many batches in turn are one step as the first step says, and a rest of fewer at the end of
    an epoch is left out.
    """

    def __init__(self, trace: TraceReader, loss_fn: LossFn, batches: Batches) -> None:
        self._trace = trace
        self.loss_fn = loss_fn
        self._given = batches
        self.together = 1
        self._batches = epochs(batches, self.together)
        self._begun = self._at_beginning = False
        self._clip_event = None if trace.schema.clips_by_value else _clip_event(trace)
        self._params = [t.name for t in trace.schema.tensors if t.role is TensorRole.PARAM]

    def take(self, view: StepView) -> tuple[Batch, ...] | None:
        """The micro-batches of a step; of every step in turn, from the first. None if there are no more.

        Raises:
            CannotExecuteError: too many micro-batches.
        """
        if view.step == 0 and not self._at_beginning:
            self._begin(view)
        self._at_beginning = False
        return next(self._batches, None)

    def pass_over(self, steps: int) -> None:
        """Leave out the batches of so many steps from where the run stands, at first its beginning, or all there are.

        They are made and dropped: nothing says of a batch that it can be reached without those before it.

        Raises:
            CannotExecuteError: too many micro-batches.
        """
        if not self._begun:
            self._begin(self._trace[0])
        for _ in islice(self._batches, steps):
            self._at_beginning = False

    def ahead(self) -> Iterator[tuple[Batch, ...]]:
        """The micro-batches of the steps from the next one on, which are kept: each copy of it gives all of them."""
        self._batches, ahead = tee(self._batches)
        return ahead

    def _begin(self, first: StepView) -> None:
        """The batches from their beginning, as many together as the first step says."""
        self.together = first.micro_batches
        if self.together > _MOST_TOGETHER:
            text = f"{self.together} micro-batches in one step; at most {_MOST_TOGETHER} are executed again"
            raise CannotExecuteError(text)
        self._batches = epochs(self._given, self.together)
        self._begun = self._at_beginning = True

    def left_over(self, steps: int) -> int:
        """How many batches of an iteration are left behind so many steps; 0 where their number is not known."""
        try:
            whole = len(self._given) // self.together  # type: ignore[arg-type]
        except TypeError:
            return 0
        return -steps % whole * self.together if whole else 0

    def recorded(self, batch: tuple[Batch, ...]) -> Batch:
        """Micro-batches as a trace digests them."""
        return batch[0] if self.together == 1 else tuple(batch_arrays(batch))

    def compute(self, view: StepView, state: ReplayState, batch: tuple[Batch, ...]) -> ComputedStep:
        """Evaluate each micro-batch, average, and clip by value as the recorded step was.

        Raises:
            CannotExecuteError: the state has no count of steps; besides, what the loss function raises.
        """
        passes = self._passes(view, state, batch)
        loss, grads, updated = averaged(passes, self._params, view.order, len(passes))
        bound = self._clip_event if view.clip_value is None else view.clip_value
        if bound is not None:
            grads = clip_by_value(grads, bound)
        return ComputedStep(loss, grads, {**state.of_role(TensorRole.BUFFER), **updated}, passes)

    def _passes(self, view: StepView, state: ReplayState, batch: tuple[Batch, ...]) -> list[Evaluation]:
        """Each micro-batch evaluated, the model's state handed on as the step says."""
        params = state.of_role(TensorRole.PARAM)
        count = state.values.get("step")
        if count is None or count.shape != () or count.dtype.kind not in "iu":
            text = "the trace has no tensor 'step' of one integer, from which the model's random draws follow"
            raise CannotExecuteError(text)
        point = RunPoint(int(count), self._trace.header.seed, state.of_role(TensorRole.BUFFER))
        return list(evaluations(self.loss_fn, params, batch, point, self._trace.schema.frozen, view.order))


def _clip_event(trace: TraceReader) -> float | None:
    """The bound of clipping by value as traces held it before their schemas did."""
    for _, event in trace.events(before=1):
        if event.kind == CLIP_EVENT:
            try:
                limit = float(event.text)
            except ValueError:
                limit = -1.0
            if not limit >= 0:
                raise InvalidTraceError(Verdict.CORRUPT, f"the bound of clipping by value is {event.text!r}")
            return limit
    return None


def epochs(batches: Batches, n: int) -> Iterator[tuple[Batch, ...]]:
    """The batches from their first epoch on, ``n`` at a time, until an epoch gives no step."""
    for number in count():
        items = batches.epoch(number) if isinstance(batches, Epochs) else iter(batches)
        more = False
        while len(together := tuple(islice(items, n))) == n:
            more = True
            yield together
        if not more:
            return
