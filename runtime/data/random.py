"""Random numbers for single samples: functions of seed, epoch, sample and which use, so the same in every run.

The words are those of Philox 4x32-10 (`dgrr.tape.numerics.math.philox`):

=======  ==================================================================================================
key      low and high word of the seed
counter  block + 2²⁴ · use, sample, 2³² - 2, epoch; the use: 0 the first map of a data set, …, 255 the buffer
=======  ==================================================================================================

The third word is one that neither draws of steps nor permutations have.
"""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...tape.errors import DomainError, DTypeError
from ...tape.nn.initializers import standard_normal
from ...tape.numerics.math.philox import WORD, philox
from ...tape.numerics.math.random import SAMPLES, SEEDS, coordinate

BLOCKS = 1 << 24
"""Blocks of four words that one use of a sample has."""
USES = 256
BUFFER = USES - 1
"""The use of a shuffle buffer; those before it are maps."""

LEAST = 8
"""Blocks that are drawn at least: they cost as much as one."""
MOST = 256
"""Blocks of a sample that are drawn together with those of other samples at most: beyond it nothing is saved."""

Words = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int64]


def sample_words(seed: int, epoch: int, samples: Indices, use: int, start: int, blocks: int) -> Words:
    """Words from block ``start`` on, uint32 of shape (samples, 4 · blocks).

    Raises DomainError for coordinates out of range.
    """
    seed = coordinate("map", "seed", seed, SEEDS)
    if start + blocks > BLOCKS:
        raise DomainError(f"map: expected at most {4 * BLOCKS} random words for one sample, got more")
    if len(samples) == 0:
        return np.empty((0, 4 * blocks), np.uint32)
    for index in (samples.min(), samples.max()):
        coordinate("map", "index", int(index), WORD + 1)
    count = np.arange(start, start + blocks, dtype=np.uint64) + np.uint64(use * BLOCKS)
    step = np.uint64(coordinate("map", "epoch", epoch, WORD + 1))
    counter = (count, samples.astype(np.uint64)[:, None], np.uint64(SAMPLES), step)
    lanes: list[Any] = [np.array(np.broadcast_to(lane, (len(samples), blocks))) for lane in counter]
    drawn = philox((lanes[0], lanes[1], lanes[2], lanes[3]), (seed & WORD, seed >> 32))
    return np.stack(drawn, axis=-1).astype(np.uint32).reshape(len(samples), -1)


class SampleRandom:
    """The random numbers of one sample in one epoch, for a function that `Dataset.map` calls.

    They depend on the seed, the epoch, the sample's place in the arrays and the draws before them on this object:
    not on the order of the samples, on batches, threads or the machine.

    Args:
        seed: below 2**64.
        epoch: below 2**32.
        sample: its place in the arrays of the data set, or in the epoch of a stream; below 2**32.
        use: which map of the data set it is, counted from 0.
        words: the first words, where they are known.

    >>> random = SampleRandom(seed=7, epoch=0, sample=3)
    >>> random.uniform((2,))
    array([0.37953562, 0.42175037], dtype=float32)
    >>> int(random.integers(0, 10)), float(random.normal(dtype=np.float64))
    (3, -0.018339331047599074)
    """

    def __init__(self, seed: int, epoch: int, sample: int, use: int = 0, words: Words | None = None) -> None:
        self._key = (seed, epoch, np.array([sample], np.int64), use)
        self._words = np.empty(0, np.uint32) if words is None else words
        self.blocks = len(self._words) // 4
        """How many blocks were drawn so far."""

    def uniform(self, shape: tuple[int, ...] = (), dtype: npt.DTypeLike = np.float32) -> Any:
        """Independent numbers in [0, 1), in row-major order; a scalar for shape ().

        A float32 is ``(w >> 8) * 2**-24`` of one word, a float64 ``(w >> 11) * 2**-53`` of two joined to 64 bits.
        Raises DTypeError for other dtypes; this and other draws DomainError for what is no shape.
        """
        n = _count("uniform", shape)
        if _real("uniform", dtype) == np.float32:
            drawn: Array = (self._take(n) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
        else:
            drawn = (self._take_long(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return drawn.reshape(shape)[()]

    def normal(self, shape: tuple[int, ...] = (), dtype: npt.DTypeLike = np.float32) -> Any:
        """Independent normal numbers of mean 0 and deviation 1; a scalar for shape ().

        Source: Box and Muller (1958), A note on the generation of random normal deviates; of two float64 uniform
        numbers each, computed in float64 and rounded once. Raises DTypeError unless float32 or float64.
        """
        real, n = _real("normal", dtype), _count("normal", shape)
        drawn: Array = standard_normal(self.uniform((n, 2), np.float64)).array
        return drawn.astype(real).reshape(shape)[()]

    def integers(self, low: int, high: int, shape: tuple[int, ...] = ()) -> Any:
        """Independent whole numbers from ``low`` to ``high - 1``, int64; a scalar for shape ().

        ``low + floor(W * (high - low) / 2**128)``, W being four words. Raises DomainError unless ``low < high``, both
        in int64.
        """
        if not -(2**63) <= low < high <= 2**63:
            raise DomainError(f"integers: expected low < high, both in int64, got {low} and {high}")
        drawn = self._take(4 * _count("integers", shape)).astype("<u4").tobytes()
        blocks = (int.from_bytes(drawn[i : i + 16], "little") for i in range(0, len(drawn), 16))
        numbers = np.array([low + (block * (high - low) >> 128) for block in blocks], np.int64)
        return numbers.reshape(shape)[()]

    def _take(self, n: int) -> Words:
        """The next ``n`` words."""
        missing = n - len(self._words)
        if missing > 0:
            blocks = max(LEAST, -(-missing // 4))
            more = sample_words(*self._key, start=self.blocks, blocks=blocks)[0]
            self._words, self.blocks = np.concatenate([self._words, more]), self.blocks + blocks
        taken, self._words = self._words[:n], self._words[n:]
        return taken

    def _take_long(self, n: int) -> npt.NDArray[np.uint64]:
        """The next ``2 n`` words joined two by two, the earlier one low."""
        pairs = self._take(2 * n).reshape(n, 2).astype(np.uint64)
        joined: npt.NDArray[np.uint64] = pairs[:, 0] | pairs[:, 1] << np.uint64(32)
        return joined


def _real(draw: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    real: np.dtype[Any] = np.dtype(dtype)
    if real != np.float32 and real != np.float64:
        raise DTypeError(f"{draw}: argument 'dtype': expected float32 or float64, got {real}")
    return real


def _count(draw: str, shape: object) -> int:
    """How many numbers a shape holds. Raises DomainError for what is no tuple of sizes."""
    if not isinstance(shape, tuple):
        raise DomainError(f"{draw}: argument 'shape': expected a tuple of sizes, got {shape!r}")
    return prod(coordinate(draw, "shape", size, 4 * BLOCKS) for size in cast(Iterable[object], shape))


def picks(seed: int, epoch: int) -> Iterator[int]:
    """A 64-bit number for each sample that leaves a shuffle buffer, the first two words of its number."""
    start, many = 0, 1024
    while True:
        words = sample_words(seed, epoch, np.arange(start, start + many), BUFFER, 0, 1).astype(np.uint64)
        yield from (words[:, 0] | words[:, 1] << np.uint64(32)).tolist()
        start += many
