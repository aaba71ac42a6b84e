"""Steps of a recorded run trained again as captured steps, each held against all that was recorded of it at once.

What does not agree, or cannot be captured, is left to those who compute op by op and say what differs.
"""

from typing import Any, NamedTuple, cast

import numpy as np

from ...base.arrays import Array
from ...runtime.ir.step_tape import Choose, Chosen
from ...runtime.optim.groups import Groups
from ...runtime.step.batch import map_batch
from ...runtime.step.completed import completed
from ...runtime.training.step_runner import StepOptions, StepRunner
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.format.step import STEP
from ..v2.read.reader import StepView, Trace
from ..v2.write.fronts import StepFronts
from ..v2.write.tensors import RecordedTensors
from .execution import LossFn
from .recorded_recipe import RulesOfSteps, recorded_recipe
from .replay_state import ReplayState, Rules, by_name

STEPS, BYTES = 64, 1 << 26
"""How many steps, and bytes of their batches, are kept to be done again op by op."""


class Done(NamedTuple):
    """A step that was run, and its micro-batches."""

    view: StepView
    batch: tuple[Batch, ...]


class _Prepared(NamedTuple):
    """What trains by some rules, and what makes of a step all that is recorded of it."""

    groups: Groups
    runner: StepRunner
    fronts: StepFronts


class CapturedSteps:
    """Runs the steps of a trace in turn.

    Args:
        state: before the first of them; from then on it holds the arrays that the steps train.
        rules: classes that users wrote.
        every: `back` goes to a multiple of so many steps.
    """

    def __init__(self, trace: Trace, loss_fn: LossFn, state: ReplayState, rules: Rules, every: int = 1) -> None:
        self._trace, self._loss_fn, self._state, self._every = trace, loss_fn, state, every
        self._rules = RulesOfSteps(trace, by_name(rules))
        self._made: _Prepared | None = None
        self._before: dict[str, Array] = {}
        self._kept, self._kept_bytes = list[Done](), 0
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
        self._keep(view, batch)
        try:
            return self._run(view, batch, choose) == view.content
        except KeyboardInterrupt:
            raise
        except BaseException:  # a loss function may raise anything; done again op by op, it is said what
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

    def _keep(self, view: StepView, batch: tuple[Batch, ...]) -> None:
        full = len(self._kept) >= STEPS or self._kept_bytes > BYTES
        if not self._before or (full and view.step % self._every == 0):
            self.forget()
            self._before = {name: array.copy() for name, array in self._state.values.items()}
        self._kept.append(Done(view, tuple([map_batch(self._copied, micro) for micro in batch])))

    def _copied(self, _: str, array: Any) -> Any:
        """An array that whoever gave it may write to."""
        if not isinstance(array, np.ndarray):
            return array
        kept = cast(Array, array)
        self._kept_bytes += kept.nbytes
        return kept.copy()

    def _run(self, view: StepView, batch: tuple[Batch, ...], choose: Choose | None) -> bytes:
        """What is to be recorded of the next step."""
        count = self._state.count
        groups = self._rules.of(view)
        if self._made is None or self._made.groups is not groups:
            self._made = self._make(view, groups)
        given: Any = batch[0] if view.micro_batches == 1 else batch
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
        recipe, seed = recorded_recipe(trace, view, groups), trace.header.seed
        runner = StepRunner(self._loss_fn, params, recipe, StepOptions(), model_state=buffers, seed=seed)
        runner.step.load_state_dict({"params": params, "state": state, "model_state": buffers})
        for part in runner.step.arrays.values():
            self._state.hold(part)
        tensors = RecordedTensors(trace.schema, trace.header.algorithm)
        fronts = StepFronts(trace.layout, trace.header.algorithm, tensors, view.clip_value, stops=False)
        return _Prepared(groups, runner, fronts)
