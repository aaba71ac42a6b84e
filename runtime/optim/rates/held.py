"""A rate that is set between steps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....tape import DomainError
from ....tape.record.kinds.values import NOT_NEGATIVE
from .decays import unchanged
from .schedules import Schedule, Vector


@dataclass(frozen=True)
class HeldRate(Schedule, formula=unchanged, kinds={"lr": NOT_NEGATIVE}):
    """The same rate at every count, until another one is set between two steps.

    So it is no function of the count: `dgrr.runtime.ReduceLROnPlateau` sets it, by what was measured. Captured steps
    read it where it lies, and traces record the rate of each step as that of any schedule. It stands by itself or in
    `Joined`.

    Source: torch.optim.Optimizer.param_groups, whose ``lr`` is set in the same way.

    Args:
        lr: the first rate.

    >>> from dgrr.runtime.optim import SGD, HeldRate
    >>> rate = HeldRate(0.5)
    >>> optimizer = SGD(rate)
    >>> rate.set(0.25)
    >>> rate.now, optimizer.hyperparameters(step=7)["lr"]
    (0.25, 0.25)
    """

    lr: float

    @property
    def is_set(self) -> bool:
        """It is."""
        return True

    @cached_property
    def numbers(self) -> Vector:
        """The rate, which changes."""
        return np.array([self.lr])

    @property
    def now(self) -> float:
        """The rate of the next step."""
        return float(self.numbers[0])

    def set(self, rate: float) -> None:
        """Use another rate from the next step on. Raises DomainError for what is no rate."""
        if not NOT_NEGATIVE.fits(rate):
            raise DomainError(f"HeldRate.set: argument 'rate': expected {NOT_NEGATIVE.expected}, got {rate!r}")
        self.numbers[0] = rate
