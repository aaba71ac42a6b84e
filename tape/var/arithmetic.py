"""Operators and methods whose result has the type of what they are called on."""

# What the op table returns is typed by each method's own signature.
# mypy: disable-error-code="no-any-return"
from typing import Any, Self

import numpy as np

from ...base.arrays import Array
from ..values.tensor import AnyTensor
from .broadcasting import binary
from .handle import Handle
from .op_table import OPS

Number = float | int | bool | np.generic

Constant = Array | Number | list[Any] | tuple[Any, ...]
"""What becomes a constant beside a Var in a call of an op: an array, a number, or what numpy makes an array of."""


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

    def __pow__(self, exponent: Self | Array | Number) -> Self:
        """``self ** exponent``: by ``ops.power`` for a number, else by ``ops.pow``."""
        if isinstance(exponent, Handle | AnyTensor) or (isinstance(exponent, np.ndarray) and exponent.ndim):
            return binary("pow", self, exponent)
        return OPS["power"].call(self, exponent)

    def __rpow__(self, other: Array | Number) -> Self:
        """``other ** self``."""
        return binary("pow", other, self)

    def __floordiv__(self, other: Self | Array | Number) -> Self:
        """``self // other`` of integers, rounded down."""
        return binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Array | Number) -> Self:
        """``other // self``."""
        return binary("floor_divide", other, self)

    def __mod__(self, other: Self | Array | Number) -> Self:
        """``self % other`` of integers, with the sign of ``other``."""
        return binary("remainder", self, other)

    def __rmod__(self, other: Array | Number) -> Self:
        """``other % self``."""
        return binary("remainder", other, self)

    def __and__(self, other: Self | Array | Number) -> Self:
        """``self & other`` of masks."""
        return binary("logical_and", self, other)

    def __rand__(self, other: Array | Number) -> Self:
        """``other & self``."""
        return binary("logical_and", other, self)

    def __or__(self, other: Self | Array | Number) -> Self:
        """``self | other`` of masks."""
        return binary("logical_or", self, other)

    def __ror__(self, other: Array | Number) -> Self:
        """``other | self``."""
        return binary("logical_or", other, self)

    def __xor__(self, other: Self | Array | Number) -> Self:
        """``self ^ other`` of masks."""
        return binary("logical_xor", self, other)

    def __rxor__(self, other: Array | Number) -> Self:
        """``other ^ self``."""
        return binary("logical_xor", other, self)

    def __invert__(self) -> Self:
        """``~self`` of a mask."""
        return OPS["logical_not"].call(self)

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
