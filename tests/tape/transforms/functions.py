"""Functions to differentiate, their derivatives, and derivatives by differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.tape import Var, ops

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
X, Y, V = RNG.standard_normal((3, 5))
A, B = RNG.standard_normal((2, 4, 5))


def total(x: Any) -> Any:
    return (ops.tanh(x) * x * x).sum()


def total_slope(x: Array) -> Array:
    t = np.tanh(x)
    return np.asarray((1 - t * t) * x * x + 2 * x * t)


def total_curvature(x: Array) -> Array:
    t = np.tanh(x)
    d = 1 - t * t
    return np.asarray(-2 * t * d * x * x + 4 * x * d + 2 * t)


def rosenbrock(x: Any) -> Any:
    a, b = x[:-1], x[1:]
    return (100.0 * (b - a * a).square() + (1.0 - a).square()).sum()


def mixed(x: Any, y: Any) -> Any:
    """One scalar of two vectors, with every second derivative."""
    return (ops.exp(x * y) + x * x * y).sum()


def close(got: Any, expected: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(got.value if isinstance(got, Var) else got), expected, rtol=rtol, atol=rtol)


def differences(f: Callable[[Array], Array], x: Array, h: float = 1e-5) -> Array:
    """The Jacobian of f by central differences, the axes of x last."""
    columns = []
    for at in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[at] = h
        columns.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * h))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)
