"""A rule and a schedule that nobody has: all that is written for one more of each, beside formula and docs."""

from dataclasses import dataclass

from dgrr.runtime.optim import SHARE, PointRule, Schedule, law, rate
from dgrr.runtime.optim.laws import mixed, slope
from dgrr.tape.record import Number, constant


@law("heavy_sign@1", "m")
def heavy_sign(
    p: Number, g: Number, m: Number, step: float, lr: float, beta: float, weight_decay: float
) -> tuple[Number, ...]:
    """A step along the mean, shorter each time."""
    m = mixed(m, slope(p, g, 0.0, weight_decay), beta)
    return p - constant(p, lr / step) * m, m


@dataclass(frozen=True)
class HeavySign(PointRule, law=heavy_sign, kinds={"beta": SHARE}):
    """A rule that nobody has."""

    lr: float | Schedule = 0.1
    beta: float = 0.9
    weight_decay: float = 0.0


@rate
def hyperbola(count: float, lr: float, half: float) -> float:
    """Half of the rate after so many steps, a third after twice as many."""
    return lr / (1.0 + count / half)


@dataclass(frozen=True)
class Hyperbola(Schedule, formula=hyperbola):
    """A schedule that nobody has."""

    lr: float
    half: int
