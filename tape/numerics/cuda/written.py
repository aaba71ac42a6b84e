"""Kernels written in CUDA C++: which CPU kernels have one, and how it is launched.

A form stands for the CPU kernel of its name: from the same table of arrays and the same words it fills the same
output with the same bits. How it is launched follows from the element type and the words alone, so that a device
decides nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Words = tuple[int, ...]
Triple = tuple[int, int, int]

SCRATCH, WORDS = -1, -2
"""Positions of the form's own scratch, and of the CPU kernel's int64 words, both in the device's memory: they stand
behind the table, so that the addresses of a launch are picked from ``[*table, words, scratch]``."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of an entry of a source.

    ``source`` is the file's path in the package; ``defines`` are its macros; ``shared`` is dynamic shared memory in
    bytes; ``pointers`` are positions in the CPU kernel's table (`SCRATCH` and `WORDS` behind it); ``words`` are the
    int64 words of this launch. Every entry has the signature ``void NAME(Call call, Report report)``.
    """

    source: str
    entry: str
    defines: tuple[tuple[str, int | str], ...]
    grid: Triple
    block: Triple
    shared: int
    pointers: tuple[int, ...]
    words: Words


@dataclass(frozen=True, slots=True)
class CudaForm:
    """A CPU kernel on a CUDA device: launches in this order, and bytes of memory between them.

    ``launches(dtype, words)`` may be empty where there is nothing to fill. ``scratch(dtype, words)`` bytes begin at a
    multiple of 16 and need not be cleared before. Arrays of the table may begin anywhere. ``older`` stands for it where
    blocks form no clusters and have `OLDER_BYTES` of shared memory.
    """

    launches: Callable[[np.dtype[Any], Words], tuple[Launch, ...]]
    scratch: Callable[[np.dtype[Any], Words], int]
    older: "CudaForm | None" = None

    def on(self, architecture: str) -> "CudaForm":
        """The form for ``sm_80``, say: the older one if there is one, but on architectures that are `LARGE`."""
        return self.older if self.older is not None and int(architecture[3:]) not in LARGE else self


LARGE = range(90, 120)
"""Compute capabilities, times ten, with clusters and `NEWEST_BYTES`: those from 12.0 on are of graphics cards again."""

OLDER_BYTES = 64 << 10
"""Shared memory that a block has on every device from compute capability 7.5 on."""

NEWEST_BYTES = 227 << 10
"""The same from 9.0 on, before 12.0."""

written: dict[str, CudaForm] = {}
"""The forms by the names of their CPU kernels; the modules beside the sources put them here."""

REALS = {4: "float", 8: "double"}
"""The element types in CUDA C++, by bytes."""


def blocks_of(n: int, each: int) -> int:
    """How many blocks of ``each`` hold ``n``."""
    return -(-n // each)


def divisor(length: int) -> tuple[int, int]:
    """Factor and shift that divide every number below 2^31.

    Source: Granlund and Montgomery (1994), Division by invariant integers using multiplication.

    >>> factor, shift = divisor(7)
    >>> all(i * factor >> shift == i // 7 for i in (0, 6, 7, 48, 2**31 - 1, 2**31 - 2))
    True
    """
    bits = (length - 1).bit_length()
    return -(-(1 << (31 + bits)) // length), 31 + bits
