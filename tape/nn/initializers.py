"""How parameters start: keyed by a seed and the parameter's place in the model, so that order never matters.

Each function here makes an ``Initialiser``, for ``model.init(seed, overrides={"*.weight": init.xavier_uniform()})``.
A weight of shape ``(out, in, …)`` has ``fan_in = in * …`` and ``fan_out = out * …``, as in PyTorch.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isfinite, prod, tau
from sys import float_info
from typing import Any, Literal

import numpy as np

from ...base.arrays import Array
from ..errors import DomainError, ShapeError
from ..numerics.math.exact import quotient, root
from ..numerics.math.random import uniform as unit_uniform
from ..numerics.sizes import Sizes
from ..record.op import OPS
from ..values.tensor import AnyTensor
from .parameters import Initialiser

BEFORE_TRAINING = 2**32 - 1
"""The step under which initial values are drawn: the last there is, so no training step draws the same words."""

Fan = Literal["fan_in", "fan_out"]
Bound = Callable[[Sizes], float]
"""The bound or the deviation for a parameter of some shape."""


def constant(value: float) -> Initialiser:
    """Every element is ``value``, rounded to the element type."""

    def initialise(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        return AnyTensor.number(float(value), dtype, shape).array.copy()

    return initialise


def zeros() -> Initialiser:
    """Every element is 0."""
    return constant(0.0)


def ones() -> Initialiser:
    """Every element is 1."""
    return constant(1.0)


def uniform(low: float = 0.0, high: float = 1.0) -> Initialiser:
    """Uniform from ``low`` to ``high``: ``u * (high - low) + low`` with u from [0, 1), each result rounded.

    Raises DomainError unless both are finite and ``low <= high``.
    """
    _require_finite("uniform", low=low, high=high)
    width = Fraction(high) - Fraction(low)
    if not 0 <= width <= float_info.max:
        raise DomainError(f"uniform: argument 'high': expected at least {low}, at a finite distance, got {high}")

    def initialise(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        unit = unit_uniform(shape, dtype, seed=seed, step=BEFORE_TRAINING, ordinal=ordinal)
        return _array(OPS["add"](OPS["scale"](AnyTensor(unit), float(width)), AnyTensor.number(low, dtype, shape)))

    return initialise


def normal(mean: float = 0.0, std: float = 1.0) -> Initialiser:
    """Normally distributed: ``z * std + mean`` in float64, rounded once to the element type.

    ``z = sqrt(-2 log(1 - u)) * cos(2 pi v)`` (Box and Muller, 1958), each operation in float64, where u and v of
    element i are the float64 numbers 2i and 2i + 1 of its stream. Raises DomainError unless both are finite and
    ``std >= 0``.
    """
    _require_finite("normal", mean=mean, std=std)
    if std < 0:
        raise DomainError(f"normal: argument 'std': expected at least 0, got {std}")

    def initialise(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        return _normal(shape, dtype, seed, ordinal, mean, std)

    return initialise


def uniform_fan_in(fan_in: int) -> Initialiser:
    """Uniform on ``[-b, b)`` with ``b = 1 / sqrt(fan_in)``: PyTorch's default for the weights and biases of layers.

    The bound is computed in float64 and rounded once; a value is ``(2 u - 1) * b`` with u from [0, 1).
    """
    bound = quotient(1.0, root(fan_in))
    return _symmetric(lambda shape: bound)


def xavier_uniform(gain: float = 1.0) -> Initialiser:
    """Uniform on ``[-b, b)`` with ``b = gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio, 2010).

    Raises DomainError unless ``gain`` is finite; ShapeError for a parameter of fewer than two axes.
    """
    return _symmetric(_xavier("xavier_uniform", 6, gain))


def xavier_normal(gain: float = 1.0) -> Initialiser:
    """Normally distributed with deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio, 2010).

    Raises DomainError unless ``gain`` is finite; ShapeError for a parameter of fewer than two axes.
    """
    return _spread(_xavier("xavier_normal", 2, gain))


def kaiming_uniform(negative_slope: float = 0.0, mode: Fan = "fan_in") -> Initialiser:
    """Uniform on ``[-b, b)`` with ``b = sqrt(6 / ((1 + negative_slope ** 2) * fan))`` (He et al., 2015), for ReLUs.

    Raises DomainError for a slope that is not finite or another mode; ShapeError for a parameter of fewer than two
    axes.
    """
    return _symmetric(_kaiming("kaiming_uniform", 6, negative_slope, mode))


def kaiming_normal(negative_slope: float = 0.0, mode: Fan = "fan_in") -> Initialiser:
    """Normally distributed with deviation ``sqrt(2 / ((1 + negative_slope ** 2) * fan))`` (He et al., 2015), for ReLUs.

    Raises DomainError for a slope that is not finite or another mode; ShapeError for a parameter of fewer than two
    axes.
    """
    return _spread(_kaiming("kaiming_normal", 2, negative_slope, mode))


def fans(name: str, shape: Sizes) -> tuple[int, int]:
    """``(fan_in, fan_out)`` of a weight ``(out, in, …)``. Raises ShapeError, naming the initialiser, for fewer axes."""
    if len(shape) < 2:
        raise ShapeError(f"{name}: expected a parameter of at least 2 axes (out, in, ...), got shape {shape}")
    each = prod(shape[2:])
    return shape[1] * each, shape[0] * each


def _xavier(name: str, numerator: int, gain: float) -> Bound:
    _require_finite(name, gain=gain)
    return lambda shape: _root(numerator * Fraction(gain) ** 2, sum(fans(name, shape)))


def _kaiming(name: str, numerator: int, negative_slope: float, mode: Fan) -> Bound:
    _require_finite(name, negative_slope=negative_slope)
    if mode not in ("fan_in", "fan_out"):
        raise DomainError(f"{name}: argument 'mode': expected 'fan_in' or 'fan_out', got {mode!r}")
    ratio = numerator / (1 + Fraction(negative_slope) ** 2)
    return lambda shape: _root(ratio, fans(name, shape)[mode == "fan_out"])


def _root(numerator: Fraction, denominator: int) -> float:
    """The square root of an exact quotient that was rounded to float64; 0 for a parameter without elements."""
    return root(float(numerator / denominator)) if denominator else 0.0


def _symmetric(bound: Bound) -> Initialiser:
    """Uniform between a bound and its negative: ``(2 u - 1) * b`` with u from [0, 1)."""

    def initialise(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        unit = unit_uniform(shape, dtype, seed=seed, step=BEFORE_TRAINING, ordinal=ordinal)
        centred = AnyTensor(np.asarray(unit * dtype.type(2) - dtype.type(1)))  # exact
        return _array(OPS["scale"](centred, bound(shape)))

    return initialise


def _spread(deviation: Bound) -> Initialiser:
    """Normally distributed around 0."""

    def initialise(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        return _normal(shape, dtype, seed, ordinal, 0.0, deviation(shape))

    return initialise


def _normal(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int, mean: float, std: float) -> Array:
    z = standard_normal(unit_uniform((prod(shape), 2), np.float64, seed=seed, step=BEFORE_TRAINING, ordinal=ordinal))
    moved = OPS["add"](OPS["scale"](z, std), AnyTensor.number(mean, np.dtype(np.float64), z.sizes))
    return _array(OPS["reshape"](OPS["cast"](moved, dtype), shape))


def standard_normal(pairs: Array) -> AnyTensor:
    """Box and Muller's normal numbers, float64 (n,), of pairs (u, v) of float64 uniform ones, (n, 2)."""
    u, v = AnyTensor(1.0 - pairs[:, 0]), AnyTensor(pairs[:, 1].copy())  # 1 - u is exact
    radius = OPS["sqrt"](OPS["scale"](OPS["log"](u), -2.0))
    z: AnyTensor = OPS["mul"](radius, OPS["cos"](OPS["scale"](v, tau)))
    return z


def _array(tensor: AnyTensor) -> Array:
    return tensor.array.copy()


def _require_finite(name: str, **values: float) -> None:
    for argument, value in values.items():
        if not isfinite(value):
            raise DomainError(f"{name}: argument {argument!r}: expected a finite number, got {value}")
