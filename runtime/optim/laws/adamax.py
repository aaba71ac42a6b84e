"""The formula of Adamax."""

from ....tape.numerics.simd.minmax import larger
from ....tape.numerics.simd.operations import Number, constant
from ..pointwise import law
from .formulas import correction, mixed, slope


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
