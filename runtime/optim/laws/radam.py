"""The formula of RAdam."""

from typing import Any

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import Number, constant
from ..pointwise import law
from .formulas import correction, mixed, one_if, root, shrunk, slope


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
