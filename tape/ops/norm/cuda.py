"""Normalised rows and their gradients on CUDA devices."""

from typing import Any

import numpy as np

from ...numerics.cuda.columns import column_launches
from ...numerics.cuda.rows import row_launches
from ...numerics.cuda.written import CudaForm, Launch, Words, written
from .kernels import rows as at

SOURCE = "tape/ops/norm/norms.cu"
COLUMNS = "tape/ops/norm/norm_columns.cu"

INPUTS = {"normalize": 1, "row_statistics": 1, "normalize_grad": 2, "normalize_weight_grad": 2}
"""The kernels, and how many arrays stand between the output and the parameters."""


def _form(name: str, inputs: int) -> CudaForm:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        n = words[at.SEGMENTS] * words[at.LENGTH]
        if n == 0 and name in ("normalize", "normalize_grad"):
            return ()
        bias = words[at.BIAS] if name == "normalize" else 0
        pointers = tuple(range(max(inputs, words[at.WEIGHT], bias) + 1))
        own = (*words[: at.EPS + 1], bias)
        return row_launches(SOURCE, name, dtype.itemsize, words[at.ROWS], n, pointers, own)

    return CudaForm(launches, lambda dtype, words: 0)


COLUMN_INPUTS = {"inverse_deviations": 2, "column_weight_grad": 3, "column_slopes": 4}
"""The kernels of columns, likewise."""


def _column_form(name: str, inputs: int) -> CudaForm:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        rows, columns, *rest = words[:3]
        weight = words[2] if name == "column_slopes" else 0
        pointers = tuple(range(max(inputs, weight) + 1))
        own = (rows, columns, *rest)
        return column_launches(COLUMNS, name, dtype.itemsize, (1, rows, columns), pointers, own)

    return CudaForm(launches, lambda dtype, words: 0)


written.update({name: _form(name, inputs) for name, inputs in INPUTS.items()})
written.update({name: _column_form(name, inputs) for name, inputs in COLUMN_INPUTS.items()})
