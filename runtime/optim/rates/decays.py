"""Schedules along a curve: exponential, polynomial, linear."""

from dataclasses import dataclass

from ....tape.record.kinds.values import NOT_NEGATIVE
from ..kinds import COUNT, FRACTION
from .formulas import exponential, linear, polynomial_decay
from .schedules import Schedule


@dataclass(frozen=True)
class Exponential(Schedule, formula=exponential, kinds={"lr": NOT_NEGATIVE, "factor": FRACTION}):
    """The rate times a factor after every step: ``lr * factor ** count``.

    Source: torch.optim.lr_scheduler.ExponentialLR.

    Args:
        lr: the first rate, at least 0.
        factor: in [0, 1] (``gamma`` in PyTorch).

    >>> from dgrr.runtime.optim import Exponential
    >>> schedule = Exponential(1.0, factor=0.5)
    >>> [schedule(count) for count in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """

    lr: float
    factor: float


@dataclass(frozen=True)
class Polynomial(
    Schedule,
    formula=polynomial_decay,
    kinds={"lr": NOT_NEGATIVE, "steps": COUNT, "power": NOT_NEGATIVE, "final": NOT_NEGATIVE},
):
    """From ``lr`` to ``final`` along a power of the share that is left::

        u = min(count, steps) / steps
        final + (lr - final) * (1 - u) ** power

    Source: torch.optim.lr_scheduler.PolynomialLR; optax.polynomial_schedule.

    Args:
        lr: the first rate, at least 0.
        steps: the count at which ``final`` is reached, at least 1 (``total_iters`` in PyTorch).
        power: at least 0.
        final: the last rate, at least 0.

    >>> from dgrr.runtime.optim import Polynomial
    >>> schedule = Polynomial(1.0, steps=4, power=2.0)
    >>> [schedule(count) for count in (0, 2, 4, 5)]
    [1.0, 0.25, 0.0, 0.0]
    """

    lr: float
    steps: int
    power: float = 1.0
    final: float = 0.0


@dataclass(frozen=True)
class Linear(Schedule, formula=linear, kinds={"lr": NOT_NEGATIVE, "steps": COUNT, "final": NOT_NEGATIVE}):
    """From ``lr`` to ``final`` along a line, up or down::

        u = min(count, steps) / steps
        lr * (1 - u) + final * u

    Source: torch.optim.lr_scheduler.LinearLR; optax.linear_schedule.

    Args:
        lr: the first rate, at least 0.
        steps: the count at which ``final`` is reached, at least 1.
        final: the last rate, at least 0.

    >>> from dgrr.runtime.optim import Linear
    >>> schedule = Linear(1.0, steps=4, final=2.0)
    >>> [schedule(count) for count in (0, 1, 4, 5)]
    [1.0, 1.25, 2.0, 2.0]
    """

    lr: float
    steps: int
    final: float = 0.0
