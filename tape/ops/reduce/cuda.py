"""Sums along rows and down columns, softmax, and the cross-entropy of labels, on CUDA devices."""

from typing import Any

import numpy as np

from ...numerics.cuda.columns import column_launches, sums_bytes
from ...numerics.cuda.rows import ROW_BLOCK, block_launches, row_launches
from ...numerics.cuda.tiles import PROCESSORS
from ...numerics.cuda.written import REALS, SCRATCH, CudaForm, Launch, Words, blocks_of, written

SOURCE = "tape/ops/reduce/rows.cu"
COLUMNS = "tape/ops/reduce/columns.cu"

ARRAYS = {
    "softmax": 2,
    "log_softmax": 2,
    "logsumexp": 2,
    "cross_entropy_rows": 3,
    "cross_entropy_grad": 4,
    "cross_entropy_rows_with_grad": 5,
}
"""The kernels of ``rows, n``, and how many arrays their tables have."""


def _form(name: str, arrays: int) -> CudaForm:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        rows, n = words[:2]
        return row_launches(SOURCE, name, dtype.itemsize, rows, n, tuple(range(arrays)), (rows, n))

    return CudaForm(launches, lambda dtype, words: 0)


PLAIN, SQUARES, DIFFERENCES = range(3)
"""What is summed: elements, their squares, the squares of differences."""

AS_IT_IS, OVER_N, ROOT = range(3)
"""What becomes of a sum."""


def _sum_form(arrays: int, term: int, finish: int, *, one_row: bool = False) -> CudaForm:
    """A sum along rows, of which the CPU's words are rows and n, or n alone."""

    def sizes(words: Words) -> tuple[int, int, bool]:
        rows, n = (1, words[0]) if one_row else words[:2]
        return rows, n, n > ROW_BLOCK and rows < PROCESSORS

    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        rows, n, apart = sizes(words)
        pointers, own, size = (0, 1, arrays - 1, SCRATCH), (rows, n, term, finish), dtype.itemsize
        if not apart:
            return row_launches(SOURCE, "sum_rows", size, rows, n, pointers[:3], own)
        if rows == 0:
            return ()
        defines = (("REAL", REALS[size]), ("GROUPS", 1))
        teams = (rows * blocks_of(n, ROW_BLOCK), 1)
        (sums,) = block_launches(SOURCE, "sum_blocks", size, teams, ROW_BLOCK, pointers, own)
        total = Launch(SOURCE, "add_blocks", defines, (blocks_of(rows, 32), 1, 1), (32, 1, 1), 0, pointers, own)
        return sums, total

    def scratch(dtype: np.dtype[Any], words: Words) -> int:
        rows, n, apart = sizes(words)
        return rows * blocks_of(n, ROW_BLOCK) * dtype.itemsize if apart else 0

    return CudaForm(launches, scratch)


def _column_form(mean: int) -> CudaForm:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        outer, rows, columns, *added = words
        arrays, own = 2 + len(added), (mean, len(added))
        return column_launches(COLUMNS, "sum_columns", dtype.itemsize, (outer, rows, columns), arrays, own)

    def scratch(dtype: np.dtype[Any], words: Words) -> int:
        outer, rows, columns = words[:3]
        return sums_bytes(dtype.itemsize, (outer, rows, columns))

    return CudaForm(launches, scratch)


written.update({name: _form(name, arrays) for name, arrays in ARRAYS.items()})
written["sum_columns"], written["mean_columns"] = _column_form(0), _column_form(1)
written["sum_rows"] = _sum_form(2, PLAIN, AS_IT_IS)
written["mean_rows"] = _sum_form(2, PLAIN, OVER_N)
written["mean_squared_difference"] = _sum_form(3, DIFFERENCES, OVER_N, one_row=True)
written["tensor_norm"] = _sum_form(2, SQUARES, ROOT, one_row=True)
