"""The text of a kernel in LLVM's language, without what only Python would call."""

# numba's types carry no types.
# pyright: basic, reportUnknownVariableType=false
import re
from typing import Any, NamedTuple

import numpy as np
from numba import types

from ..engine.kernel import NUMBA_TYPES, Kernel
from ..engine.numba_compiler import callback, llvm_code

UNOWNED = "define internal void @NRT_{}(ptr %array) alwaysinline {{ ret void }}"
"""Numba counts the references to arrays; those of kernels have no owner."""


class KernelText(NamedTuple):
    """A module, and the kernel in it: ``i32 symbol(i64 *status, i8 **error, table, words, part, parts)``."""

    text: str
    symbol: str


def kernel_text(kernel: Kernel, dtype: np.dtype[Any]) -> KernelText:
    """The text of a kernel for elements of ``dtype``."""
    kind = types.int64(types.CPointer(NUMBA_TYPES[dtype]), types.int64, types.int64, types.int64)
    symbol = symbol_of(kernel.name, str(dtype))
    return KernelText(cleaned(*llvm_code(callback(kernel.body, kind), kind), symbol), symbol)


def symbol_of(name: str, dtype: str) -> str:
    """By which a kernel is called."""
    return f"kernel_{name}_{dtype}"


def cleaned(text: str, symbol: str, wanted: str) -> str:
    """A text that numba wrote, its function under another name: numba's own holds counters of the process."""
    text = text.replace(symbol, wanted)
    text = re.sub(rf"^define [^@\n]*@cfunc\.{wanted}\(.*?^}}\n", "", text, flags=re.M | re.S)
    for name in ("incref", "decref"):
        known = re.compile(rf"^define [^@\n]*@NRT_{name}\(", re.M)
        text, found = known.subn(f"define linkonce_odr void @owned_{name}(", text)
        if found:
            text += "\n" + UNOWNED.format(name)
    return text
