"""Digests of tensors, batches, states and chains.

A tensor's digest is `H(u32 dtype code, u32 rank, u64 dims, elements)`, elements in C order, little-endian and
with every NaN in its canonical form. Memory is hashed where it stands: a copy is made only of arrays that are
not contiguous, are big-endian or hold a NaN.
"""

import hashlib
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from math import isfinite
from typing import Any, Protocol, Self, TypeAlias, cast

import numpy as np
import xxhash
from typing_extensions import Buffer

from ....base.arrays import Array, is_float, real_parts
from ....base.errors import DTypeError
from ....base.packages import package
from ....base.runs.keep import Digest
from .constants import DTYPE_CODES, FIRST_OF_READER_3, TAG_DATA, TAG_ROOT, U32

Batch: TypeAlias = Mapping[str, Array] | Sequence[Array] | Array

_WORDS = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex"}


def _numpy_name(name: str) -> str:
    letters, bits, more = re.fullmatch(r"([a-z]+)(\d*)(\w*)", name).groups("")  # type: ignore[union-attr]
    return f"{_WORDS.get(letters, letters)}{bits}{more and '_'}{more}"


NUMPY_NAMES: dict[str, str] = {name: _numpy_name(name) for name in DTYPE_CODES}
"""The format's name of a dtype → numpy's name, or that of `ml_dtypes`."""

NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(np.dtype(word).str.replace(">", "<")) for name, word in NUMPY_NAMES.items() if hasattr(np, word)
}
"""The dtypes that numpy has itself, by the format's names."""
_SHORT = 8192
_ARRAY = {np.ndarray}
_LARGEST, _SMALLEST = np.maximum.reduce, np.minimum.reduce

FORMAT_NAMES = {word: name for name, word in NUMPY_NAMES.items()}
"""Numpy's name of a dtype → the format's."""


class Hasher(Protocol):
    """What `hashlib` and `xxhash` objects have in common."""

    def update(self, data: Buffer, /) -> None:
        """Append `data` to the message."""
        ...

    def digest(self) -> bytes:
        """The digest of the message so far."""
        ...

    def copy(self) -> Self:
        """An independent copy of the state."""
        ...


def _sha256(data: Buffer) -> bytes:
    return hashlib.sha256(data).digest()


class Algorithm(IntEnum):
    """A digest by its code in the header."""

    XXH3_128 = 1
    SHA256 = 2

    @classmethod
    def named(cls, digest: Digest) -> Self:
        """The one that `Keep` calls so."""
        return cls[digest.upper().replace("-", "_")]

    @property
    def word(self) -> Digest:
        """What `Keep` calls it."""
        return "xxh3-128" if self is Algorithm.XXH3_128 else "sha256"

    @property
    def size(self) -> int:
        """Bytes of a digest."""
        return 16 if self is Algorithm.XXH3_128 else 32

    @property
    def hash(self) -> Callable[[Buffer], bytes]:
        """The digest of one message."""
        return xxhash.xxh3_128_digest if self is Algorithm.XXH3_128 else _sha256

    def begin(self, prefix: bytes = b"") -> Hasher:
        """A message that grows, beginning with `prefix`."""
        return xxhash.xxh3_128(prefix) if self is Algorithm.XXH3_128 else hashlib.sha256(prefix)


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of one of the format's names.

    Raises ModuleNotFoundError for a float of less than 32 bits that `ml_dtypes` has, where that is not installed.

    >>> numpy_dtype("f16")
    dtype('float16')
    """
    if name in NUMPY_DTYPES:
        return NUMPY_DTYPES[name]
    word = NUMPY_NAMES[name]
    kind: type = getattr(package(f"arrays of {word}", "ml_dtypes"), word)
    return np.dtype(kind)


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The format's name of a numpy dtype, whatever its byte order.

    Raises:
        DTypeError: the dtype has no code in the format.

    >>> dtype_name(np.dtype(np.float32))
    'f32'
    """
    name = FORMAT_NAMES.get(dtype.name)
    if name is None:
        raise DTypeError(f"digest: expected one of the dtypes {', '.join(DTYPE_CODES)}, got {dtype}; cast it first")
    return name


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether compiled code knows which elements are not finite: all but small floats and complex numbers."""
    return DTYPE_CODES[dtype_name(dtype)] < FIRST_OF_READER_3


def preamble(name: str, shape: Sequence[int]) -> bytes:
    """What precedes the elements in the preimage of a tensor's digest."""
    return struct.pack(f"<II{len(shape)}Q", DTYPE_CODES[name], len(shape), *shape)


def canonical(array: Array) -> Array:
    """`array` as the format writes it: C order, little-endian, canonical NaN. No copy if it is so already.

    Complex numbers are pairs of floats along a last axis.
    """
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if not array.dtype.isnative or array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return _canonical_nan(real_parts(array))


def _canonical_nan(array: Array) -> Array:
    """`array`, or a copy in which every NaN has its canonical form."""
    if not is_float(array.dtype) or not has_nan(array):
        return array
    return np.where(np.isnan(array), array.dtype.type(np.nan), array)


