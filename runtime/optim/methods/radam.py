"""RAdam: Adam that waits until the variance of its steps is known."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import Number, constant
from ....tape.record.kinds.values import Values
from ..kinds import BETAS
from ..laws.formulas import correction, mixed, one_if, root, shrunk, slope
from ..laws.pointwise import law
from ..rates.schedules import Schedule
from ..rules.point_rule import PointRule


@law("radam@1", "m", "v")
def radam(
    p: Number, g: Number, m: Number, v: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: float, maximize: float,
) -> tuple[Number, ...]:  # fmt: skip
    """One step of RAdam."""
    penalty = weight_decay * (1.0 - decoupled)
    g = slope(p, g, maximize, penalty)
    p = shrunk(p, lr, weight_decay * decoupled)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    known, factor = certainty(beta2, step)
    size = lr / correction(beta1, step)
    divided = constant(p, size * factor * known) / (root(v) + constant(p, eps))
    return p - (divided + constant(p, size * (1.0 - known))) * m, m, v


@formula
def certainty(beta2: Any, step: Any) -> Any:
    """Whether the variance is known, as 1 or 0, and what the step is multiplied by then."""
    c2, last = correction(beta2, step), 2.0 / (1.0 - beta2) - 1.0
    rho = last - 2.0 * step * (1.0 - c2) / c2
    known = one_if(rho > 5.0)
    rho = known * rho + (1.0 - known) * 5.0
    share = (rho - 4.0) * (rho - 2.0) * last / ((last - 4.0) * (last - 2.0) * rho)
    return known, root(share * c2)


KNOWN = Values(  # elsewhere rho stays below 5, or divides by 0
    "two finite numbers, in [0, 1) and (0.6, 1)",
    lambda betas: BETAS.fits(betas) and betas[1] > 0.6,
    ((0.9, 0.6), *BETAS.refused),
)


@dataclass(frozen=True)
class RAdam(PointRule, law=radam, kinds={"betas": KNOWN}):
    """Adam whose steps are plain until enough gradients were seen to divide them by a root mean square.

    One step on a parameter ``p`` with gradient ``g``; ``m`` and ``v`` are its buffers, ``t`` the step, from 1, and
    ``(c1, c2) = (1 - beta1 ** t, 1 - beta2 ** t)``::

        g = g + weight_decay * p                                        # p = (1 - lr * weight_decay) * p if decoupled
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        last = 2 / (1 - beta2) - 1
        rho = last - 2 * t * (1 - c2) / c2
        r = sqrt((rho - 4) * (rho - 2) * last / ((last - 4) * (last - 2) * rho))
        p = p - lr / c1 * m * (r * sqrt(c2) / (sqrt(v) + eps) if rho > 5 else 1)

    Source: Liu and others (2020), arXiv:1908.03265; torch.optim.RAdam.

    Args:
        eps: added to the denominator.
        weight_decay: factor of the L2 penalty.
        decoupled: whether weight decay leaves the gradient as it is (``decoupled_weight_decay`` in PyTorch).

    >>> from dgrr.runtime.optim import RAdam
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, RAdam(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5, 2. ])
    """

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    _: KW_ONLY
    decoupled: bool = False
    maximize: bool = False
