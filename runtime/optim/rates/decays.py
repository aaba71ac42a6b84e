"""Schedules along a curve, each with its formula."""

from dataclasses import dataclass

from ....tape.numerics.simd.operations import select
from ....tape.record.kinds.values import NOT_NEGATIVE
from ..kinds import COUNT, FRACTION, FROM_1, SHARE
from ..laws.formulas import whole_power
from .formulas import Real, anneal, done, real_power, whole_times
from .rated import rate
from .schedules import Schedule


@rate
def unchanged(count: Real, lr: Real) -> Real:
    """The rate."""
    return lr


@dataclass(frozen=True)
class Constant(Schedule, formula=unchanged, kinds={"lr": NOT_NEGATIVE}):
    """The same rate at every count, for example under a `WarmUp`.

    Source: optax.constant_schedule.

    Args:
        lr: the rate.

    >>> from dgrr.runtime.optim import Constant
    >>> Constant(0.5)(1000)
    0.5
    """

    lr: float


@rate
def step_decay(count: Real, lr: Real, every: Real, factor: Real) -> Real:
    """The rate times a factor after every so many steps."""
    return lr * whole_power(factor, whole_times(count, every))


@dataclass(frozen=True)
class StepDecay(Schedule, formula=step_decay, kinds={"lr": NOT_NEGATIVE, "every": COUNT, "factor": FRACTION}):
    """The rate times a factor after every so many steps::

        lr * factor ** (count // every)

    Source: torch.optim.lr_scheduler.StepLR.

    Args:
        every: steps between two decays (``step_size`` in PyTorch).
        factor: what the rate is multiplied by (``gamma`` in PyTorch).

    >>> from dgrr.runtime.optim import StepDecay
    >>> schedule = StepDecay(1.0, every=10, factor=0.5)
    >>> [schedule(count) for count in (0, 9, 10, 20)]
    [1.0, 1.0, 0.5, 0.25]
    """

    lr: float
    every: int
    factor: float


@rate
def exponential(count: Real, lr: Real, factor: Real) -> Real:
    """The rate times a factor after every step."""
    return lr * whole_power(factor, whole_times(count, 1.0))


@dataclass(frozen=True)
class Exponential(Schedule, formula=exponential, kinds={"lr": NOT_NEGATIVE, "factor": FRACTION}):
    """The rate times a factor after every step: ``lr * factor ** count``.

    Source: torch.optim.lr_scheduler.ExponentialLR.

    Args:
        factor: in [0, 1] (``gamma`` in PyTorch).

    >>> from dgrr.runtime.optim import Exponential
    >>> schedule = Exponential(1.0, factor=0.5)
    >>> [schedule(count) for count in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """

    lr: float
    factor: float


