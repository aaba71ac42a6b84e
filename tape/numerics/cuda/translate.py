"""Kernels as modules of LLVM, in a process whose code is for GPUs: the same text that a CPU runs."""

# numba's types carry no types.
# pyright: basic, reportUnknownVariableType=false
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from ..basic.copy import copy
from ..engine.kernel import NUMBA_TYPES, Kernel
from ..engine.numba_internals import callback, llvm_code
from .entry import LinkCode, chain_entry, kernel_entry

Links = Sequence[tuple[Kernel, np.dtype[Any], Sequence[tuple[int, int]]]]


def kernel_modules(kernel: Kernel, dtype: np.dtype[Any]) -> list[str]:
    """LLVM's modules of a kernel for elements of ``dtype``: its code, and the entry."""
    text, symbol = _code(kernel, dtype)
    return [text, kernel_entry(symbol)]


def chain_modules(links: Links, locals: int) -> list[str]:
    """The same of a chain, which becomes one kernel."""
    codes = {(kernel, dtype): _code(kernel, dtype) for kernel, dtype, _ in links}
    entry = chain_entry([LinkCode(codes[k, d][1], operands, k is not copy) for k, d, operands in links], locals)
    return [*(text for text, _ in codes.values()), entry]


def _code(kernel: Kernel, dtype: np.dtype[Any]) -> tuple[str, str]:
    kind = types.int64(types.CPointer(NUMBA_TYPES[dtype]), types.int64, types.int64, types.int64)
    return llvm_code(callback(kernel.body, kind), kind)
