"""A recorded run trained again as captured steps, each held against all that was recorded of it at once.

What does not agree, or cannot be captured, is left to those who compute op by op and say what differs.
"""

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ...base.arrays import Array
from ...base.completed_step import of_group
from ...base.errors import DgrrError
from ...runtime.optim import Rule, Table
from ...runtime.optim.groups import Groups
from ...runtime.step.batch import batch_arrays, map_batch
from ...runtime.step.completed import completed
from ...runtime.training.step_runner import StepOptions, StepRunner
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.read.reader import StepView, Trace
from ..v2.write.fronts import StepFronts
from ..v2.write.tensors import RecordedTensors
from .execution import LossFn
from .recorded_recipe import recorded_recipe
from .replay_state import ReplayState, Rules, by_name, recorded_groups

STEPS, BYTES = 64, 1 << 26
"""How many steps, and bytes of their batches, are kept to be done again op by op."""

LONGEST = 1 << 20
"""The largest count of steps up to which rates are looked up."""


class CannotRunError(DgrrError):
    """Steps that no captured step does as they were recorded."""


class Done(NamedTuple):
    """A step that was run, and its micro-batches."""

    view: StepView
    batch: tuple[Batch, ...]


class Prepared(NamedTuple):
    """What trains, and what makes of a step all that is recorded of it."""

    runner: StepRunner
    fronts: StepFronts


class Rerun:
    """Runs the steps of a trace in turn.

    Args:
        state: before the first of them; from then on it holds the arrays that the steps train.
        rules: classes that users wrote.
    """

    def __init__(self, trace: Trace, loss_fn: LossFn, state: ReplayState, rules: Rules) -> None:
        self._trace, self._loss_fn, self._state, self._rules = trace, loss_fn, state, by_name(rules)
        self._made: Prepared | None = None
        self._hyper: tuple[float, ...] = ()
        self._rated = False
        self._before: dict[str, Array] = {}
        self._kept, self._kept_bytes = list[Done](), 0
        self._first = 0

    def agrees(self, view: StepView, batch: tuple[Batch, ...]) -> bool:
        """Do one step; whether everything that is recorded of it is what was computed, to the bit.

        False for whatever goes wrong but Ctrl-C: then `back` is to be called, and nothing else.
        """
        self._keep(view, batch)
        try:
            return self._run(view, batch) == view.content
        except KeyboardInterrupt:
            raise
        except BaseException:  # a loss function may raise anything; done again op by op, it is said what
            return False

    def back(self) -> list[Done]:
        """Go back to the state before the steps that were kept, and give these."""
        self._state.values.update(self._before)
        return self._kept

    def _keep(self, view: StepView, batch: tuple[Batch, ...]) -> None:
        if not self._before or len(self._kept) == STEPS or self._kept_bytes > BYTES:
            self._before = {name: array.copy() for name, array in self._state.values.items()}
            self._kept, self._kept_bytes = [], 0
        copied = tuple([map_batch(_copied, micro) for micro in batch])
        self._kept.append(Done(view, copied))
        self._kept_bytes += sum(array.nbytes for array in batch_arrays(copied) if isinstance(array, np.ndarray))

    def _run(self, view: StepView, batch: tuple[Batch, ...]) -> bytes:
        """What is to be recorded of the next step."""
        runner, fronts = self._prepared(view)
        given: Any = batch[0] if view.micro_batches == 1 else batch
        runner(given)
        done = completed(runner.step, self._first + view.step, given)
        done.step, done.hyper = view.step, view.hyper
        return fronts.make(b"", done).front[self._trace.layout.scalars_at :]

    def _prepared(self, view: StepView) -> Prepared:
        """What does a step: at first made for its hyperparameters, then once more for the rates of all steps.

        Raises CannotRunError for other hyperparameters that change.
        """
        if self._made is None:
            self._first, self._hyper = int(self._state.values["step"]), view.record.hyper
            self._made = self._make(view, recorded_groups(self._trace, view, self._rules))
        elif not self._rated and view.record.hyper != self._hyper:
            self._made, self._rated = self._make(view, self._with_rates(view)), True
        return self._made

    def _make(self, view: StepView, groups: Groups) -> Prepared:
        trace, of_role = self._trace, self._state.of_role
        params, state, buffers = map(of_role, (TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER))
        recipe, seed = recorded_recipe(trace, view, groups), trace.header.seed
        runner = StepRunner(self._loss_fn, params, recipe, StepOptions(), model_state=buffers, seed=seed)
        runner.step.load_state_dict({"params": params, "state": state, "model_state": buffers})
        for part in runner.step.arrays.values():
            self._state.values.update(part)
        tensors = RecordedTensors(trace.schema, trace.header.algorithm)
        return Prepared(runner, StepFronts(trace.layout, trace.header.algorithm, tensors, view.clip_value, stops=False))

    def _with_rates(self, view: StepView) -> Groups:
        """The rules, each with the rates of all steps, by their counts."""
        if self._first > LONGEST:
            raise CannotRunError
        columns = dict(zip(view.hyper, np.array([step.record.hyper for step in self._trace]).T, strict=True))
        groups = recorded_groups(self._trace, view, self._rules)
        rates = {of_group("lr", group.number): group for group in groups.groups}
        if any((column != column[0]).any() for name, column in columns.items() if name not in rates):
            raise CannotRunError
        tables = {name: Table([0.0] * self._first + columns[name].tolist()) for name in rates}
        found = [replace(group, rule=_at_rate(group.rule, tables[name])) for name, group in rates.items()]
        return Groups(found, groups.frozen, groups.averages)


def _at_rate(rule: Rule, rate: Table) -> Rule:
    return replace(cast(Any, rule), lr=rate)  # type: ignore[no-any-return]


def _copied(_: str, array: Any) -> Any:
    """An array that whoever gave it may write to."""
    return cast(Array, array).copy() if isinstance(array, np.ndarray) else array
