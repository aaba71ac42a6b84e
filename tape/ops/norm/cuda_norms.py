"""Normalised rows and their gradients on CUDA devices."""

from typing import Any

import numpy as np

from ...numerics.cuda.rows import row_launches
from ...numerics.cuda.written import Form, Launch, Words, written
from . import kernels as at

SOURCE = "tape/ops/norm/norms.cu"

INPUTS = {"normalize": 1, "row_statistics": 1, "normalize_grad": 2, "normalize_weight_grad": 2}
"""The kernels, and how many arrays stand between the output and the parameters."""


def _form(name: str, inputs: int) -> Form:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        n = words[at.SEGMENTS] * words[at.LENGTH]
        if n == 0 and name in ("normalize", "normalize_grad"):
            return ()
        bias = words[at.BIAS] if name == "normalize" else 0
        pointers = tuple(range(max(inputs, words[at.WEIGHT], bias) + 1))
        own = (*words[: at.EPS + 1], bias)
        return row_launches(SOURCE, name, dtype.itemsize, words[at.ROWS], n, pointers, own)

    return Form(launches, lambda dtype, words: 0)


written.update({name: _form(name, inputs) for name, inputs in INPUTS.items()})
