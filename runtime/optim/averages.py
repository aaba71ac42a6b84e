"""Running averages of parameters, as state of a run: what `Trainer(ema=…)` keeps beside the rules."""

from collections.abc import Sequence
from numbers import Real

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.runs.completed_step import EMA
from ...base.runs.run import RuleGroup
from ...tape.errors import DomainError
from ...tape.numerics.engine.launch import launch
from .arrays import check_in_place, check_like, contiguous, prepared_words
from .kinds import SHARE
from .laws.averages import ema
from .rules.point_rule import primitive
from .state_ops import STATE_OPS, WORK

KERNEL = ema.law.kernel
"""What makes a new average, in place, of it and the parameter."""

STATE_OPS[KERNEL.name] = primitive(ema)

STATE = "ema: state {!r}"

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
        self.hyper = np.array([decay])

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state before the first step."""
        return {ema_key(name): params[name].copy() for name in self.names}

    def step(self, params: Arrays, state: Arrays) -> None:
        """The averages after an update of the parameters, in place."""
        for name in self.names:
            parameter, key = params[name], ema_key(name)
            average = check_like(state[key], parameter.shape, parameter.dtype, STATE, key)
            arrays = (check_in_place(average, STATE, key), contiguous(parameter), self.hyper)
            launch(KERNEL, average.dtype, prepared_words(average.size), arrays, WORK * average.size)

    @property
    def recorded(self) -> RuleGroup:
        """The averages as traces record them: a group of state without params."""
        return RuleGroup(EMA, (HYPERPARAMETER,), tuple([ema_key(name) for name in self.names]))


def ema_key(name: str) -> str:
    """The entry of the state that is the average of a parameter."""
    return f"ema/{name}"


def require_decay(decay: object) -> float | None:
    """A share in [0, 1), or None. Raises DomainError for anything else."""
    if decay is None:
        return None
    if isinstance(decay, Real) and SHARE.fits(decay):
        return float(decay)
    raise DomainError(f"ema: expected {SHARE.expected}, got {decay!r}")


def averaged(params: Arrays, state: Arrays) -> dict[str, Array]:
    """The parameters, each replaced by its average if it has one: the arrays themselves.

    Raises DomainError for a run without averages.
    """
    found = {name: state.get(ema_key(name), array) for name, array in params.items()}
    if all(found[name] is params[name] for name in params):
        raise DomainError("averaged: expected a run that keeps averages, got one without; make it with ema=0.999")
    return found
