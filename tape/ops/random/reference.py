"""The draws, slow and obvious: words in Python's integers, functions from the references of the elementwise ops."""

from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.math import random
from ...numerics.math.philox import WORD, words
from ...numerics.math.reference import functions as reference
from ...numerics.sizes import Sizes


def _words(n: int, step: Any, seed: int = 0, micro_batch: int = 0, ordinal: int = 0) -> list[int]:
    """The first ``n`` words of the stream."""
    place = ordinal, micro_batch, random.coordinate("reference", "step", int(step), WORD + 1)
    drawn = words((seed & WORD, seed >> 32), place, n)
    return [int(word) for word in drawn]


def uniform(step: Any, shape: Sizes, dtype: Any = "float32", **key: int) -> Array:
    """Numbers from [0, 1)."""
    return random.uniform(shape, np.dtype(dtype), step=int(step), **{"seed": 0, **key})


def normal(step: Any, shape: Sizes, dtype: Any = "float32", mean: float = 0.0, std: float = 1.0, **key: int) -> Array:
    """Box and Muller's numbers in float64, rounded once."""
    pairs = uniform(step, (prod(shape), 2), np.float64, **key)
    radius = np.sqrt(reference.log(1.0 - pairs[:, 0]) * -2.0)
    z = radius * reference.cos(pairs[:, 1] * (2 * np.pi))
    rounded: Array = (z * std + mean).astype(dtype)
    return rounded.reshape(shape)


def bernoulli(step: Any, p: float, shape: Sizes, **key: int) -> Array:
    """Whether numbers from [0, 1) are below p."""
    return np.asarray(uniform(step, shape, np.float64, **key) < p)


def integers(step: Any, low: int, high: int, shape: Sizes, **key: int) -> Array:
    """``low + floor(W (high - low) / 2**128)``, W being the block of the element."""
    drawn = _words(4 * prod(shape), step, **key)
    blocks = [sum(drawn[4 * i + k] << 32 * k for k in range(4)) for i in range(prod(shape))]
    return np.array([low + (block * (high - low) >> 128) for block in blocks], np.int64).reshape(shape)


def permutation(step: Any, n: int, **key: int) -> Array:
    """The positions of 64-bit keys, sorted; equal keys stay in their order."""
    drawn = _words(2 * n, step, **key)
    keys = [drawn[2 * i] + (drawn[2 * i + 1] << 32) for i in range(n)]
    return np.array(sorted(range(n), key=keys.__getitem__), np.int64)
