"""Rows added at indices, on CUDA devices."""

from typing import Any

import numpy as np

from ...numerics.cuda.written import REALS, SCRATCH, CudaForm, Launch, Words, blocks_of, written

SOURCE = "tape/ops/indices/scatter.cu"

SCRATCH_AT = 4
"""The position of the scratch."""

FEW = 8192
"""So many indices and rows are grouped in one launch, by one block of threads."""

ONE_BLOCK, THREADS = 1024, 256

LARGEST = 1 << 31


def _form(inside: int, base: int, indices: int, values: int) -> CudaForm:
    """Of a kernel with the words of `scatter_add`: the positions of its arrays, 0 where there is none."""
    pointers = (*range(max(indices, values) + 1), *(0,) * (SCRATCH_AT - max(indices, values) - 1), SCRATCH)

    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        outer, n, inner, count = words[:4]
        if count + n >= LARGEST:
            raise OverflowError(
                f"dgrr: rows added at indices on a CUDA device: expected fewer than 2^31 indices and rows together, "
                f"got {count} and {n}; split the batch"
            )
        own, real = (outer, n, inner, count, inside, base, values, indices), ("REAL", REALS[dtype.itemsize])

        def launch(entry: str, items: int, threads: int = THREADS) -> Launch:
            defines, blocks = (real, ("ONE_BLOCK", int(threads == ONE_BLOCK))), blocks_of(max(items, 1), threads)
            return Launch(SOURCE, entry, defines, (blocks, 1, 1), (threads, 1, 1), 0, pointers, own)

        adding = launch("add_rows", outer * n * inner)
        if max(n, count) <= FEW:
            return launch("group_rows", 1, ONE_BLOCK), adding
        stages = (("clear_rows", n), ("count_positions", count), ("room_of_rows", n), ("positions_of_rows", count))
        return (*(launch(entry, items) for entry, items in stages), launch("order_positions", count), adding)

    return CudaForm(launches, lambda dtype, words: 4 * (2 * words[1] + 1 + 2 * words[3]))


written["scatter_add"] = _form(inside=0, base=0, indices=2, values=1)
written["scatter_add_inside"] = _form(inside=1, base=0, indices=2, values=1)
written["index_add"] = _form(inside=0, base=1, indices=2, values=3)
