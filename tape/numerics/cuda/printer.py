"""Formulas as CUDA C++: Python runs the text of one with operations that print instead of computing.

    python -m dgrr.tape.numerics.cuda.printer > tape/numerics/cuda/elementary.cuh

An operation becomes a line, in the order in which the formula computes them, by the functions of ``same_bits.cuh``,
which nothing contracts.
"""

# What a formula is run on here is none of its numbers, but stands for them.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
from collections.abc import Callable
from math import isinf, isnan
from types import SimpleNamespace
from typing import Any

from ..coefficients import FLOAT32, FLOAT64, Constants
from ..math import elementary
from ..simd.rebound import rebound

__all__ = ["header", "printed"]

Text = Callable[..., Any]

HEAD = """\
// Printed from tape/numerics/math/elementary.py by `python -m dgrr.tape.numerics.cuda.printer`: do not edit.
#pragma once
#include "same_bits.cuh"
"""

FUNCTIONS = {"exp_of": elementary.exp, "log_of": elementary.log}
"""What sources call, and the formulas."""


class PrintedValue:
    """A name in the function being printed."""

    def __init__(self, page: "Page", name: str) -> None:
        self.page, self.name = page, name

    def __add__(self, other: Any) -> "PrintedValue":
        return self.page.number("add", self, other)

    def __sub__(self, other: Any) -> "PrintedValue":
        return self.page.number("sub", self, other)

    def __mul__(self, other: Any) -> "PrintedValue":
        return self.page.number("mul", self, other)

    def __truediv__(self, other: Any) -> "PrintedValue":
        return self.page.number("div", self, other)

    def __neg__(self) -> "PrintedValue":
        return self.page.line(self.page.real, f"-{self.name}")

    def __abs__(self) -> "PrintedValue":
        rest = self.page.word((1 << self.page.sign) - 1)
        return self.page.line(self.page.real, f"from_bits(bits({self.name}) & {rest})")

    def __lt__(self, other: Any) -> "PrintedValue":
        return self._compared("<", other)

    def __le__(self, other: Any) -> "PrintedValue":
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> "PrintedValue":
        return self._compared(">", other)

    def __eq__(self, other: Any) -> Any:
        return self._compared("==", other)

    def __ne__(self, other: Any) -> Any:
        return self._compared("!=", other)

    __hash__ = None  # type: ignore[assignment]

    def _compared(self, sign: str, other: Any) -> "PrintedValue":
        return self.page.line("bool", f"{self.name} {sign} {self.page.shown(other)}")


class Page:
    """The lines of a function of one number, for an element type."""

    def __init__(self, table: Constants[Any]) -> None:
        self.table, self.lines = table, list[str]()
        wide = table is FLOAT64
        self.real, self.bits, self.sign = ("double", "unsigned long long", 63) if wide else ("float", "unsigned", 31)
        self._float, self._word = ("", "ull") if wide else ("f", "u")

    def line(self, kind: str, expression: str) -> PrintedValue:
        """A value of its own name."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"  const {kind} {name} = {expression};")
        return PrintedValue(self, name)

    def number(self, function: str, *operands: Any) -> PrintedValue:
        """What a function of numbers gives."""
        return self.line(self.real, f"{function}({', '.join(map(self.shown, operands))})")

    def integer(self, sign: str) -> Callable[[Any, Any], PrintedValue]:
        """An operation of words."""
        return lambda x, y: self.line(self.bits, f"{self.shown(x)} {sign} {self.shown(y)}")

    def word(self, value: int) -> str:
        """A whole number, of the width of the element type."""
        return f"{value % (2 << self.sign)}{self._word}"

    def shown(self, value: Any) -> str:
        """An operand: a name, or a number in hexadecimal."""
        if isinstance(value, PrintedValue):
            return value.name
        if isinstance(value, int):
            return self.word(value)
        number = float(value)
        if isnan(number) or isinf(number):
            mantissa = int(self.table.mantissa)
            word = (1 << self.sign) - (1 << mantissa) + (isnan(number) << mantissa - 1)
            return f"from_bits({self.word(word + ((number < 0) << self.sign))})"
        return f"{number.hex()}{self._float}"

    def operations(self) -> dict[str, Any]:
        """What stands in the place of each operation of formulas."""
        fields = {name: _numbers(value) for name, value in self.table._asdict().items()}
        return {
            "fma": lambda a, b, c: self.number("fused", a, b, c),
            "sqrt": lambda x: self.number("root", x),
            "select": lambda c, yes, no: self.line(self.real, f"{c.name} ? {self.shown(yes)} : {self.shown(no)}"),
            "polynomial": self._polynomial,
            "constant": lambda x, value: _Number(value),
            "constants": lambda x: SimpleNamespace(**fields),
            "bits_of": lambda x: self.line(self.bits, f"bits({self.shown(x)})"),
            "float_of": lambda x: self.number("from_bits", x),
            **{name: self.integer(sign) for name, sign in WORDS.items()},
        }

    def _polynomial(self, x: PrintedValue, coefficients: tuple[Any, ...]) -> Any:
        value: Any = coefficients[0]
        for coefficient in coefficients[1:]:
            value = self.number("fused", value, x, coefficient)
        return value


WORDS = {"add": "+", "sub": "-", "shl": "<<", "lshr": ">>", "bitand": "&", "bitor": "|"}


class _Number(float):
    """A number of the text: an operation with a value is printed, on either side of it."""

    def __neg__(self) -> "_Number":
        return _Number(-float(self))

    def __add__(self, other: Any) -> Any:
        return other.page.number("add", self, other)

    def __sub__(self, other: Any) -> Any:
        return other.page.number("sub", self, other)

    def __mul__(self, other: Any) -> Any:
        return other.page.number("mul", self, other)

    def __truediv__(self, other: Any) -> Any:
        return other.page.number("div", self, other)


def _numbers(value: Any) -> Any:
    """The floats of a table as those of a text."""
    if isinstance(value, tuple):
        return tuple(map(_numbers, value))
    return value if isinstance(value, int) else _Number(value)


def printed(name: str, text: Text, table: Constants[Any]) -> str:
    """A function of one number, for the element type of a table of constants."""
    page = Page(table)
    result: PrintedValue = rebound(text, page.operations())(PrintedValue(page, "x"))
    return "\n".join([f"DEV {page.real} {name}({page.real} x) {{", *page.lines, f"  return {result.name};", "}"])


def header() -> str:
    """``elementary.cuh``: the functions that sources call, for both element types."""
    tables = (FLOAT32, FLOAT64)
    return "\n".join([HEAD, *(printed(name, text, t) for name, text in FUNCTIONS.items() for t in tables), ""])


if __name__ == "__main__":
    print(header(), end="")
