"""PyTorch's tensors as arrays."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....base.errors import DTypeError
from ...v2.format.digest import FORMAT_NAMES, numpy_dtype


class _Work(local):
    """What a thread is doing."""

    reading = False


_AT_WORK = _Work()


def is_reading() -> bool:
    """Whether a tensor is being read in this thread, so that what PyTorch does is none of the user's."""
    return _AT_WORK.reading


@contextmanager
def reading() -> Generator[None]:
    """What PyTorch does meanwhile in this thread is none of the user's."""
    before, _AT_WORK.reading = is_reading(), True
    try:
        yield
    finally:
        _AT_WORK.reading = before


def array(tensor: Any, *, copy: bool = True) -> Array:
    """A tensor's values in the memory of the CPU, in a copy if asked; of a sharded one those of this rank.

    Raises DTypeError for a dtype that no trace has.
    """
    with reading():
        return _array(local_part(tensor.detach()), copy=copy)


def tensor_of(torch: Any, values: Array, dtype: Any) -> Any:
    """A tensor of the CPU with the bits of an array, in memory of its own."""
    if not values.size:  # of which torch.frombuffer makes nothing
        return torch.empty(values.shape, dtype=dtype)
    return torch.frombuffer(bytearray(values.tobytes()), dtype=dtype).reshape(values.shape)


def local_part(tensor: Any) -> Any:
    """What this rank has of a tensor, once it has arrived."""
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return tensor.wait() if hasattr(tensor, "trigger_wait") else tensor


def dtype_word(dtype: Any) -> str:
    """What numpy or `ml_dtypes` calls a dtype of PyTorch's."""
    return str(dtype).removeprefix("torch.")


def _array(tensor: Any, *, copy: bool) -> Array:
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    word = dtype_word(tensor.dtype)
    if word not in FORMAT_NAMES:
        raise DTypeError(f"record_torch: expected tensors of {', '.join(FORMAT_NAMES)}; got {word}")
    there: Array = np.asarray(_Lent(tensor.resolve_conj().resolve_neg().to("cpu")))
    return (there.copy() if copy else there).view(numpy_dtype(FORMAT_NAMES[word]))


class _Lent:
    """The memory of a tensor as numpy takes it: `Tensor.numpy` would have PyTorch never free or resize it again."""

    def __init__(self, tensor: Any) -> None:
        size = tensor.element_size()
        self._tensor = tensor
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": tuple(size * stride for stride in tensor.stride()),
            "typestr": f"|V{size}",
            "version": 3,
        }
