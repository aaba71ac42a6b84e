"""PyTorch's tensors as arrays."""

from threading import local
from typing import Any

from ....base.arrays import Array
from ....base.errors import DTypeError
from ....base.packages import package
from ...v2.format.digest import FORMAT_NAMES, numpy_dtype


class _Work(local):
    """What a thread is doing."""

    reading = False


_AT_WORK = _Work()


def is_reading() -> bool:
    """Whether a tensor is being read in this thread, so that what PyTorch does is none of the user's."""
    return _AT_WORK.reading


def array(tensor: Any, *, copy: bool = True) -> Array:
    """A tensor's values in the memory of the CPU, in a copy if asked; of a sharded one those of this rank.

    Raises DTypeError for a dtype that no trace has.
    """
    before, _AT_WORK.reading = is_reading(), True
    try:
        return _array(local_part(tensor.detach()), copy=copy)
    finally:
        _AT_WORK.reading = before


def local_part(tensor: Any) -> Any:
    """What this rank has of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def dtype_word(dtype: Any) -> str:
    """What numpy or `ml_dtypes` calls a dtype of PyTorch's."""
    return str(dtype).removeprefix("torch.")


def _array(tensor: Any, *, copy: bool) -> Array:
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    word = dtype_word(tensor.dtype)
    if word not in FORMAT_NAMES:
        raise DTypeError(f"record_torch: expected tensors of {', '.join(FORMAT_NAMES)}; got {word}")
    found, dtype = tensor.resolve_conj().resolve_neg().to("cpu", copy=copy), numpy_dtype(FORMAT_NAMES[word])
    if dtype.isbuiltin == 2:  # numpy has it not, and PyTorch hands over its bits alone
        torch = package("record_torch", "torch")
        found = found.view(torch.int16 if dtype.itemsize == 2 else torch.uint8)
    values: Array = found.numpy().view(dtype)
    return values
