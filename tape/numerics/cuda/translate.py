"""Kernels as modules of LLVM, in a process whose code is for GPUs: the same text that a CPU runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.kernel import Kernel
from ..llvm.kernel_text import kernel_text
from .entry import LinkCode, Operand, chain_entry, kernel_entry

Links = Sequence[tuple[Kernel, np.dtype[Any], Sequence[Operand]]]


def kernel_modules(kernel: Kernel, dtype: np.dtype[Any]) -> list[str]:
    """LLVM's modules of a kernel for elements of ``dtype``: its code, and the entry."""
    text, symbol = kernel_text(kernel, dtype)
    return [text, kernel_entry(symbol)]


def chain_modules(links: Links, locals: int) -> list[str]:
    """The same of a chain, which becomes one kernel."""
    codes = {(kernel, dtype): kernel_text(kernel, dtype) for kernel, dtype, _ in links}
    entry = chain_entry([LinkCode(codes[k, d].symbol, operands) for k, d, operands in links], locals)
    return [*(code.text for code in codes.values()), entry]
