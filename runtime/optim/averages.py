"""Running averages of parameters, as state of a run: what `Trainer(ema=…)` keeps beside the rules."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.completed_step import EMA, RuleGroup
from ...tape.errors import DomainError
from .ops_law import OpsLaw
from .scalars import number

HYPERPARAMETER = "decay"
"""What traces call the share of the old average."""


class Averages:
    """The averages of named parameters, as entries ``ema/NAME`` of the state.

    After every update of the parameters ``average = decay * average + (1 - decay) * parameter``, with the factors
    rounded once to its dtype; it begins as the parameter.

    Source: Polyak and Juditsky (1992); torch.optim.swa_utils.get_ema_multi_avg_fn.
    """

    def __init__(self, decay: float, names: Sequence[str]) -> None:
        self.decay, self.names = decay, tuple(names)

    @property
    def law(self) -> OpsLaw:
        """The new average from the old one and the parameter, in the places of a parameter and its gradient."""

        def update(average: Any, parameter: Any) -> Any:
            return self.decay * average + (1.0 - self.decay) * parameter

        return OpsLaw("ema", update, (), (), counts=False)

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state before the first step."""
        return {ema_key(name): params[name].copy() for name in self.names}

    def step(self, params: Arrays, state: Arrays) -> None:
        """The averages after an update of the parameters, in place."""
        law, unread = self.law, np.zeros(1)
        for name in self.names:
            average = state[ema_key(name)]
            (average[...],) = law.computed(average, params[name], (), unread, unread)

    @property
    def recorded(self) -> RuleGroup:
        """The averages as traces record them: a group of state without params."""
        return RuleGroup(EMA, (HYPERPARAMETER,), tuple([ema_key(name) for name in self.names]))


def ema_key(name: str) -> str:
    """The entry of the state that is the average of a parameter."""
    return f"ema/{name}"


def require_decay(decay: object) -> float | None:
    """A share in [0, 1), or None. Raises DomainError for anything else."""
    return None if decay is None else number("ema", decay, below=1.0)


def averaged(params: Arrays, state: Arrays) -> dict[str, Array]:
    """The parameters with their averages in the place of those that have one: the arrays themselves.

    Raises DomainError for a run without averages.
    """
    found = {name: state.get(ema_key(name), array) for name, array in params.items()}
    if all(found[name] is params[name] for name in params):
        raise DomainError("averaged: expected a run that keeps averages, got one without; make it with ema=0.999")
    return found
