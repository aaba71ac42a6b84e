"""The operations that kernels and formulas are written in: what each means in Python, and its form in compiled code.

The meaning is the body: numpy's numbers or arrays of float32 or float64, element by element, rounded once. Compiled
code has the form (`forms`) in its place, for scalars and for vectors. ``+ - * /``, negation, ``abs`` and comparisons
are operations too, whose meanings are numpy's, and whose forms for vectors stand in `lanes`.
"""

# numba's forms carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
from typing import Any, Protocol, cast

import numpy as np

from .. import exact_fma
from ..coefficients import FLOAT32, FLOAT64, Constants
from ..engine.numba_internals import compiled_as
from . import forms


class Number(Protocol):
    """A number of a float type, or one in every lane or place."""

    def __add__(self, other: "Number", /) -> "Number": ...
    def __sub__(self, other: "Number", /) -> "Number": ...
    def __mul__(self, other: "Number", /) -> "Number": ...
    def __truediv__(self, other: "Number", /) -> "Number": ...
    def __neg__(self) -> "Number": ...
    def __abs__(self) -> "Number": ...
    def __lt__(self, other: "Number", /) -> "Mask": ...
    def __le__(self, other: "Number", /) -> "Mask": ...
    def __gt__(self, other: "Number", /) -> "Mask": ...


class Mask(Protocol):
    """What a comparison gives."""


class Bits(Protocol):
    """The bit pattern of a number, as a whole number of its width."""


# ------------------------------------------------------------------ numbers


@compiled_as(forms.fma)
def fma(a: Number, b: Number, c: Number) -> Number:
    """``a * b + c`` rounded once (IEEE-754 fusedMultiplyAdd)."""
    given: Any = (a, b, c)
    return cast(Number, exact_fma.fma(*given))


@compiled_as(forms.sqrt)
def sqrt(x: Number) -> Number:
    """The square root, rounded correctly."""
    return cast(Number, np.sqrt(cast(Any, x)))


@compiled_as(forms.select)
def select(condition: Mask, yes: Number, no: Number) -> Number:
    """``yes if condition else no`` without a branch; both sides are evaluated, so loops keep vectorising."""
    return cast(Number, np.where(cast(Any, condition), cast(Any, yes), cast(Any, no))[()])


@compiled_as(forms.polynomial)
def polynomial(x: Number, coefficients: tuple[Number, ...]) -> Number:
    """The polynomial with these coefficients, highest power first, by Horner's scheme with fma."""
    value: Number = _like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = fma(value, x, coefficient)
    return value


@compiled_as(forms.constant)
def constant(x: Number, value: float) -> Number:
    """``value`` in the type of ``x``; the value must be exact in both float types."""
    return cast(Number, cast(Any, x).dtype.type(value))


@compiled_as(forms.constants)
def constants(x: Number) -> Constants[Number]:
    """The `Constants` of the element type of ``x``: numbers in the type of x, int64, or tuples of numbers."""
    return cast(Constants[Number], FLOAT32 if cast(Any, x).dtype == np.float32 else FLOAT64)


# ------------------------------------------------------------------ bit patterns


@compiled_as(forms.bits_of)
def bits_of(x: Number) -> Bits:
    """The bit pattern of a float as an integer of the same width."""
    return cast(Bits, _viewed(x, "i"))


@compiled_as(forms.float_of)
def float_of(x: Bits) -> Number:
    """The float whose bit pattern is ``x`` (int32 or int64)."""
    return cast(Number, _viewed(x, "f"))


@compiled_as(forms.integer("add"))
def add(x: Bits, y: Bits | int) -> Bits:
    """``x + y`` in the type of x, wrapping."""
    return cast(Bits, cast(Any, x) + _like(x, y))


@compiled_as(forms.integer("sub"))
def sub(x: Bits, y: Bits | int) -> Bits:
    """``x - y`` in the type of x, wrapping."""
    return cast(Bits, cast(Any, x) - _like(x, y))


@compiled_as(forms.integer("shl"))
def shl(x: Bits, y: Bits | int) -> Bits:
    """``x << y`` in the type of x."""
    return cast(Bits, cast(Any, x) << _like(x, y))


@compiled_as(forms.integer("lshr"))
def lshr(x: Bits, y: Bits | int) -> Bits:
    """``x >> y`` in the type of x, filled with zeros."""
    return cast(Bits, _viewed(_viewed(x, "u") >> _viewed(_like(x, y), "u"), "i"))


@compiled_as(forms.integer("and_"))
def bitand(x: Bits, y: Bits | int) -> Bits:
    """``x & y`` in the type of x."""
    return cast(Bits, cast(Any, x) & _like(x, y))


@compiled_as(forms.integer("or_"))
def bitor(x: Bits, y: Bits | int) -> Bits:
    """``x | y`` in the type of x."""
    return cast(Bits, cast(Any, x) | _like(x, y))


def _viewed(x: Any, kind: str) -> Any:
    """The same bits as numbers of another kind."""
    return x.view(np.dtype(f"{kind}{x.dtype.itemsize}"))


def _like(x: Any, y: Any) -> Any:
    return np.asarray(y).astype(x.dtype)[()]