def has_nan(array: Array) -> bool:
    """Whether a float array holds a NaN, which `np.maximum` hands on."""
    if array.dtype.isbuiltin == 2 or not array.size:
        return bool(np.isnan(array).any())
    largest = _LARGEST(array, None)
    return bool(largest != largest)


def surely_finite(array: Array) -> bool:
    """Whether a float array certainly holds neither infinity nor NaN; False may also be an overflow.

    A sum of squares is the cheapest test of short arrays, the extrema (`np.maximum` hands a NaN on) of long
    ones, for which BLAS might wake its threads.
    """
    if array.dtype.isbuiltin == 2 or array.itemsize < 4:
        return bool(np.isfinite(array).all())
    if array.size <= _SHORT:
        return isfinite(np.vdot(array, array))
    return isfinite(_LARGEST(array, None)) and isfinite(_SMALLEST(array, None))


def raw(array: Array) -> memoryview:
    """The elements of a canonical array as bytes, without a copy."""
    if not array.size:
        return memoryview(b"")
    known = array if array.dtype.isbuiltin != 2 else array.view(f"u{array.itemsize}")  # of others there is no buffer
    return known.data.cast("B")


class TensorDigest:
    """The digest of tensors of one dtype and shape, with the preamble hashed once."""

    __slots__ = ("_begun",)

    def __init__(self, algorithm: Algorithm, dtype: str, shape: Sequence[int]) -> None:
        self._begun = algorithm.begin(preamble(dtype, shape))

    def __call__(self, array: Array) -> bytes:
        """The digest of `array`, which must have the dtype and shape that were promised."""
        return self.of_bytes(raw(canonical(array)))

    def of_bytes(self, elements: Buffer) -> bytes:
        """The digest of a tensor from its canonical bytes."""
        hasher = self._begun.copy()
        hasher.update(elements)
        return hasher.digest()

    def of_blocks(self, blocks: Iterable[Buffer]) -> bytes:
        """The digest of a tensor whose canonical bytes come in blocks."""
        hasher = self._begun.copy()
        for block in blocks:
            hasher.update(block)
        return hasher.digest()


def tensor_digest(algorithm: Algorithm, array: Array) -> bytes:
    """The digest of one array of any dtype of the format."""
    return TensorDigest(algorithm, dtype_name(array.dtype), array.shape)(array)


def state_root(algorithm: Algorithm, digests: Sequence[bytes]) -> bytes:
    """The digest of a whole state from the digests of all its tensors, in the order of the schema."""
    return algorithm.hash(TAG_ROOT + b"".join(digests))


class InputDigest:
    """The digest of batches; remembers the preambles of the shapes it has met."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self._known: dict[tuple[np.dtype[Any], tuple[int, ...]], TensorDigest] = {}

    def __call__(self, batch: Batch) -> bytes:
        """The digest of a mapping (sorted by the UTF-8 bytes of its names), a sequence or one array."""
        names, arrays = batch_arrays(batch)
        parts = [TAG_DATA, U32.pack(len(names))]
        for name, array in zip(names, arrays, strict=True):
            parts += (U32.pack(len(name)), name, self._of(array))
        return self._algorithm.hash(b"".join(parts))

    def _of(self, array: Array) -> bytes:
        key = (array.dtype, array.shape)
        digest = self._known.get(key)
        if digest is None:
            digest = TensorDigest(self._algorithm, dtype_name(array.dtype), array.shape)
            self._known[key] = digest
        return digest(array)


def batch_arrays(batch: Batch) -> tuple[tuple[bytes, ...], tuple[Array, ...]]:
    """The names of the arrays of a batch, and the arrays, in the order in which they are digested.

    Raises:
        DTypeError: there is a nest in the place of an array.
    """
    if isinstance(batch, tuple):
        arrays: tuple[Any, ...] = batch
        if {*map(type, arrays)} <= _ARRAY:
            return _numbers(len(arrays)), arrays
    named = _named(batch)
    return tuple([name for name, _ in named]), tuple([_flat(name, array) for name, array in named])


def _flat(name: bytes, array: Any) -> Array:
    """An array of a batch. Raises DTypeError for a nest in its place, of which the format knows no names."""
    nested = isinstance(array, Mapping) or (isinstance(array, list | tuple) and any(map(_is_nest, cast(Any, array))))
    if nested:
        kind = type(cast(Any, array)).__name__
        raise DTypeError(
            f"digest: expected a batch of arrays by name or in turn, got a {kind} for {name.decode()!r}; a trace takes "
            "no nests: give (x, y) or {'x': x, 'y': y}, not (x, {'y': y})"
        )
    return np.asarray(array)


def _is_nest(value: object) -> bool:
    return isinstance(value, np.ndarray | Mapping)


@cache
def _numbers(count: int) -> tuple[bytes, ...]:
    """The names of arrays without names."""
    return tuple(b"%d" % i for i in range(count))


def _named(batch: Batch) -> list[tuple[bytes, Array]]:
    if isinstance(batch, Mapping):
        return sorted((name.encode(), array) for name, array in batch.items())
    arrays = [batch] if isinstance(batch, np.ndarray) else batch
    return list(zip(_numbers(len(arrays)), arrays, strict=True))
