"""Steps of a recorded run trained again as captured steps, each held against all that was recorded of it at once.

What does not agree, or cannot be captured, is left to those who compute op by op and say what differs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, methodcaller
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...base.runs.completed_step import CompletedStep, StepNumbers
from ...runtime.ir.step_tape import Choose, Chosen
from ...runtime.optim.groups import Groups
from ...runtime.step.batch import map_batch
from ...runtime.step.completed import completed
from ...runtime.step.training_step import SeveralSteps
from ...runtime.training.step_runner import StepOptions, StepRunner
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.format.step import STEP
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.write.fronts import FrontRows, StepFronts
from ..v2.write.tensors import RecordedTensors
from .execution import LossFn
from .recorded_recipe import CannotPrepareError, RulesOfSteps, recorded_recipe
from .replay_state import ReplayState, Rules, by_name

STEPS, BYTES = 64, 1 << 26
"""How many steps, and bytes of their batches, are kept to be done again op by op."""

T = TypeVar("T")

_ARRAYS, _COPY, _NBYTES = {np.ndarray}, methodcaller("copy"), attrgetter("nbytes")

WAIT = 64
"""After launches that did not come about, at most so many steps are done alone before another is tried."""


class Done(NamedTuple):
    """A step that was run, and its micro-batches."""

    view: StepView
    batch: tuple[Batch, ...]
    nbytes: int
    """Of its micro-batches."""

    @classmethod
    def own(cls, view: StepView, batch: tuple[Batch, ...]) -> "Done":
        """With copies of its micro-batches, which nobody else writes to."""
        return cls(view, *_own(batch))


class Launched(NamedTuple):
    """So many steps were done in one launch."""

    steps: int
    agree: bool
    """Whether everything that is recorded of all of them, and of the step that ended it, is what was computed."""


class _Prepared(NamedTuple):
    """What trains by some rules, and what makes of a step all that is recorded of it."""

    groups: Groups
    runner: StepRunner
    fronts: StepFronts


class _LaunchRecorder:
    """Makes the fronts of the steps of a launch, as the trace has them, from one step on."""

    def __init__(self, fronts: StepFronts, first: StepView) -> None:
        self._fronts, self._first, self._hyper, self._ahead = fronts, first.step, first.hyper, 0
        self.made = list[bytes]()
        """Behind the launch, the fronts of its steps."""

    def room(self, first: int) -> int:
        """See `LaunchRecorder`; no more are handed over."""
        return STEPS

    def rows(
        self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], numbers: StepNumbers
    ) -> FrontRows | None:
        """See `LaunchRecorder`."""
        self._ahead = self._first - first.step
        first.step, first.hyper = self._first, self._hyper
        return self._fronts.rows(first, [self._hyper] * len(hyper), numbers.scale)

    def recorded(self, last: CompletedStep, rows: FrontRows) -> None:
        """See `LaunchRecorder`."""
        self.made = rows.made.fronts
        last.step, last.hyper = last.step + self._ahead, self._hyper
        if self._first + len(self.made) == last.step:
            self.made.append(self._fronts.make(b"", last).front)


class CapturedSteps:
    """Runs the steps of a trace in turn.

    Args:
        state: before the first of them; from then on it holds the arrays that the steps train.
        rules: classes that users wrote.
        every: `back` goes to a multiple of so many steps.
    """

    def __init__(self, trace: TraceReader, loss_fn: LossFn, state: ReplayState, rules: Rules, every: int = 1) -> None:
        self._trace, self._loss_fn, self._state, self._every = trace, loss_fn, state, every
        self._rules = RulesOfSteps(trace, by_name(rules))
        self._made: _Prepared | None = None
        self._before: dict[str, Array] = {}
        self._kept, self._kept_bytes = list[Done](), 0
        declared = STEP.front(trace.layout)
        self._hyper_at, self._content_at, self._waits = declared.places["hyper"], declared.at[STEP.chained], 0
        self._wait = 1
        self.chosen: Chosen = []
        """What was asked for of the last step."""

    @property
    def grads(self) -> dict[str, Array]:
        """The gradients of the last step as the optimizer consumed them: views that are valid until the next one."""
        return {} if self._made is None else self._made.runner.step.consumed

    def agrees(self, view: StepView, batch: tuple[Batch, ...], choose: Choose | None = None) -> bool:
        """Do one step; whether everything that is recorded of it is what was computed, to the bit.

        What is chosen among its values is in `chosen` then.

        False for whatever goes wrong but Ctrl-C: then `back` is to be called.
        """
        self._begin_keeping(view)
        self._kept.append(Done.own(view, batch))
        self._kept_bytes += self._kept[-1].nbytes
        try:
            return self._run(view, batch, choose) == view.content
        except KeyboardInterrupt:
            raise
        except BaseException:  # a loss function may raise anything; done again op by op, it is said what
            return False

    def next(self, stretch: Sequence[Done]) -> Launched:
        """Do the first of some steps, many in one launch where they can be. As for `agrees`, `back` may be called."""
        return self.several(stretch) or Launched(1, agree=self.agrees(stretch[0].view, stretch[0].batch))

    def several(self, stretch: Sequence[Done]) -> Launched | None:
        """Do the first of some steps in one launch, as many as can be. None, and nothing done, where one is done alone.

        Nobody else writes to their batches.
        """
        first, made = stretch[0].view, self._made
        alike = _alike(stretch[: min(STEPS, self._trace.layout.alike(first.step))], self._hyper_at)
        if len(alike) < 2:
            return None
        if made is None or self._waits > 0 or not self._has_rules(made, first):
            self._waits -= 1
            return None
        self._begin_keeping(first)
        recorder = _LaunchRecorder(made.fronts, first)
        done = self._launched(made, alike, recorder)
        if done is None:
            self._waits, self._wait = self._wait - 1, min(WAIT, 2 * self._wait)
            return None
        self._wait = 1
        alike = alike[: len(done.losses) + (done.error is not None)]
        self._kept += alike
        self._kept_bytes += sum([each.nbytes for each in alike])
        content = slice(self._content_at, None)
        agree = [front[content] for front in recorder.made] == [each.view.front[content] for each in alike]
        return Launched(len(alike), agree=agree)

    def _launched(self, made: _Prepared, alike: Sequence[Done], recorder: _LaunchRecorder) -> SeveralSteps | None:
        try:
            return made.runner.several([_given(each.batch) for each in alike], self._state.count, recorder)
        except KeyboardInterrupt:
            raise
        except BaseException:  # as of one step
            return SeveralSteps(0, [], [], [], CannotPrepareError())

    def _has_rules(self, made: _Prepared, view: StepView) -> bool:
        """Whether the rules of a step are those that were prepared."""
        try:
            return self._rules.of(view) is made.groups
        except DgrrError:
            return False

    def back(self) -> list[Done]:
        """Go back to the state before the steps that were kept, and give these."""
        kept = self._kept
        self._state.put(self._before)
        self.forget()
        return kept

    def forget(self) -> None:
        """Keep nothing of the steps so far: the state is another one than they have made."""
        self._before, self._kept, self._kept_bytes = {}, [], 0

    def _begin_keeping(self, view: StepView) -> None:
        """Have what is before a step be gone back to, if nothing is kept, or enough."""
        full = len(self._kept) >= STEPS or self._kept_bytes > BYTES
        if not self._before or (full and view.step % self._every == 0):
            self.forget()
            self._before = {name: array.copy() for name, array in self._state.values.items()}

    def _run(self, view: StepView, batch: tuple[Batch, ...], choose: Choose | None) -> bytes:
        """What is to be recorded of the next step."""
        count = self._state.count
        groups = self._rules.of(view)
        if self._made is None or self._made.groups is not groups:
            self._made = self._make(view, groups)
        given = _given(batch)
        if choose is not None:
            found = self._made.runner.chosen(given, choose)
            self.chosen = [(one, None if array is None else array.copy()) for one, array in found]
        self._made.runner(given)
        done = completed(self._made.runner.step, count, given)
        done.step, done.hyper = view.step, view.hyper
        return STEP.front(self._trace.layout).chained(self._made.fronts.make(b"", done).front)

    def _make(self, view: StepView, groups: Groups) -> _Prepared:
        trace, of_role = self._trace, self._state.of_role
        params, state, buffers = map(of_role, (TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER))
        recipe, seed = recorded_recipe(trace, view, groups, "record"), trace.header.seed
        runner = StepRunner(self._loss_fn, params, recipe, StepOptions(), model_state=buffers, seed=seed)
        runner.step.load_state_dict({"params": params, "state": state, "model_state": buffers})
        for part in runner.step.arrays.values():
            self._state.hold(part)
        tensors = RecordedTensors(trace.schema, trace.header.algorithm)
        fronts = StepFronts(trace.layout, trace.header.algorithm, tensors, view.clip_value, stops=False)
        return _Prepared(groups, runner, fronts)


def _alike(stretch: Sequence[Done], hyper: slice) -> list[Done]:
    """The first steps that have the rates, and as many micro-batches, as the first one."""
    first, micro_batches = stretch[0].view.front[hyper], len(stretch[0].batch)
    others = (i for i, o in enumerate(stretch) if o.view.front[hyper] != first or len(o.batch) != micro_batches)
    return list(stretch[: next(others, None)])


def together(items: Iterable[T], is_enough: Callable[[list[T]], bool]) -> Iterator[list[T]]:
    """Items, many at a time. An error that ends them early is raised behind those before it."""
    found = list[T]()
    try:
        for item in items:
            found.append(item)
            if is_enough(found):
                yield found
                found = []
    except Exception:
        yield found
        raise
    yield found


def are_many(found: list[Done]) -> bool:
    """Whether steps are as many, or their batches as large, as are to be kept to be done again."""
    return len(found) == STEPS or found[-1].nbytes * len(found) > BYTES


def _own(batch: tuple[Batch, ...]) -> tuple[tuple[Batch, ...], int]:
    """Micro-batches that whoever gave them does not write to, and their bytes."""
    if all(micro.__class__ is tuple and set(map(type, micro)) == _ARRAYS for micro in batch):  # as nearly all are
        plain = tuple([tuple(map(_COPY, micro)) for micro in batch])
        return plain, sum([sum(map(_NBYTES, micro)) for micro in plain])
    copies = list[Array]()

    def copied(_: str, array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        copies.append(cast(Array, array).copy())
        return copies[-1]

    found = tuple([map_batch(copied, micro) for micro in batch])
    return found, sum([copy.nbytes for copy in copies])


def _given(batch: tuple[Batch, ...]) -> Any:
    """Micro-batches as a training step takes them."""
    return batch[0] if len(batch) == 1 else batch
