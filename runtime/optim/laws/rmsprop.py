"""The formulas of RMSprop."""

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import Number, constant
from ..pointwise import law
from .formulas import mixed, root, slope

Numbers = tuple[Number, ...]


@formula
def divided(g: Number, variance: Number, eps: float) -> Number:
    """A gradient over the root of its variance."""
    return g / (root(variance) + constant(g, eps))


@law("rmsprop@1", "square")
def rmsprop(
    p: Number, g: Number, square: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop."""
    g = slope(p, g, maximize, weight_decay)
    square = mixed(square, g * g, alpha)
    return p - constant(p, lr) * divided(g, square, eps), square


@law("rmsprop@1", "square", "momentum")
def rmsprop_momentum(
    p: Number, g: Number, square: Number, b: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop with momentum."""
    g = slope(p, g, maximize, weight_decay)
    square = mixed(square, g * g, alpha)
    b = constant(p, momentum) * b + divided(g, square, eps)
    return p - constant(p, lr) * b, square, b


@law("rmsprop@1", "square", "mean")
def rmsprop_centered(
    p: Number, g: Number, square: Number, mean: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop around the mean."""
    g = slope(p, g, maximize, weight_decay)
    square, mean = mixed(square, g * g, alpha), mixed(mean, g, alpha)
    return p - constant(p, lr) * divided(g, square - mean * mean, eps), square, mean


@law("rmsprop@1", "square", "mean", "momentum")
def rmsprop_centered_momentum(
    p: Number, g: Number, square: Number, mean: Number, b: Number,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of RMSprop around the mean, with momentum."""
    g = slope(p, g, maximize, weight_decay)
    square, mean = mixed(square, g * g, alpha), mixed(mean, g, alpha)
    b = constant(p, momentum) * b + divided(g, square - mean * mean, eps)
    return p - constant(p, lr) * b, square, mean, b
