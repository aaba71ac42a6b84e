"""Schedules along a curve: exponential, polynomial, linear."""

from dataclasses import dataclass
from typing import ClassVar

from ..scalars import fraction, number, whole
from .formulas import exponential, linear, polynomial_decay
from .schedules import Checks, Schedule


@dataclass(frozen=True)
class Exponential(Schedule, formula=exponential):
    """The rate times a factor after every step: ``lr * factor ** count``.

    Source: torch.optim.lr_scheduler.ExponentialLR.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the first rate, at least 0.
        factor: in [0, 1] (``gamma`` in PyTorch).

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import Exponential
    >>> schedule = Exponential(1.0, factor=0.5)
    >>> [schedule(count) for count in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """

    lr: float
    factor: float

    checks: ClassVar[Checks] = {"lr": number, "factor": fraction}


@dataclass(frozen=True)
class Polynomial(Schedule, formula=polynomial_decay):
    """From ``lr`` to ``final`` along a power of the share that is left::

        u = min(count, steps) / steps
        final + (lr - final) * (1 - u) ** power

    Source: torch.optim.lr_scheduler.PolynomialLR; optax.polynomial_schedule.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the first rate, at least 0.
        steps: the count at which ``final`` is reached, at least 1 (``total_iters`` in PyTorch).
        power: at least 0.
        final: the last rate, at least 0.

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import Polynomial
    >>> schedule = Polynomial(1.0, steps=4, power=2.0)
    >>> [schedule(count) for count in (0, 2, 4, 5)]
    [1.0, 0.25, 0.0, 0.0]
    """

    lr: float
    steps: int
    power: float = 1.0
    final: float = 0.0

    checks: ClassVar[Checks] = {"lr": number, "steps": whole, "power": number, "final": number}


@dataclass(frozen=True)
class Linear(Schedule, formula=linear):
    """From ``lr`` to ``final`` along a line, up or down::

        u = min(count, steps) / steps
        lr * (1 - u) + final * u

    Source: torch.optim.lr_scheduler.LinearLR; optax.linear_schedule.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the first rate, at least 0.
        steps: the count at which ``final`` is reached, at least 1.
        final: the last rate, at least 0.

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import Linear
    >>> schedule = Linear(1.0, steps=4, final=2.0)
    >>> [schedule(count) for count in (0, 1, 4, 5)]
    [1.0, 1.25, 2.0, 2.0]
    """

    lr: float
    steps: int
    final: float = 0.0

    checks: ClassVar[Checks] = {"lr": number, "steps": whole, "final": number}
