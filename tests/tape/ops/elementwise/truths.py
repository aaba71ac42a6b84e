"""What formulas of ops must give, by texts that are not theirs: numpy's own functions, or mpmath's with a bound.

A formula is the reference of its kernel, so that the two agree says only that LLVM made of it what Python reads.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def extreme(a: Array, b: Array, sign: int) -> Array:
    """The larger (sign 1) or smaller (-1) of two, ordered by value and then by sign bit; NaN before both."""
    first = np.where(a == b, np.signbit(a) == (sign < 0), a * sign > b * sign)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, np.where(first, a, b)))


EXACT: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "scale": np.multiply,
    "divide": np.divide,
    "shift": np.add,
    "inv": np.reciprocal,
    "sqrt": lambda x: np.sqrt(np.where(x <= 0, x.dtype.type(0), x)),
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)),
    "relu": lambda x: np.where(x <= 0, x.dtype.type(0), x),
    "where_positive": lambda g, y: np.where(y > 0, g, g.dtype.type(0)),
    "leaky": lambda g, x, slope: np.where(x > 0, g, g * slope),
    "absolute": np.absolute,
    "times_sign": lambda g, x: np.where(x > 0, g, np.where(x < 0, -g, g.dtype.type(0))),
    "maximum": lambda a, b: extreme(a, b, 1),
    "minimum": lambda a, b: extreme(a, b, -1),
    "winner_share": lambda g, a, b: np.where(a > b, g, np.where(a < b, g.dtype.type(0), g / 2)),
    "clamp": lambda x, low, high: extreme(np.full_like(x, high), extreme(np.full_like(x, low), x, 1), -1),
    "over": np.divide,
    "relu6": lambda x: np.where(x <= 0, x.dtype.type(0), np.where(x > 6, x.dtype.type(6), x)),
    "hardswish": lambda x: x * np.divide(np.clip(x + 3, 0, 6), 6),
    "softsign": lambda x: np.divide(x, np.absolute(x) + 1),
    "where_inside": lambda g, x, low, high: np.where((x > low) & (x < high), g, g.dtype.type(0)),
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "where": lambda condition, a, b: np.where(condition != 0, a, b),
}
"""What is one operation of numpy's in the element type, or chosen among such: to the bit."""


class Near(NamedTuple):
    """What a formula is about, and by how many ULP it may miss that."""

    true: Callable[..., Any]
    ulp: float
    of: Callable[..., Any] | None = None
    """The number whose spacing an ULP is, where that is not the result: what cancels loses more of the result."""


def _gelu(x: Any) -> Any:
    return x / 2 * (1 + mpmath.erf(x * mpmath.sqrt(0.5)))


def _gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


LAMBDA = mpmath.mpf("1.0507009873554804934193349852946")
ALPHA = mpmath.mpf("1.6732632423543772848170429916717")
"""Of selu, by the fixed point of Klambauer and others."""

NEAR: dict[str, Near] = {
    "exp": Near(mpmath.exp, 0.8),
    "log": Near(mpmath.log, 0.8),
    "tanh": Near(mpmath.tanh, 1.4),
    "sigmoid": Near(_sigmoid, 1.5),
    "log1p": Near(mpmath.log1p, 0.85),
    "expm1": Near(mpmath.expm1, 1.1),
    "erf": Near(mpmath.erf, 1.3),
    "softplus": Near(lambda x: mpmath.log1p(mpmath.exp(x)), 1.6),
    "broken_power": Near(mpmath.power, 0.8),
    "pow_of_elements": Near(mpmath.power, 0.85),
    "atan2": Near(mpmath.atan2, 0.85),
    "silu": Near(lambda x: x * _sigmoid(x), 2.5),
    "gelu": Near(_gelu, 1.5, of=lambda x: x),
    "gelu_tanh": Near(_gelu_tanh, 2.0, of=lambda x: x),
    "elu": Near(lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x), 2.0),
    "celu": Near(lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x / alpha), 2.5),
    "selu": Near(lambda x: LAMBDA * (x if x > 0 else ALPHA * mpmath.expm1(x)), 2.5),
    "mish": Near(lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), 4.0),
    "logsigmoid": Near(lambda x: -mpmath.log1p(mpmath.exp(-x)), 1.6),
    "elu_slope": Near(lambda x, alpha: mpmath.mpf(1) if x > 0 else alpha * mpmath.exp(x), 1.6),
}
"""Smooth functions, and the bounds that docs/numerics.md gives those that it names."""
