"""The formula of Lion."""

from ....tape.numerics.simd.operations import Number, constant, select
from ..pointwise import law
from .formulas import mixed, shrunk, slope


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
