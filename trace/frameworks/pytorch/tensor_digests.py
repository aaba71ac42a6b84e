"""Digests of PyTorch's tensors, made where they lie."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from ....base.arrays import Array, is_float
from ....tape.numerics.xxh3.anywhere import CopyAnywhere, DigestAnywhere, Room
from ...v2.format.digest import FORMAT_NAMES, Algorithm, has_nan, numpy_dtype, preamble, tensor_digest
from .arrays import array, dtype_word

_There: TypeAlias = Callable[[int], bytes | None]
"""The digest of the elements at an address; None where they have no canonical form as they lie there."""

_Key: TypeAlias = tuple[Any, tuple[int, ...], tuple[int, ...]]
"""Dtype, sizes and strides."""

_MOST_KINDS = 1 << 12

_SAMPLES = 64
"""How many bytes of a tensor are looked at to see that it is still the same."""

_SHORT = 1 << 10
"""Bytes up to which a tensor is digested anew each time."""

_MOVED = (1, 4, 8)
"""Bytes of the elements of tensors that may be digested in another order than they lie in."""

_BLOCK = 1 << 18
"""Bytes that are brought into order at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Tensors of one dtype, shape and order: what digests them where they lie, if anything, and their bytes."""

    there: _There | None
    nbytes: int


class TensorDigests:
    """The digest of a tensor, as that of its array: of a plain one where it lies, without a copy of it.

    What is no plain tensor in the memory of the CPU goes the long way, over an array.
    """

    def __init__(self, torch: Any, algorithm: Algorithm) -> None:
        self._algorithm, self._strided = algorithm, torch.strided
        self._plain = {torch.Tensor, torch.nn.Parameter}
        self._kinds = dict[_Key, _Kind | None]()
        self._room = Room()

    def __call__(self, tensor: Any) -> bytes:
        """The digest. Raises DTypeError for a dtype that no trace has."""
        kind = self.kind(tensor)
        return self.long_way(tensor) if kind is None else self.of(tensor, kind)

    def of_array(self, array: Array) -> bytes:
        """The digest of an array."""
        return tensor_digest(self._algorithm, array)

    def settled(self, digests: Sequence[Any]) -> Sequence[Any]:
        """Digests as they are written: these are no others."""
        return digests

    def kind(self, tensor: Any) -> _Kind | None:
        """What is known of tensors like this one; None of those that are not plain."""
        if type(tensor) not in self._plain or not tensor.is_cpu or tensor.layout is not self._strided:
            return None
        key = tensor.dtype, tensor.shape, tensor.stride()
        kind = self._kinds.get(key) or self._learn(tensor, key)
        return None if tensor.is_neg() else kind

    def _learn(self, tensor: Any, key: _Key) -> _Kind | None:
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        return self._kinds.setdefault(key, self._kind(tensor, *key))

    def of(self, tensor: Any, kind: _Kind) -> bytes:
        """The digest of a tensor of this kind."""
        digest = None if kind.there is None else kind.there(tensor.data_ptr())
        return self.long_way(tensor) if digest is None else digest

    def long_way(self, tensor: Any) -> bytes:
        """The digest of any tensor. Raises DTypeError for a dtype that no trace has."""
        return self.of_array(array(tensor, copy=False))

    def _kind(self, tensor: Any, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> _Kind | None:
        name = FORMAT_NAMES.get(dtype_word(dtype), "")
        if not name or dtype.is_complex or not prod(shape):
            return None
        there, head = numpy_dtype(name), preamble(name, shape)
        size, nbytes = there.itemsize, prod(shape) * there.itemsize
        floats, is_whole = there if is_float(there) else None, tensor.is_contiguous()
        if self._algorithm is Algorithm.XXH3_128 and (floats is None or size >= 4) and (is_whole or size in _MOVED):
            turned: dict[str, Any] = {"strides": [size * stride for stride in strides], "room": self._room}
            if nbytes > _BLOCK and not is_whole:
                return _Kind(self._in_blocks(head, shape, turned["strides"], size, floats), nbytes)
            return _Kind(DigestAnywhere(head, shape, size, floats, **({} if is_whole else turned)), nbytes)
        return _Kind(self._by_library(head, nbytes, floats) if is_whole else None, nbytes)

    def _in_blocks(
        self, head: bytes, shape: Sequence[int], strides: Sequence[int], size: int, floats: "np.dtype[Any] | None"
    ) -> _There:
        """The same of a long one in another order, of which never more than a few lines are copied."""
        begun, axis = self._algorithm.begin(head), next(i for i, count in enumerate(shape) if count > 1)
        lines, inner = shape[axis], shape[axis + 1 :]
        some = max(1, _BLOCK // (size * prod(inner)))
        copies = {
            count: CopyAnywhere((count, *inner), strides[axis:], size, self._room) for count in {some, lines % some}
        }

        def there(address: int) -> bytes | None:
            hasher = begun.copy()
            for i in range(0, lines, some):
                block = copies[min(some, lines - i)](address + i * strides[axis])
                if floats is not None and has_nan(block.view(floats)):
                    return None
                hasher.update(block.data)
            return hasher.digest()

        return there

    def _by_library(self, head: bytes, nbytes: int, floats: "np.dtype[Any] | None") -> _There:
        begun, kind = self._algorithm.begin(head), ctypes.c_char * nbytes

        def there(address: int) -> bytes | None:
            memory: Any = kind.from_address(address)
            if floats is not None and has_nan(np.frombuffer(memory, floats)):
                return None
            hasher = begun.copy()
            hasher.update(memory)
            return hasher.digest()

        return there


class _Memory:
    """What is known of tensors that lie in one storage: by place and kind, version, sample and digest.

    Args:
        end: what tells of the end of the storage.
        at, nbytes: where it lies.
        may_change: whether it may change without a word.
    """

    __slots__ = ("_bytes", "at", "end", "known", "may_change", "nbytes")

    def __init__(self, end: "ref[Any]", at: int, nbytes: int, *, may_change: bool) -> None:
        self.end, self.at, self.nbytes, self.may_change = end, at, nbytes, may_change
        self.known = dict[tuple[Any, ...], tuple[int, bytes, bytes]]()
        self._bytes: Any = (ctypes.c_char * nbytes).from_address(at)

    def sample(self) -> bytes:
        """Some bytes from all over."""
        return bytes(self._bytes[:: self.nbytes // _SAMPLES | 1])


class KnownDigests:
    """Digests of which that of a tensor is made once as long as it stays the same, from one `clear` to the next.

    It is made anew for another version, and whenever `forget` was told of a write. Memory that numpy has, or PyTorch
    has not made, may change without either; such a tensor is read each time, and so is a short one, one of inference
    mode, and what is no plain tensor. Against writes by other means 64 bytes from all over the memory are looked at.
    """

    def __init__(self, made: TensorDigests) -> None:
        self._made = made
        self.of_array, self.settled = made.of_array, made.settled
        self._memories = dict[int, _Memory]()

    def clear(self) -> None:
        """Forget everything."""
        self._memories.clear()

    def forget(self, tensor: Any) -> None:
        """A tensor has been written to."""
        if self._made.kind(tensor) is not None:
            memory = self._memories.get(tensor.untyped_storage()._cdata)
            if memory is not None:
                memory.known.clear()

    def distrust(self, tensor: Any) -> None:
        """From now on a tensor may change at any time."""
        if self._made.kind(tensor) is not None:
            self._memory(tensor.untyped_storage()).may_change = True

    def __call__(self, tensor: Any) -> bytes:
        """The digest. Raises DTypeError for a dtype that no trace has."""
        kind = self._made.kind(tensor)
        if kind is None:
            return self._made.long_way(tensor)
        if kind.nbytes <= _SHORT or tensor.is_inference():
            return self._made.of(tensor, kind)
        storage = tensor.untyped_storage()
        memory = self._memory(storage)
        if memory.may_change or not storage.resizable():
            return self._made.of(tensor, kind)
        key, version, sample = (tensor.data_ptr(), kind), tensor._version, memory.sample()
        found = memory.known.get(key)
        if found is not None and found[0] == version and found[1] == sample:
            return found[2]
        digest = self._made.of(tensor, kind)
        memory.known[key] = version, sample, digest
        return digest

    def _memory(self, storage: Any) -> _Memory:
        """What is known of a storage; of one that lies elsewhere by now, nothing."""
        name, at, nbytes = storage._cdata, storage.data_ptr(), storage.nbytes()
        found = self._memories.get(name)
        if found is None or found.at != at or found.nbytes != nbytes:
            may_change = found is not None and found.may_change
            found = self._memories[name] = _Memory(self._end(storage, name), at, nbytes, may_change=may_change)
        return found

    def _end(self, storage: Any, name: int) -> "ref[Any]":
        """Forgets a storage when it is gone: its name may be another's then. It is not looked at."""
        memories = self._memories
        return ref(storage, lambda _: memories.pop(name, None))


Digests: TypeAlias = TensorDigests | KnownDigests
"""What makes digests of tensors, or what stands for these until they are settled."""
