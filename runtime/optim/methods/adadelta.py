"""Adadelta: steps in the units of the parameter, from two running means."""

from dataclasses import KW_ONLY, dataclass

from ....tape.numerics.simd.operations import Number, constant
from ..kinds import SHARE
from ..laws.formulas import mixed, root, slope
from ..laws.pointwise import law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule


@law("adadelta@1", "square", "change")
def adadelta(
    p: Number, g: Number, square: Number, change: Number,
    lr: float, rho: float, eps: float, weight_decay: float, maximize: float,
) -> tuple[Number, ...]:  # fmt: skip
    """One step of Adadelta."""
    g = slope(p, g, maximize, weight_decay)
    square = mixed(square, g * g, rho)
    d = root(change + constant(p, eps)) / root(square + constant(p, eps)) * g
    return p - constant(p, lr) * d, square, mixed(change, d * d, rho)


@dataclass(frozen=True)
class Adadelta(PointRule, law=adadelta, kinds={"rho": SHARE}):
    """Steps whose size follows from running means of squared gradients and of squared steps.

    One step on a parameter ``p`` with gradient ``g``; ``square`` and ``change`` are its buffers::

        g = g + weight_decay * p
        square = rho * square + (1 - rho) * g * g
        d = sqrt(change + eps) / sqrt(square + eps) * g
        change = rho * change + (1 - rho) * d * d
        p = p - lr * d

    Source: Zeiler (2012), arXiv:1212.5701; torch.optim.Adadelta.

    Args:
        lr: factor of the steps.
        rho: decay of the running means.
        eps: added within the roots.
        weight_decay: factor of the L2 penalty.

    >>> from dgrr.runtime.optim import Adadelta
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, Adadelta(lr=0.5, eps=1.0)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5233, 1.8452])
    """

    lr: float | Schedule = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0.0
    _: KW_ONLY
    maximize: bool = False
