"""Digests of PyTorch's tensors, made where they lie."""

import ctypes
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import is_float
from ...v2.format.digest import FORMAT_NAMES, Algorithm, Hasher, has_nan, numpy_dtype, preamble, tensor_digest
from .arrays import array, dtype_word, reading


class _Kind(NamedTuple):
    """Tensors of one dtype and shape: the digest as it begins, their memory, and its dtype where a NaN may be in it."""

    begun: Hasher
    memory: Any
    floats: "np.dtype[Any] | None"


class TensorDigests:
    """The digest of a tensor, as that of its array: of a plain one in C order without a copy, where it lies.

    What is no plain tensor in the memory of the CPU, or has a NaN, goes the long way, over an array.
    """

    def __init__(self, torch: Any, algorithm: Algorithm) -> None:
        self._algorithm, self._strided = algorithm, torch.strided
        self._plain = {torch.Tensor, torch.nn.Parameter}
        self._kinds = dict[tuple[Any, tuple[int, ...]], _Kind | None]()

    def __call__(self, tensor: Any) -> bytes:
        """The digest. Raises DTypeError for a dtype that no trace has."""
        if type(tensor) in self._plain and tensor.is_cpu and tensor.layout is self._strided:
            if not tensor.is_contiguous():
                with reading():
                    tensor = tensor.detach().contiguous()
            key = (tensor.dtype, tensor.shape)
            kind = self._kinds[key] if key in self._kinds else self._kinds.setdefault(key, self._kind(*key))
            if kind is not None and not tensor.is_neg():
                memory = kind.memory.from_address(tensor.data_ptr())
                if kind.floats is None or not has_nan(np.frombuffer(memory, kind.floats)):
                    hasher = kind.begun.copy()
                    hasher.update(memory)
                    return hasher.digest()
        return tensor_digest(self._algorithm, array(tensor, copy=False))

    def _kind(self, dtype: Any, shape: tuple[int, ...]) -> _Kind | None:
        """What is known of tensors of one kind; None of those that go the long way."""
        name = FORMAT_NAMES.get(dtype_word(dtype), "")
        if not name or dtype.is_complex or not prod(shape):
            return None
        there = numpy_dtype(name)
        memory = ctypes.c_char * (prod(shape) * there.itemsize)
        return _Kind(self._algorithm.begin(preamble(name, shape)), memory, there if is_float(there) else None)
