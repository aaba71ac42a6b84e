"""PyTorch's tensors as arrays."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
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
        there = brought(here(tensor.detach()))
        return there.copy() if copy else there


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


class PlainArrays:
    """The arrays of plain tensors, as of `array`, with less ado: of what stays from step to step they are made once.

    Such an array shows what its tensor holds by then. It is made again where there is another tensor of its name, or it
    lies elsewhere, in another order or as another dtype. Complex numbers, of which a tensor may say that it holds their
    conjugates, are not plain.
    """

    def __init__(self, torch: Any) -> None:
        self._plain, self._strided = {torch.Tensor, torch.nn.Parameter}, torch.strided
        self._held = dict[str, tuple[Any, tuple[Any, ...], Array]]()

    def __call__(self, tensor: Any, *, copy: bool) -> Array:
        """A tensor's values, as of `array`."""
        if not self._is_plain(tensor):
            return array(tensor, copy=copy)
        made = _lent(tensor)
        return made.copy() if copy else made

    def held(self, name: str, tensor: Any, *, copy: bool) -> Array:
        """The values of a tensor that stays."""
        held = self._held.get(name)
        if held is None or held[0] is not tensor or held[1] != _laid_out(tensor):
            return self._hold(name, tensor, copy=copy)
        return held[2].copy() if copy else held[2]

    def _hold(self, name: str, tensor: Any, *, copy: bool) -> Array:
        self._held.pop(name, None)
        if not self._is_plain(tensor):
            return array(tensor, copy=copy)
        made = self(tensor, copy=False)
        self._held[name] = tensor, _laid_out(tensor), made
        return made.copy() if copy else made

    def _is_plain(self, tensor: Any) -> bool:
        is_near = type(tensor) in self._plain and tensor.is_cpu and tensor.layout is self._strided
        return is_near and not tensor.is_complex() and not tensor.is_neg()


def _laid_out(tensor: Any) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


@cache
def dtype_word(dtype: Any) -> str:
    """What numpy or `ml_dtypes` calls a dtype of PyTorch's."""
    return str(dtype).removeprefix("torch.")


def format_name(tensor: Any) -> str:
    """The format's name of a tensor's dtype. Raises DTypeError for one that no trace has."""
    word = dtype_word(tensor.dtype)
    if word not in FORMAT_NAMES:
        raise DTypeError(f"record_torch: expected tensors of {', '.join(FORMAT_NAMES)}; got {word}")
    return FORMAT_NAMES[word]


def here(tensor: Any) -> Any:
    """What this rank has of a tensor, as a dense one on its device."""
    tensor = local_part(tensor)
    return (tensor.to_dense() if tensor.is_sparse else tensor).resolve_conj().resolve_neg()


def brought(tensor: Any) -> Array:
    """The values of a tensor of `here` in the memory of the CPU."""
    return _lent(tensor.to("cpu"))


def _lent(tensor: Any) -> Array:
    """The memory of a tensor as an array."""
    there: Array = np.asarray(_Lent(tensor))
    return there.view(numpy_dtype(format_name(tensor)))


class _Lent:
    """The memory of a tensor as numpy takes it: `Tensor.numpy` would have PyTorch never free or resize it again."""

    def __init__(self, tensor: Any) -> None:
        size = tensor.element_size()
        self._tensor = tensor
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": None if tensor.is_contiguous() else tuple(size * stride for stride in tensor.stride()),
            "typestr": f"|V{size}",
            "version": 3,
        }
