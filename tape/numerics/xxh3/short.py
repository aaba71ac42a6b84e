"""XXH3-128 of messages of up to 240 bytes, which have a formula for each range of lengths."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ..engine.numba_internals import NO_WRAPPERS
from ..simd.lanes import inlined
from ..simd.operations import add, lshr, shl, sub
from .constants import (
    MIX_1,
    MIX_2,
    PRIME32_2,
    PRIME64_1,
    PRIME64_2,
    PRIME64_3,
    PRIME64_4,
    SECRET,
    secret_word,
)
from .words import folded, read8, read32, read64, secret64, swapped, times, upper

MOST = 240
"""Bytes of the longest of these messages."""

SHIFTED, LAST = 3, 103
"""Where in the secret it begins for the further parts of messages over 128 bytes, and for their end."""

_EMPTY_LOW, _EMPTY_HIGH = secret_word(64) ^ secret_word(72), secret_word(80) ^ secret_word(88)
_FIRST = int.from_bytes(SECRET[:4], "little") ^ int.from_bytes(SECRET[4:8], "little")
_SECOND = int.from_bytes(SECRET[8:12], "little") ^ int.from_bytes(SECRET[12:16], "little")
_OF_8 = secret_word(16) ^ secret_word(24)
_LOW_OF_16, _HIGH_OF_16 = secret_word(32) ^ secret_word(40), secret_word(48) ^ secret_word(56)
_LOW_32 = 0xFFFFFFFF


@inlined
def avalanche(x):
    """Every bit of the result depends on every bit of x."""
    x = times(x ^ lshr(x, 37), MIX_1)
    return x ^ lshr(x, 32)


@inlined
def _avalanche_64(x):
    """The same by the finalizer of XXH64."""
    x = times(x ^ lshr(x, 33), PRIME64_2)
    x = times(x ^ lshr(x, 29), PRIME64_3)
    return x ^ lshr(x, 32)


@inlined
def _to_3(message, n):
    """The digest of 1 to 3 bytes."""
    first, middle, last = read8(message), read8(message + lshr(n, 1)), read8(message + n - 1)
    low = (first << 16) | (middle << 24) | last | (n << 8)
    turned = lshr(swapped(low), 32)
    high = ((turned << 13) | (turned >> 19)) & _LOW_32
    return _avalanche_64(low ^ _FIRST), _avalanche_64(high ^ _SECOND)


@inlined
def _to_8(message, n):
    """The digest of 4 to 8 bytes."""
    keyed = (read32(message) | shl(read32(message + n - 4), 32)) ^ _OF_8
    factor = add(PRIME64_1, n << 2)
    low = times(keyed, factor)
    high = add(upper(keyed, factor), shl(low, 1))
    low ^= lshr(high, 3)
    low = times(low ^ lshr(low, 35), MIX_2)
    return low ^ lshr(low, 28), avalanche(high)


@inlined
def _to_16(message, n):
    """The digest of 9 to 16 bytes."""
    first, last = read64(message), read64(message + n - 8)
    keyed = first ^ last ^ _LOW_OF_16
    last ^= _HIGH_OF_16
    low = add(times(keyed, PRIME64_1), shl(n - 1, 54))
    high = add(upper(keyed, PRIME64_1), add(last, times(last & _LOW_32, PRIME32_2 - 1)))
    low ^= swapped(high)
    high = add(upper(low, PRIME64_2), times(high, PRIME64_2))
    return avalanche(times(low, PRIME64_2)), avalanche(high)


@inlined
def _mixed(at, secret):
    """16 bytes mixed with two words of the secret."""
    return folded(read64(at) ^ secret64(secret), read64(at + 8) ^ secret64(secret + 8))


@inlined
def _mix(low, high, front, back, secret):
    """16 bytes at ``front`` and 16 at ``back`` taken into both words."""
    low = add(low, _mixed(front, secret)) ^ add(read64(back), read64(back + 8))
    high = add(high, _mixed(back, secret + 16)) ^ add(read64(front), read64(front + 8))
    return low, high


@inlined
def _ended(low, high, n):
    sums = add(add(times(low, PRIME64_1), times(high, PRIME64_4)), times(n, PRIME64_2))
    return avalanche(add(low, high)), sub(0, avalanche(sums))


@inlined
def _to_128(message, n):
    """The digest of 17 to 128 bytes."""
    low, high = times(n, PRIME64_1), 0
    for i in range((n - 1) // 32, -1, -1):
        front, back = message + 16 * i, message + n - 16 * (i + 1)
        low, high = _mix(low, high, front, back, 32 * i)
    return _ended(low, high, n)


@inlined
def _to_240(message, n):
    """The digest of 129 to 240 bytes."""
    low, high = times(n, PRIME64_1), 0
    for i in range(4):
        at = message + 32 * i
        low, high = _mix(low, high, at, at + 16, 32 * i)
    low, high = avalanche(low), avalanche(high)
    for k in range(n // 32 - 4):
        at = message + 128 + 32 * k
        low, high = _mix(low, high, at, at + 16, SHIFTED + 32 * k)
    end = message + n
    low, high = _mix(low, high, end - 16, end - 32, LAST)
    return _ended(low, high, n)


@njit(error_model="numpy", **NO_WRAPPERS)
def digest_of_short(message, n):
    """Low and high word of the digest of the ``n`` bytes at an address, at most `MOST`."""
    if n > 128:
        return _to_240(message, n)
    if n > 16:
        return _to_128(message, n)
    if n > 8:
        return _to_16(message, n)
    if n > 3:
        return _to_8(message, n)
    if n > 0:
        return _to_3(message, n)
    return _avalanche_64(_EMPTY_LOW), _avalanche_64(_EMPTY_HIGH)
