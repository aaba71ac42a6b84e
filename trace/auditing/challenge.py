"""Which units an audit checks: drawn from a trace and a number that its maker did not know.

The bytes are those of `docs/traces.md`, so that the sample can be drawn again in any language.
"""

import struct
from collections.abc import Iterator
from hashlib import sha256

_TAG = b"DGRRaudit1"
_WORDS = struct.Struct("<4Q")
_RANGE = 1 << 64


def challenge(root: bytes, nonce: bytes) -> bytes:
    """``SHA-256("DGRRaudit1" ‖ u32 length ‖ root ‖ u32 length ‖ nonce)``, integers little-endian.

    Whoever made the trace had to settle its root before the nonce was drawn, and so cannot choose what is checked.

    >>> challenge(b"", b"").hex()[:16]
    '698a3bdb101d1091'
    """
    return sha256(_TAG + b"".join(struct.pack("<I", len(part)) + part for part in (root, nonce))).digest()


def drawn(seed: bytes, units: int, count: int) -> list[int]:
    """So many different numbers below `units`, in the order in which they are drawn; `count` is at most `units`.

    Fisher-Yates: place i of the list 0, 1, …, units - 1 is exchanged with place ``i + r``, r a number below
    ``units - i``, for i = 0 … count - 1. So a larger sample begins with the smaller one.

    Source: R. Durstenfeld, Algorithm 235: Random permutation, Communications of the ACM 7 (1964) 420.

    >>> drawn(challenge(b"root", b"nonce"), 1000, 5)
    [663, 100, 378, 182, 153]
    """
    words, moved = _words(seed), dict[int, int]()
    sample = list[int]()
    for i in range(count):
        place = i + _below(units - i, words)
        sample.append(moved.get(place, place))
        moved[place] = moved.get(i, i)
    return sample


def _words(seed: bytes) -> Iterator[int]:
    """Four words of 64 bits from each ``SHA-256(seed ‖ u64 block)``, block = 0, 1, …, integers little-endian."""
    block = 0
    while True:
        yield from _WORDS.unpack(sha256(seed + struct.pack("<Q", block)).digest())
        block += 1


def _below(bound: int, words: Iterator[int]) -> int:
    """The next word modulo `bound`; words from the last whole multiple of it below 2^64 on are passed over."""
    most = _RANGE - _RANGE % bound
    return next(word for word in words if word < most) % bound
