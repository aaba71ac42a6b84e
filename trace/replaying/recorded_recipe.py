"""How the gradients of a recorded step became its update, as training steps take it."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from glob import escape
from typing import Any

from ...base.completed_step import EMA, FROZEN, of_group
from ...base.run import OnNonfinite
from ...runtime.optim.averages import HYPERPARAMETER as DECAY
from ...runtime.optim.groups import Groups
from ...runtime.step.recipe import Recipe
from ..v2.read.reader import StepView, Trace


@dataclass(frozen=True)
class RecordedRecipe(Recipe):
    """A recipe whose groups are those of a recorded step, which no patterns of names may tell."""

    _: KW_ONLY
    made: Groups

    def groups(self, names: Iterable[str]) -> Groups:
        """Those of the step."""
        return self.made


def recorded_recipe(trace: Trace, view: StepView, made: Groups, on_nonfinite: OnNonfinite = "stop") -> RecordedRecipe:
    """The recipe of a step whose rules are ``made``."""
    return RecordedRecipe(made.groups[0].rule, **settings_of(trace, view), on_nonfinite=on_nonfinite, made=made)


def settings_of(trace: Trace, view: StepView) -> dict[str, Any]:
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
