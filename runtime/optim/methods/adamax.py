"""Adamax: Adam with the largest of the recent gradients in place of their root mean square."""

from dataclasses import KW_ONLY, dataclass

from ....tape.numerics.simd.minmax import larger
from ....tape.numerics.simd.operations import Number, constant
from ..laws.formulas import correction, mixed, slope
from ..laws.pointwise import law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule


@law("adamax@1", "m", "largest")
def adamax(
    p: Number, g: Number, m: Number, largest: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, maximize: float,
) -> tuple[Number, ...]:  # fmt: skip
    """One step of Adamax."""
    g = slope(p, g, maximize, weight_decay)
    m = mixed(m, g, beta1)
    largest = larger(constant(p, beta2) * largest, abs(g) + constant(p, eps))
    return p - constant(p, lr / correction(beta1, step)) * (m / largest), m, largest


@dataclass(frozen=True)
class Adamax(PointRule, law=adamax):
    """Adam with a running maximum of the sizes of gradients.

    One step on a parameter ``p`` with gradient ``g``; ``m`` and ``largest`` are its buffers, ``t`` the step, from 1::

        g = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        largest = max(beta2 * largest, |g| + eps)
        p = p - lr / (1 - beta1 ** t) * m / largest

    Source: Kingma and Ba (2015), arXiv:1412.6980, section 7.1; torch.optim.Adamax.

    Args:
        betas: decay of the running mean and of the running maximum.
        eps: added to the size of the gradient.
        weight_decay: factor of the L2 penalty.

    >>> from dgrr.runtime.optim import Adamax
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, Adamax(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5, 1.5])
    """

    lr: float | Schedule = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    _: KW_ONLY
    maximize: bool = False
