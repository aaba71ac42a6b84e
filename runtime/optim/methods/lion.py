"""Lion: steps along the sign of an average of gradients."""

from dataclasses import KW_ONLY, dataclass

from ....tape.numerics.simd.operations import Number, constant, select
from ..laws.formulas import mixed, shrunk, slope
from ..laws.pointwise import law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule


@law("lion@1", "m")
def lion(
    p: Number, g: Number, m: Number,
    lr: float, beta1: float, beta2: float, weight_decay: float, maximize: float,
) -> tuple[Number, ...]:  # fmt: skip
    """One step of Lion."""
    g = slope(p, g, maximize, 0.0)
    c, zero, one = mixed(m, g, beta1), constant(p, 0.0), constant(p, 1.0)
    sign = select(c > zero, one, zero) - select(c < zero, one, zero)
    return shrunk(p, lr, weight_decay) - constant(p, lr) * sign, mixed(m, g, beta2)


@dataclass(frozen=True)
class Lion(PointRule, law=lion):
    """Steps of one size along the sign of a mean of momentum and gradient, with decoupled weight decay.

    One step on a parameter ``p`` with gradient ``g``; ``m`` is its buffer::

        p = (1 - lr * weight_decay) * p - lr * sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g

    Source: Chen and others (2023), arXiv:2302.06675, algorithm 2; optax.lion.

    Args:
        betas: share of the momentum in the step, and decay of the momentum.
        weight_decay: how much of ``lr * p`` is taken away.

    >>> from dgrr.runtime.optim import Lion
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, Lion(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5, 1.5])
    """

    lr: float | Schedule = 1e-4
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0
    _: KW_ONLY
    maximize: bool = False
