"""The softmax of attention, and its gradient, on CUDA devices."""

from typing import Any

import numpy as np

from ...numerics.cuda.rows import row_launches
from ...numerics.cuda.written import CudaForm, Launch, Words, written
from . import kernels as at

SOURCE = "tape/ops/attention/attention.cu"


def softmax_launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launch of ``masked_softmax``."""
    own = words[: at.MASK_ROWS + 1]
    pointers = (0, 1, 2) if words[at.MASK_ROWS] else (0, 1)
    return row_launches(SOURCE, "masked_softmax", dtype.itemsize, words[at.ROWS], words[at.KEYS], pointers, own)


def grad_launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launch of ``scaled_softmax_grad``."""
    rows, n = words[:2]
    return row_launches(SOURCE, "scaled_softmax_grad", dtype.itemsize, rows, n, (0, 1, 2), words[:3])


written["masked_softmax"] = CudaForm(softmax_launches, lambda dtype, words: 0)
written["scaled_softmax_grad"] = CudaForm(grad_launches, lambda dtype, words: 0)
