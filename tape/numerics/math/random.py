"""Random numbers that depend on nothing but their coordinates: seed, step, micro-batch and ordinal.

Neither the order of the draws, nor threads, nor draws elsewhere change them, so dropout, shuffles and
initialisation can be replayed from a trace. The numbers are words of Philox 4x32-10:

====================  ========================================================================
key                   low and high word of the seed
counter               block, ordinal, micro-batch, step; a permutation has micro-batch 2³² - 1,
                      a draw for a sample of a data set 2³² - 2
====================  ========================================================================

Each coordinate has 32 bits of its own (the seed 64), so two draws share words only if all coordinates agree.
"""

import math
from numbers import Integral
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ....base.arrays import Array
from ...errors import DomainError, DTypeError
from .philox import MAX_WORDS, WORD, words

D = TypeVar("D", np.float32, np.float64)

SEEDS = 1 << 64
SHUFFLES = WORD
"""The micro-batch word of permutations, which no draw of a step has."""
SAMPLES = WORD - 1
"""That of draws for single samples of a data set, which no draw of a step has either."""


def uniform(
    shape: tuple[int, ...],
    dtype: type[D] | np.dtype[D],
    *,
    seed: int,
    step: int = 0,
    micro_batch: int = 0,
    ordinal: int = 0,
) -> npt.NDArray[D]:
    """Independent numbers in [0, 1), in row-major order.

    With ``w`` the words of the stream, element i is ``(w[i] >> 8) * 2**-24`` in float32 and
    ``((w[2i] + 2**32 * w[2i+1]) >> 11) * 2**-53`` in float64. ``step`` and ``ordinal`` are below 2**32,
    ``micro_batch`` below 2**32 - 2, ``seed`` below 2**64.

    Raises DomainError for a coordinate or a size out of range, DTypeError for other dtypes.

    >>> uniform((3,), np.float32, seed=7)
    array([0.9545971 , 0.7501522 , 0.11417735], dtype=float32)
    """
    stream = (
        coordinate("uniform", "ordinal", ordinal, WORD + 1),
        coordinate("uniform", "micro_batch", micro_batch, SAMPLES),
        coordinate("uniform", "step", step, WORD + 1),
    )
    key, n = _key("uniform", seed), _count("uniform", "shape", shape)
    real = np.dtype(dtype)
    if real == np.float32:
        drawn = _scaled(words(key, stream, n) >> np.uint32(8), real, 2.0**-24)
    elif real == np.float64:
        drawn = _scaled(_long_words(key, stream, n) >> np.uint64(11), real, 2.0**-53)
    else:
        raise DTypeError(f"uniform: argument 'dtype': expected float32 or float64, got {real}")
    return drawn.reshape(shape)


def permutation(n: int, *, seed: int, step: int = 0, ordinal: int = 0) -> npt.NDArray[np.int64]:
    """The numbers below ``n`` in random order, int64: the stable argsort of n 64-bit keys.

    Key i is ``w[2i] + 2**32 * w[2i+1]`` with ``w`` the words of the stream. ``step`` (an epoch, say) and
    ``ordinal`` are below 2**32, ``seed`` below 2**64.

    Raises DomainError for a coordinate or a size out of range.

    >>> permutation(5, seed=7)
    array([0, 2, 3, 1, 4])
    """
    stream = (
        coordinate("permutation", "ordinal", ordinal, WORD + 1),
        SHUFFLES,
        coordinate("permutation", "step", step, WORD + 1),
    )
    key, count = _key("permutation", seed), _count("permutation", "n", (n,))
    return np.argsort(_long_words(key, stream, count), kind="stable").astype(np.int64, copy=False)


def _scaled(integers: Array, dtype: np.dtype[D], unit: float) -> npt.NDArray[D]:
    """Integers that are exact in ``dtype`` times a power of two."""
    scaled = integers.astype(dtype)
    scaled *= dtype.type(unit)
    return scaled


def _long_words(key: tuple[int, int], stream: tuple[int, int, int], n: int) -> npt.NDArray[np.uint64]:
    """The words of a stream joined two by two, the earlier one low."""
    pairs = words(key, stream, 2 * n).reshape(n, 2).astype(np.uint64)
    joined: npt.NDArray[np.uint64] = pairs[:, 0] | pairs[:, 1] << np.uint64(32)
    return joined


def _key(op: str, seed: int) -> tuple[int, int]:
    seed = coordinate(op, "seed", seed, SEEDS)
    return seed & WORD, seed >> 32


def _count(op: str, argument: str, shape: tuple[int, ...]) -> int:
    for size in shape:
        coordinate(op, argument, size, MAX_WORDS // 2)
    return coordinate(op, argument, math.prod(shape), MAX_WORDS // 2)


def coordinate(op: str, argument: str, value: object, limit: int) -> int:
    """``value`` as an int from 0 to ``limit - 1``. Raises DomainError, naming the op and the argument, for others."""
    number = int(value) if isinstance(value, Integral) else -1
    if not 0 <= number < limit:
        expected = f"an integer from 0 to {limit - 1}"
        raise DomainError(f"{op}: argument {argument!r}: expected {expected}, got {value!r}")
    return number
