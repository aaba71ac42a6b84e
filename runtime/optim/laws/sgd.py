"""The formulas of stochastic gradient descent."""

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import Number, constant, select
from ..pointwise import law
from .formulas import slope

Numbers = tuple[Number, ...]


@law("sgd@1")
def sgd(
    p: Number, g: Number,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of SGD."""
    return (p - constant(p, lr) * slope(p, g, 0.0, weight_decay),)


@law("sgd@1", "momentum")
def sgd_momentum(
    p: Number, g: Number, b: Number, step: float,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of SGD with momentum."""
    g = slope(p, g, 0.0, weight_decay)
    b = select(step < 1.5, g, constant(p, momentum) * b + constant(p, 1.0 - dampening) * g)
    return p - constant(p, lr) * ahead(g, b, momentum, nesterov), b


@law("sgd@2")
def sgd_uphill(
    p: Number, g: Number,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of SGD along the gradient."""
    return (p - constant(p, lr) * slope(p, g, maximize, weight_decay),)


@law("sgd@2", "momentum")
def sgd_momentum_uphill(
    p: Number, g: Number, b: Number, step: float,
    lr: float, momentum: float, dampening: float, nesterov: float, weight_decay: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of SGD with momentum along the gradient."""
    g = slope(p, g, maximize, weight_decay)
    one, zero = constant(p, 1.0), constant(p, 0.0)
    begins = select(step < 1.5, one, zero)
    b = begins * g + (one - begins) * (constant(p, momentum) * b + constant(p, 1.0 - dampening) * g)
    return p - constant(p, lr) * ahead(g, b, momentum, nesterov), b


@formula
def ahead(g: Number, b: Number, momentum: float, nesterov: float) -> Number:
    """The way along the buffer, or further along it as Nesterov looks."""
    return select(nesterov != 0.0, g + constant(b, momentum) * b, b)
