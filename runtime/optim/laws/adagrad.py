"""The formula of Adagrad."""

from ....tape.numerics.simd.operations import Number, constant, select
from ..pointwise import law
from .formulas import root, slope


@law("adagrad@1", "total")
def adagrad(
    p: Number, g: Number, total: Number, step: float,
    lr: float, lr_decay: float, weight_decay: float, initial: float, eps: float, maximize: float,
) -> tuple[Number, ...]:  # fmt: skip
    """One step of Adagrad."""
    g = slope(p, g, maximize, weight_decay)
    total = total + g * g
    size = lr / (1.0 + (step - 1.0) * lr_decay)
    inside = select(initial != 0.0, total + constant(p, initial), total)
    return p - constant(p, size) * (g / (root(inside) + constant(p, eps))), total
