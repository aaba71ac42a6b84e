"""Operators and methods whose result has the type of what they are called on."""

# What the op table returns is typed by each method's own signature.
# mypy: disable-error-code="no-any-return"
from typing import Self

import numpy as np

from ...arrays import Array
from .broadcasting import binary
from .op_table import OPS

Number = float | int | bool | np.generic


class Arithmetic:
    """What a `Var` has of them."""

    __slots__ = ()

    def __add__(self, other: Self | Array | Number) -> Self:
        """``self + other``."""
        return binary("add", self, other)

    def __radd__(self, other: Array | Number) -> Self:
        """``other + self``."""
        return binary("add", other, self)

    def __sub__(self, other: Self | Array | Number) -> Self:
        """``self - other``."""
        return binary("sub", self, other)

    def __rsub__(self, other: Array | Number) -> Self:
        """``other - self``."""
        return binary("sub", other, self)

    def __mul__(self, other: Self | Array | Number) -> Self:
        """``self * other``."""
        return binary("mul", self, other)

    def __rmul__(self, other: Array | Number) -> Self:
        """``other * self``."""
        return binary("mul", other, self)

    def __truediv__(self, other: Self | Array | Number) -> Self:
        """``self / other``."""
        return binary("div", self, other)

    def __rtruediv__(self, other: Array | Number) -> Self:
        """``other / self``."""
        return binary("div", other, self)

    def __neg__(self) -> Self:
        """``-self``."""
        return OPS["neg"].call(self)

    def __pow__(self, exponent: float) -> Self:
        """``self ** exponent`` for a number."""
        return OPS["power"].call(self, exponent)

    def __abs__(self) -> Self:
        """``|self|``."""
        return OPS["absolute"].call(self)

    def clamp(self, low: float, high: float) -> Self:
        """``minimum(high, maximum(low, self))``."""
        return OPS["clamp"].call(self, low, high)

    def softmax(self, axis: int = -1) -> Self:
        """The softmax along an axis."""
        return OPS["softmax"].call(self, axis)

    def log_softmax(self, axis: int = -1) -> Self:
        """The logarithm of the softmax along an axis."""
        return OPS["log_softmax"].call(self, axis)

    def cumsum(self, axis: int) -> Self:
        """The running sum along an axis."""
        return OPS["cumsum"].call(self, axis)
