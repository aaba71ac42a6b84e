"""XXH3-128 of a message in two parts, a head and the bytes of an array, and whether its numbers are all finite.

The head has a whole number of words and at most `MOST_HEAD` bytes, so the array's numbers keep their places in words.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ..engine.intrinsics import move, stack_words
from ..engine.numba_internals import NO_WRAPPERS
from ..simd.lanes import inlined
from ..simd.operations import add
from .constants import BLOCK, PRIME64_1, PRIME64_2, STRIPE
from .short import MOST, avalanche, digest_of_short
from .stripes import (
    between,
    get,
    has_sign,
    look,
    put,
    spread,
    start,
    take_block,
    take_last,
    take_stripe,
    together,
    zeros,
)
from .words import folded, read64, secret64, swapped, times, write64

MOST_HEAD = 960
"""The most bytes of a head: it lies in the first block, before its last stripe."""

_LOW_SECRET, _HIGH_SECRET = 11, 117
"""Where in the secret the words begin that the accumulators are merged with."""


@inlined
def _write(out, low, high):
    """The digest in its canonical order: big-endian, the high word first."""
    write64(out, swapped(high))
    write64(out + 8, swapped(low))


@inlined
def _copied(buffer, head, head_bytes, data, n):
    move(buffer, head, head_bytes)
    move(buffer + head_bytes, data, n)


@inlined
def _merged(sums, secret, begin):
    words = stack_words(8)
    put(words, sums)
    for i in range(0, 8, 2):
        one, other = words + 8 * i, secret + 8 * i
        begin = add(begin, folded(read64(one) ^ secret64(other), read64(one + 8) ^ secret64(other + 8)))
    return avalanche(begin)


@inlined
def _write_merged(out, sums, n):
    _write(out, _merged(sums, _LOW_SECRET, times(n, PRIME64_1)), _merged(sums, _HIGH_SECRET, ~times(n, PRIME64_2)))


@inlined
def _short(out, head, head_bytes, data, n, field, one):
    buffer = stack_words(32)
    seen = zeros()
    for i in range(4):
        put(buffer + STRIPE * i, seen)
    _copied(buffer, head, head_bytes, data, n)
    for i in range(4):
        seen = look(seen, field, one, buffer + STRIPE * i)
    low, high = digest_of_short(buffer, head_bytes + n)
    _write(out, low, high)
    return has_sign(seen)


@inlined
def blocks_of(length):
    """How many whole blocks a message of more than `MOST` bytes has before its last stripes."""
    return (length - 1) // BLOCK


@inlined
def _block(sums, seen, field, one, head, head_bytes, data, b):
    """Accumulators and sight after a whole block."""
    block = data + BLOCK * b - head_bytes
    if b == 0:
        block = stack_words(128)
        _copied(block, head, head_bytes, data, BLOCK - head_bytes)
    return take_block(sums, seen, field, one, block)


@inlined
def _ended(out, sums, seen, field, one, head, head_bytes, data, n):
    """The stripes behind the whole blocks, and the digest."""
    length = head_bytes + n
    blocks = blocks_of(length)
    message = data - head_bytes
    if blocks == 0:
        message = stack_words(128)
        _copied(message, head, head_bytes, data, n)
    for i in range((length - 1 - BLOCK * blocks) // STRIPE):
        sums, seen = take_stripe(sums, seen, field, one, message + BLOCK * blocks + STRIPE * i, i)
    sums, seen = take_last(sums, seen, field, one, message + length - STRIPE)
    _write_merged(out, sums, length)
    return has_sign(seen)


@njit(error_model="numpy", **NO_WRAPPERS)
def digest(out, head, head_bytes, data, n, field_word, one_word):
    """Write the 16 bytes of the digest; whether a number is not finite, by its exponent ``field_word``."""
    field, one = spread(field_word), spread(one_word)
    if head_bytes + n <= MOST:
        return _short(out, head, head_bytes, data, n, field, one)
    sums, seen = start(), zeros()
    for b in range(blocks_of(head_bytes + n)):
        sums, seen = _block(sums, seen, field, one, head, head_bytes, data, b)
        sums = between(sums)
    return _ended(out, sums, seen, field, one, head, head_bytes, data, n)


@njit(error_model="numpy", **NO_WRAPPERS)
def sum_blocks(out, first, stop, head, head_bytes, data, field_word, one_word):
    """Write what some blocks add to the accumulators, 64 bytes for each from ``out`` on; the same answer."""
    field, one = spread(field_word), spread(one_word)
    seen = zeros()
    for b in range(first, stop):
        sums, seen = _block(zeros(), seen, field, one, head, head_bytes, data, b)
        put(out + STRIPE * (b - first), sums)
    return has_sign(seen)


@njit(error_model="numpy", **NO_WRAPPERS)
def digest_of_sums(out, block_sums, head, head_bytes, data, n, field_word, one_word):
    """`digest` of a message whose blocks `sum_blocks` has seen; the same answer for what is behind them."""
    field, one = spread(field_word), spread(one_word)
    sums = start()
    for b in range(blocks_of(head_bytes + n)):
        sums = between(together(sums, get(block_sums + STRIPE * b)))
    return _ended(out, sums, zeros(), field, one, head, head_bytes, data, n)