@rate
def polynomial_decay(count: Real, lr: Real, steps: Real, exponent: Real, final: Real) -> Real:
    """Along a power of the share that is left."""
    return final + (lr - final) * real_power(1.0 - done(count, steps), exponent)


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
        steps: the count at which ``final`` is reached (``total_iters`` in PyTorch).
        power: at least 0.
        final: the last rate.

    >>> from dgrr.runtime.optim import Polynomial
    >>> schedule = Polynomial(1.0, steps=4, power=2.0)
    >>> [schedule(count) for count in (0, 2, 4, 5)]
    [1.0, 0.25, 0.0, 0.0]
    """

    lr: float
    steps: int
    power: float = 1.0
    final: float = 0.0


@rate
def linear(count: Real, lr: Real, steps: Real, final: Real) -> Real:
    """Along a line."""
    u = done(count, steps)
    return lr * (1.0 - u) + final * u


@dataclass(frozen=True)
class Linear(Schedule, formula=linear, kinds={"lr": NOT_NEGATIVE, "steps": COUNT, "final": NOT_NEGATIVE}):
    """From ``lr`` to ``final`` along a line, up or down::

        u = min(count, steps) / steps
        lr * (1 - u) + final * u

    Source: torch.optim.lr_scheduler.LinearLR; optax.linear_schedule.

    Args:
        steps: the count at which ``final`` is reached.
        final: the last rate.

    >>> from dgrr.runtime.optim import Linear
    >>> schedule = Linear(1.0, steps=4, final=2.0)
    >>> [schedule(count) for count in (0, 1, 4, 5)]
    [1.0, 1.25, 2.0, 2.0]
    """

    lr: float
    steps: int
    final: float = 0.0


@rate
def cosine(count: Real, lr: Real, steps: Real, final: Real) -> Real:
    """Along half a cosine."""
    return anneal(lr, final, done(count, steps))


@dataclass(frozen=True)
class Cosine(Schedule, formula=cosine, kinds={"lr": NOT_NEGATIVE, "steps": COUNT, "final": NOT_NEGATIVE}):
    """From ``lr`` to ``final`` along half a cosine::

        u = min(count, steps) / steps
        w = 0.5 * (1 + cos(pi * u))
        lr * w + final * (1 - w)

    Count 0 gives exactly ``lr``; from ``steps`` on the rate stays exactly ``final`` (PyTorch's rises again; as
    here, optax.cosine_decay_schedule's stays).

    Source: Loshchilov and Hutter (2017), arXiv:1608.03983; torch.optim.lr_scheduler.CosineAnnealingLR.

    Args:
        steps: the count at which ``final`` is reached (``T_max`` in PyTorch).
        final: the last rate (``eta_min`` in PyTorch).

    >>> from dgrr.runtime.optim import Cosine
    >>> schedule = Cosine(1.0, steps=10)
    >>> [schedule(count) for count in (0, 5, 10, 11)]
    [1.0, 0.5, 0.0, 0.0]
    """

    lr: float
    steps: int
    final: float = 0.0


@rate
def one_cycle(count: Real, max_lr: Real, steps: Real, warmup_share: Real, div: Real, final_div: Real) -> Real:
    """From the first rate up to the highest at the peak, which may lie between two counts, then down to the final."""
    first, peak, last = max_lr / div, warmup_share * steps - 1.0, steps - 1.0
    t = select(count < last, count, last)
    up, down = anneal(first, max_lr, t / peak), anneal(max_lr, first / final_div, (t - peak) / (last - peak))
    return select(t < peak, up, down)


@dataclass(frozen=True)
class OneCycle(
    Schedule,
    formula=one_cycle,
    kinds={
        "max_lr": NOT_NEGATIVE,
        "steps": COUNT,
        "warmup_share": SHARE,
        "div": FROM_1,
        "final_div": FROM_1,
    },
):
    """Up to ``max_lr`` and down to almost nothing, both along half a cosine::

        first = max_lr / div;  final = first / final_div
        peak  = warmup_share * steps - 1;  last = steps - 1
        t     = min(count, last)
        t < peak:   from first to max_lr at u = t / peak
        otherwise:  from max_lr to final at u = (t - peak) / (last - peak)

    where "from a to b at u" is ``a * w + b * (1 - w)`` with ``w = 0.5 * (1 + cos(pi * u))``. The peak may lie
    between two counts. From count ``steps - 1`` on the rate stays ``final``, where PyTorch raises an error.

    Source: Smith and Topin (2018), arXiv:1708.07120; torch.optim.lr_scheduler.OneCycleLR with cosines.

    Args:
        max_lr: the highest rate.
        steps: steps of the cycle (``total_steps`` in PyTorch).
        warmup_share: the share of the cycle that rises (``pct_start`` in PyTorch).
        div: ``max_lr`` over the first rate (``div_factor`` in PyTorch).
        final_div: the first rate over the last (``final_div_factor`` in PyTorch).

    >>> from dgrr.runtime.optim import OneCycle
    >>> schedule = OneCycle(1.0, steps=10, div=4, final_div=2)
    >>> [schedule(count) for count in (0, 1, 2, 9, 10)]
    [0.25, 0.625, 1.0, 0.125, 0.125]
    """

    max_lr: float
    steps: int
    warmup_share: float = 0.3
    div: float = 25.0
    final_div: float = 1e4
