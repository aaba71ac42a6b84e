"""Kernels that are formulas: a loop that applies one to every place of its arrays.

A kernel's body is the loop's own code with the formula among its globals. So numba compiles it, the folder of kernels
keeps it and a GPU's translator finds it as it does every other; what names its file is the digest of the module that
makes it, which imports this one: a loop that changes counts.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, overload

import numpy as np

from ..engine.intrinsics import real, word
from ..engine.kernel import Kernel, share, vector, vector_as
from ..engine.numba_internals import INLINED, formula
from .lanes import inlined
from .operations import float_of
from .vectors import combine, transform

__all__ = ["comparing", "kernel_of", "pointwise", "selecting"]

Text = Callable[..., Any]

BYTE = np.uint8(0)

TEXT: Any = None
"""The formula: another one in every kernel."""


@inlined
def _number(table, ints, k):
    return real(table, float_of(word(ints, k)))


def _unary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    transform(TEXT, vector(table, 0, start, n), vector(table, 1, start, n))
    return 0


def _unary_with_count(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    transform(TEXT, vector(table, 0, start, n), vector(table, 1, start, n), real(table, word(ints, 1)))
    return 0


def _unary_with_one(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    transform(TEXT, vector(table, 0, start, n), vector(table, 1, start, n), _number(table, ints, 1))
    return 0


def _unary_with_two(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    first, second = _number(table, ints, 1), _number(table, ints, 2)
    transform(TEXT, vector(table, 0, start, n), vector(table, 1, start, n), first, second)
    return 0


def _binary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    combine(TEXT, vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n))
    return 0


def _binary_with_one(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, a, b = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    combine(TEXT, out, a, b, _number(table, ints, 1))
    return 0


def _binary_with_two(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, a, b = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    combine(TEXT, out, a, b, _number(table, ints, 1), _number(table, ints, 2))
    return 0


def _ternary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, a = vector(table, 0, start, n), vector(table, 1, start, n)
    b, c = vector(table, 2, start, n), vector(table, 3, start, n)
    for i in range(n):
        out[i] = TEXT(a[i], b[i], c[i])
    return 0


def _selecting(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, mask = vector(table, 0, start, n), vector_as(table, BYTE, 1, start, n)
    a, b = vector(table, 2, start, n), vector(table, 3, start, n)
    for i in range(n):
        out[i] = TEXT(mask[i] != 0, a[i], b[i])
    return 0


def _comparing(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, a, b = vector_as(table, BYTE, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    for i in range(n):
        out[i] = TEXT(a[i], b[i])
    return 0


LOOPS: dict[tuple[int, int], Text] = {
    (1, 0): _unary,
    (1, 1): _unary_with_one,
    (1, 2): _unary_with_two,
    (2, 0): _binary,
    (2, 1): _binary_with_one,
    (2, 2): _binary_with_two,
    (3, 0): _ternary,
}
"""By how many arrays and how many numbers a formula takes."""


@overload
def pointwise(text: Text, *, name: str = "", home: str = "", numbers: int = 0, whole: bool = False) -> Kernel: ...
@overload
def pointwise(*, numbers: int = 0, whole: bool = False) -> Callable[[Text], Kernel]: ...
def pointwise(
    text: Text | None = None, *, name: str = "", home: str = "", numbers: int = 0, whole: bool = False
) -> Kernel | Callable[[Text], Kernel]:
    """The kernel of a formula of one, two or three arrays, and of ``numbers`` behind them.

    Arrays are contiguous: the result, then those of the formula; ``ints``: the count of elements, then the bits of each
    number as a float64, or a number that is ``whole``. ``name`` and ``home``, the module that makes it, are those of
    the formula where they are not given. Raises TypeError for other numbers of arrays.
    """
    if text is None:
        return partial(pointwise, numbers=numbers, whole=whole)
    arrays = text.__code__.co_argcount - numbers
    if (arrays, numbers) not in LOOPS:
        raise TypeError(
            f"pointwise: formula {text.__name__!r}: expected one to three arrays, and behind one or two at most two "
            f"numbers, got {arrays} and {numbers}; write a kernel"
        )
    return kernel_of(_unary_with_count if whole else LOOPS[arrays, numbers], text, name=name, home=home)


def selecting(text: Text) -> Kernel:
    """The kernel of a formula of a mask of bytes and of two arrays."""
    return kernel_of(_selecting, text)


def comparing(text: Text) -> Kernel:
    """The kernel of a formula of two arrays that gives a mask of bytes."""
    return kernel_of(_comparing, text)


def kernel_of(loop: Text, text: Text, *, name: str = "", home: str = "", **names: Any) -> Kernel:
    """The kernel of a loop in which the formula is ``TEXT``, and whatever else it names is among ``names``.

    ``home`` is the module whose import makes the kernel; the formula's own where it is not given.
    """
    if text not in INLINED:
        formula(text)
    name = name or text.__name__
    file = str(sys.modules[home].__file__) if home else text.__code__.co_filename  # there is none of a notebook's
    code = loop.__code__.replace(co_name=name, co_qualname=name, co_filename=file)
    body: Any = FunctionType(code, {**loop.__globals__, "TEXT": text, **names}, name)
    body.__module__, body.__doc__ = home or text.__module__, text.__doc__
    made = Kernel(body)
    made.formula = text
    return made
