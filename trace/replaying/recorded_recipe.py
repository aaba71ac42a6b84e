"""How the gradients of a recorded step became its update, as training steps take it."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from glob import escape
from typing import Any, cast

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...base.runs.completed_step import EMA, FROZEN, of_group
from ...base.runs.run import OnNonfinite
from ...runtime.optim import Rule
from ...runtime.optim.averages import HYPERPARAMETER as DECAY
from ...runtime.optim.groups import Groups, ParameterGroup
from ...runtime.optim.laws.known import HYPER
from ...runtime.optim.rates.told_rate import ToldRate
from ...runtime.step.recipe import Recipe
from ...tape.record.kinds.values import NOT_NEGATIVE
from ..v2.format.step import STEP
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from .replay_state import recorded_groups


class CannotPrepareError(DgrrError):
    """Steps that nothing prepared does as they were recorded."""


@dataclass(frozen=True)
class RecordedRecipe(Recipe):
    """A recipe whose groups are those of a recorded step, which no patterns of names may tell."""

    _: KW_ONLY
    made: Groups

    def groups(self, names: Iterable[str]) -> Groups:
        """Those of the step."""
        return self.made


def recorded_recipe(
    trace: TraceReader, view: StepView, made: Groups, on_nonfinite: OnNonfinite = "stop"
) -> RecordedRecipe:
    """The recipe of a step whose rules are ``made``."""
    return RecordedRecipe(made.groups[0].rule, **settings_of(trace, view), on_nonfinite=on_nonfinite, made=made)


def settings_of(trace: TraceReader, view: StepView) -> dict[str, Any]:
    """What a recipe says besides its rules, as a step was done."""
    groups = [group for group in trace.schema.rules if group.rule not in (EMA, FROZEN)]
    return {
        "accumulate": view.micro_batches,
        "clip_norm": None if view.clip is None else view.clip[0],
        "clip_value": view.clip_value,
        "frozen": [escape(name) for name in trace.schema.frozen],
        "ema": view.hyper.get(of_group(DECAY, len(groups))),
        "order": view.order,
    }


class RulesOfSteps:
    """The rules of a trace as what is prepared for many steps has them: with rates that are told, if these change.

    Args:
        rules: classes that users wrote, by name.
    """

    def __init__(self, trace: TraceReader, rules: Mapping[str, type[Rule]]) -> None:
        self._trace, self._rules = trace, rules
        self._at = STEP.front(trace.layout).places["hyper"]
        self._hyper = b""
        self._made: Groups | None = None
        self._told: dict[int, ToldRate] = {}
        self._rates: dict[int, int] = {}

    def of(self, view: StepView) -> Groups:
        """The rules of a step: the same object as long as nothing but what is told to them changes.

        Raises:
            CannotPrepareError: other hyperparameters than rates change.
            UnknownRuleError, DgrrError: as `recorded_groups`.
        """
        hyper = view.front[self._at]
        if self._made is None:
            self._made, self._hyper = recorded_groups(self._trace, view, self._rules), hyper
            places = self._trace.hyperparameters
            self._rates = {places.index(of_group("lr", group.number)): group.number for group in self._made.groups}
        elif hyper != self._hyper:
            self._made = self._with_rates(self._made, np.frombuffer(hyper), np.frombuffer(self._hyper))
            self._hyper = hyper
        return self._made

    def _with_rates(self, made: Groups, hyper: Array, before: Array) -> Groups:
        """The rules by other rates than before, which are told to them. Raises CannotPrepareError."""
        changed = np.flatnonzero(hyper.view(np.int64) != before.view(np.int64)).tolist()
        if not self._rates.keys() >= {*changed} or not all(map(NOT_NEGATIVE.fits, hyper[changed].tolist())):
            raise CannotPrepareError
        if not self._told:
            made = self._telling(made)
        for place in changed:
            self._told[place].vector[0] = hyper[place]
        return made

    def _telling(self, made: Groups) -> Groups:
        """The same rules, each with a place where its rate is told."""
        places = {number: place for place, number in self._rates.items()}
        found = list[ParameterGroup]()
        for group in made.groups:
            told = self._told[places[group.number]] = ToldRate()
            told.vector[:] = group.rule.hyper[:HYPER]
            found.append(replace(group, rule=replace(cast(Any, group.rule), lr=told)))
        return Groups(found, made.frozen, made.averages)
