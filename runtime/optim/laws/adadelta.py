"""The formula of Adadelta."""

from ....tape.numerics.simd.operations import Number, constant
from ..pointwise import law
from .formulas import mixed, root, slope


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
