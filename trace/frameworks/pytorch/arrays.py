"""PyTorch's tensors as arrays."""

from threading import local
from typing import Any

import numpy as np

from ....base.arrays import Array


class _Work(local):
    """What a thread is doing."""

    reading = False


_AT_WORK = _Work()


def is_reading() -> bool:
    """Whether a tensor is being read in this thread, so that what PyTorch does is none of the user's."""
    return _AT_WORK.reading


def array(tensor: Any, *, copy: bool = True) -> Array:
    """A tensor's values in the memory of the CPU, in a copy if asked; of a sharded one those of this rank.

    Floats of less than 32 bits become float32, exactly; complex numbers become pairs along a last axis.
    """
    before, _AT_WORK.reading = is_reading(), True
    try:
        return _array(tensor.detach(), copy=copy)
    finally:
        _AT_WORK.reading = before


def _array(tensor: Any, *, copy: bool) -> Array:
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()
    found: Any = tensor.resolve_conj().resolve_neg().to("cpu", copy=copy).numpy()
    return np.stack([found.real, found.imag], -1) if found.dtype.kind == "c" else found
