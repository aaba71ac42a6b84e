"""Formulas that rules and schedules share; each is read by compiled code, by numpy and, on a tape, in ops."""

from typing import Any

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.math.elementary import expm1, log
from ....tape.numerics.simd.operations import Number, constant, select, sqrt

# ------------------------------------------------------------------ of the places of a parameter


@formula
def slope(p: Number, g: Number, maximize: float, weight_decay: float) -> Number:
    """The gradient of what is made small, with an L2 penalty."""
    g = select(maximize != 0.0, -g, g)
    return select(weight_decay != 0.0, g + constant(p, weight_decay) * p, g)


@formula
def mixed(old: Number, new: Number, share: float) -> Number:
    """A running average after a new value."""
    return constant(old, share) * old + constant(old, 1.0 - share) * new


@formula
def shrunk(p: Number, lr: float, weight_decay: float) -> Number:
    """The parameter after decoupled weight decay."""
    return select(weight_decay != 0.0, constant(p, 1.0 - lr * weight_decay) * p, p)


@formula
def root(x: Number) -> Number:
    """The square root as `ops.sqrt` has it: +0 of what is not above 0, as a variance that was rounded may be."""
    zero = constant(x, 0.0)
    return sqrt(select(x <= zero, zero, x))


# ------------------------------------------------------------------ of numbers in float64


@formula
def one_if(condition: Any) -> Any:
    """1 where something holds, else 0, in float64."""
    one: Any = 1.0
    zero: Any = 0.0
    return select(condition, one, zero)


@formula
def correction(beta: Any, step: Any) -> Any:
    """``1 - beta ** step`` in float64, as ``-expm1(step * log(beta))``."""
    return -expm1(step * log(beta))


@formula
def whole_power(base: Any, exponent: Any) -> Any:
    """``base ** exponent`` for a whole exponent of at least 0: binary powering from the lowest bit."""
    result: Any = 1.0
    while exponent > 0:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent = exponent >> 1
    return result
