"""Philox 4x32-10: random words as a function of a key and a counter, in exact integer arithmetic.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11; their library
Random123 gives the known answers that the tests hold.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (0x9E3779B9, 0xBB67AE85)
"""What is added to the two words of the key after each round: the golden ratio and √3 - 1."""

WORD = 0xFFFFFFFF
"""The largest word."""

MAX_WORDS = 4 << 32
"""How many words one stream has: its blocks of four are counted in one word."""

CHUNK = 1 << 14
"""Blocks worked on at a time, so that the intermediate arrays stay in the cache."""

Lane = npt.NDArray[np.uint64]
Block = tuple[Lane, Lane, Lane, Lane]


def philox(counter: Block, key: tuple[int, int]) -> Block:
    """Four words for each counter; all arrays are uint64 of one shape and hold 32-bit words."""
    x0, x1, x2, x3 = counter
    for turn in range(ROUNDS):
        key0, key1 = (np.uint64(k + turn * step & WORD) for k, step in zip(key, WEYL, strict=True))
        high0, low0 = _halves(MULTIPLIERS[0] * x0)
        high1, low1 = _halves(MULTIPLIERS[1] * x2)
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
    return x0, x1, x2, x3


def _halves(product: Lane) -> tuple[Lane, Lane]:
    return product >> np.uint64(32), product & np.uint64(WORD)


def words(key: tuple[int, int], stream: tuple[int, int, int], n: int) -> npt.NDArray[np.uint32]:
    """The first ``n`` words of a stream, uint32: word ``i`` is word ``i mod 4`` of block ``i // 4``.

    Block b is that of the counter ``(b, *stream)``. Key and stream are made of 32-bit words; ``n`` is at most
    `MAX_WORDS`.

    >>> [hex(w) for w in words((0, 0), (0, 0, 0), 4)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    blocks = -(-n // 4)
    out = np.empty((blocks, 4), np.uint32)
    for start in range(0, blocks, CHUNK):
        count = np.arange(start, min(start + CHUNK, blocks), dtype=np.uint64)
        rest: list[Any] = [np.full_like(count, word) for word in stream]
        for lane, values in enumerate(philox((count, rest[0], rest[1], rest[2]), key)):
            out[start : start + CHUNK, lane] = values
    return out.reshape(-1)[:n]
