"""The formulas of Adam and AdamW."""

from typing import Any

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.minmax import larger
from ....tape.numerics.simd.operations import Number, constant, select, sqrt
from ..pointwise import law
from .formulas import correction, mixed, root, shrunk, slope

Numbers = tuple[Number, ...]


# ------------------------------------------------------------------ Adam, as torch.optim computes it


@law("adam@1", "m", "v")
def adam(
    p: Number, g: Number, m: Number, v: Number, c1: float, c2: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of Adam."""
    g = slope(p, g, 0.0, weight_decay)
    m, v = interpolated(m, g, beta1), constant(v, beta2) * v + (constant(v, 1.0 - beta2) * g) * g
    return p - adapted(m, v, c1, c2, lr, eps), m, v


@law("adamw@1", "m", "v")
def adamw(
    p: Number, g: Number, m: Number, v: Number, c1: float, c2: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> Numbers:  # fmt: skip
    """One step of AdamW."""
    m, v = interpolated(m, g, beta1), constant(v, beta2) * v + (constant(v, 1.0 - beta2) * g) * g
    return shrunk(p, lr, weight_decay) - adapted(m, v, c1, c2, lr, eps), m, v


@formula
def interpolated(m: Number, g: Number, beta1: float) -> Number:
    """A running average after a new value, from the nearer of the two, as torch.lerp."""
    change = g - m
    return select(1.0 - beta1 < 0.5, m + constant(m, 1.0 - beta1) * change, g - constant(m, beta1) * change)


@formula
def adapted(m: Number, v: Number, c1: float, c2: Any, lr: float, eps: float) -> Number:
    """A step along the first moment over the root of the second."""
    spread: Any = sqrt(c2)
    return constant(m, lr / c1) * m / (sqrt(v) / constant(m, spread) + constant(m, eps))


# ------------------------------------------------------------------ its second version, whose averages are `mixed`


@formula
def moved(p: Number, m: Number, v: Number, step: float, lr: float, beta1: float, beta2: float, eps: float) -> Number:
    """The parameter after a step along the first moment over the root of the second."""
    c1, c2 = correction(beta1, step), correction(beta2, step)
    spread: Any = root(c2)
    return p - constant(p, lr / c1) * m / (root(v) / constant(p, spread) + constant(p, eps))


@law("adam@2", "m", "v")
def adam_uphill(
    p: Number, g: Number, m: Number, v: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of Adam, of the negated gradient."""
    g = slope(p, g, maximize, weight_decay)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    return moved(p, m, v, step, lr, beta1, beta2, eps), m, v


@law("adam@2", "m", "v", "largest")
def adam_amsgrad(
    p: Number, g: Number, m: Number, v: Number, largest: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of Adam, divided by the largest second moment so far."""
    g = slope(p, g, maximize, weight_decay)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    largest = larger(largest, v)
    return moved(p, m, largest, step, lr, beta1, beta2, eps), m, v, largest


@law("adamw@2", "m", "v")
def adamw_uphill(
    p: Number, g: Number, m: Number, v: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of AdamW, of the negated gradient."""
    g = slope(p, g, maximize, 0.0)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    return moved(shrunk(p, lr, weight_decay), m, v, step, lr, beta1, beta2, eps), m, v


@law("adamw@2", "m", "v", "largest")
def adamw_amsgrad(
    p: Number, g: Number, m: Number, v: Number, largest: Number, step: float,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: float, maximize: float,
) -> Numbers:  # fmt: skip
    """One step of AdamW, divided by the largest second moment so far."""
    g = slope(p, g, maximize, 0.0)
    m, v = mixed(m, g, beta1), mixed(v, g * g, beta2)
    largest = larger(largest, v)
    return moved(shrunk(p, lr, weight_decay), m, largest, step, lr, beta1, beta2, eps), m, v, largest
