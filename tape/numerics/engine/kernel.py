"""Kernels: compiled functions that fill arrays given by address, one machine-code version per dtype.

A kernel is a Python function ``kernel(table, ints, part, parts) -> status``:

* ``table`` points to array addresses, output first; its static type is the element type, so one
  source serves float32 and float64;
* ``ints`` is the address of the call's int64 words: sizes, strides, attributes;
* ``part`` of ``parts`` says which share of the output to fill. Shares split outputs, never a sum, so the
  bits do not depend on them;
* the status is 0, or 1 + the flat position of the first index that is out of range.
"""

# numba's decorators carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportPrivateImportUsage=false, reportAssignmentType=false
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import carray, njit, types

from .code_for import GPU
from .compile_notice import tell_of_first_use
from .disk_cache import keep_on_disk
from .intrinsics import (
    ALIGNED,
    DATA_FIELD,
    FLAGS,
    OBJECT,
    ROW_MAJOR,
    WRITEABLE,
    address_of,
    addresses,
    enter_environment,
    invoke,
    leave_environment,
    pointer,
    put_word,
    retyped,
    word,
)
from .numba_compiler import CFunc, callback, entry_point, is_kept

Body = Callable[[Any, int, int, int], int]

NUMBA_TYPES = {
    np.dtype(np.float32): types.float32,
    np.dtype(np.float64): types.float64,
    np.dtype(np.int64): types.int64,
    np.dtype(np.bool_): types.uint8,
}
"""The element type under which kernels read and write each dtype; bools are bytes of 0 and 1."""

KERNELS: dict[str, "Kernel"] = {}
"""Every kernel by name."""


class Kernel:
    """A kernel's body and its compiled versions, made on first use and kept on disk."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.name = body.__name__
        self.__doc__ = body.__doc__
        self.variants: dict[str, Kernel] = {}
        """Other kernels by name that can stand in for this one: for the same table and words, with the same bits."""
        self.formula: Callable[..., Any] | None = None
        """What it computes of each place, which Python can read, if it is a loop around that."""
        self.cleared = False
        """Whether a GPU must fill the output with zeros before it runs."""
        self._compiled: dict[np.dtype[Any], CFunc] = {}
        self._addresses: dict[np.dtype[Any], int] = {}
        if self.name in KERNELS:
            raise ValueError(f"kernel {self.name!r} is defined twice")
        KERNELS[self.name] = self

    def address(self, dtype: np.dtype[Any]) -> int:
        """Address of the machine code for ``dtype``; compiled or loaded from disk on first use."""
        try:
            return self._addresses[dtype]
        except KeyError:
            address: int = self.compiled(dtype).address  # type: ignore[assignment]
            self._addresses[dtype] = address
            return address

    def compiled(self, dtype: np.dtype[Any]) -> CFunc:
        """The numba callback for ``dtype``."""
        if dtype not in self._compiled:
            version, signature = self._version(dtype)
            if not is_kept(version, signature):
                tell_of_first_use()
            version.compile()
            self._compiled[dtype] = version
        return self._compiled[dtype]

    def is_ready(self, dtype: np.dtype[Any]) -> bool:
        """Whether the machine code for ``dtype`` is here, or only has to be loaded."""
        return dtype in self._compiled or is_kept(*self._version(dtype))

    def _version(self, dtype: np.dtype[Any]) -> tuple[CFunc, Any]:
        """The callback for ``dtype``, not yet compiled, and its signature."""
        signature = types.int64(types.CPointer(NUMBA_TYPES[dtype]), types.int64, types.int64, types.int64)
        version = callback(self.body, signature)
        keep_on_disk(version, self.body)
        return version, signature


def kernel(body: Body) -> Kernel:
    """Make a kernel of a function ``(table, ints, part, parts) -> status``."""
    return Kernel(body)


def _fair_share(total, part, parts):
    if parts == 1:  # most calls: two divisions cost as much as the elements of a small array
        return 0, total
    start = total * part // parts
    return start, total * (part + 1) // parts - start


def _one_item(total, part, parts):
    return part, 1 if part < total else 0


share: Any = njit(inline="always")(_one_item if GPU else _fair_share)
"""``share(total, part, parts)``: ``(start, count)`` of one of ``parts`` nearly equal shares of ``total`` items.

On a GPU there are never fewer parts than items, and each of the first takes one: neighbours stay neighbours.
"""


@njit(inline="always")
def vector(table, k, offset, n):
    """``n`` elements of the ``k``-th array of a table, from ``offset`` on."""
    return carray(pointer(table, k, offset), n)


@njit(inline="always")
def vector_as(table, like, k, offset, n):
    """The same for an array whose elements have the type of ``like`` instead of the table's."""
    return carray(pointer(retyped(table, like), k, offset), n)


def _call(kernel, ints, part, parts, arrays):
    outer = enter_environment()
    status = invoke(kernel, addresses(arrays), ints, part, parts)
    leave_environment(outer)
    return status


call: Any = njit(nogil=True)(_call)
"""Run a kernel: ``call(address, ints address, part, parts, (id(out), id(input), ...)) -> status``."""

REFUSED = -1
"""The status of a call that did nothing because an array has not the order that it must have."""


def _fill(kernel, ints, strided, arrays):
    for k in range(len(arrays)):
        needed = ALIGNED if (strided >> k) & 1 else ROW_MAJOR
        if word(address_of(arrays[k]) + DATA_FIELD, FLAGS) & needed != needed:
            return REFUSED
    outer = enter_environment()
    status = invoke(kernel, addresses(arrays), ints, 0, 1)
    leave_environment(outer)
    flags = address_of(arrays[0]) + DATA_FIELD + 8 * FLAGS
    put_word(flags, 0, word(flags, 0) & ~WRITEABLE)
    return status


_fill_dispatcher: Any = njit(nogil=True)(_fill)

for _dispatcher in (call, _fill_dispatcher):
    keep_on_disk(_dispatcher, _dispatcher.py_func)


@cache
def fill(count: int) -> Callable[[int, int, int, tuple[Any, ...]], int]:
    """What runs a kernel on so many arrays: ``(address, ints address, strided, (out, input, ...)) -> status``.

    The output, a fresh array, is read-only afterwards. All arrays must be in row-major order, apart from those whose
    bit is set in ``strided``, which must only be aligned; else nothing is done, and the status is `REFUSED`.

    It is entered without numba's dispatcher, which looks at the type of every argument and takes longer than a small
    kernel: whatever is given for an array is taken for one.
    """
    signature = (types.int64, types.int64, types.int64, types.UniTuple(OBJECT, count))
    entry: Callable[[int, int, int, tuple[Any, ...]], int] = entry_point(_fill_dispatcher, signature)
    return entry
