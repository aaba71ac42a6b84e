"""Sums along rows and down columns, softmax, and the cross-entropy of labels, on CUDA devices."""

from typing import Any

import numpy as np

from ...numerics.cuda.columns import column_launches
from ...numerics.cuda.rows import row_launches
from ...numerics.cuda.written import Form, Launch, Words, written

SOURCE = "tape/ops/reduce/rows.cu"
COLUMNS = "tape/ops/reduce/columns.cu"

ARRAYS = {
    "sum_rows": 2,
    "mean_rows": 2,
    "softmax": 2,
    "log_softmax": 2,
    "logsumexp": 2,
    "cross_entropy_rows": 3,
    "cross_entropy_grad": 4,
    "cross_entropy_rows_with_grad": 5,
}
"""The kernels of ``rows, n``, and how many arrays their tables have."""


def _form(name: str, arrays: int) -> Form:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        rows, n = words[:2]
        return row_launches(SOURCE, name, dtype.itemsize, rows, n, tuple(range(arrays)), (rows, n))

    return Form(launches, lambda dtype, words: 0)


def _column_form(name: str) -> Form:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        outer, rows, columns = words[:3]
        return column_launches(COLUMNS, name, dtype.itemsize, (outer, rows, columns), (0, 1), words[:3])

    return Form(launches, lambda dtype, words: 0)


written.update({name: _form(name, arrays) for name, arrays in ARRAYS.items()})
written.update({name: _column_form(name) for name in ("sum_columns", "mean_columns")})
