"""``a * b + c`` of float64 rounded once, by whole numbers: for machines that have no such instruction.

A float is ``m * 2**e`` with a whole ``m`` of 53 bits. Product and addend become numbers of 128 bits that have some
twenty zeros behind them; the smaller is moved to the exponent of the greater, and what is lost of it is kept as its
last bit, which lies too low to be told from more digits. Their sum is then rounded, half to even.
"""

# kernels: none

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit, types
from numba.extending import intrinsic

U = types.uint64
I = types.int64  # noqa: E741

FRACTION, BIAS, INFINITE = 52, 1023, 0x7FF
"""Bits behind the point, what is added to an exponent, and the exponent of what is infinite or no number."""

LOW = 0xFFFFFFFF


@intrinsic
def _bits(context, x):
    kind = types.uint64(types.float64)
    return kind, lambda ctx, builder, signature, args: builder.bitcast(args[0], ctx.get_value_type(types.uint64))


@intrinsic
def _float(context, x):
    kind = types.float64(types.uint64)
    return kind, lambda ctx, builder, signature, args: builder.bitcast(args[0], ctx.get_value_type(types.float64))


@njit(inline="always")
def _leading(x):
    """Zeros before the first bit of a word that is not 0."""
    n = I(0)
    for step in (32, 16, 8, 4, 2, 1):
        if x >> U(64 - step) == U(0):
            x = x << U(step)
            n += step
    return n


@njit(inline="always")
def _parts(x):
    """A finite float other than 0 as a whole number whose first bit is bit 52, and its exponent."""
    bits = _bits(x) & U((1 << 63) - 1)
    exponent, whole = I(bits >> U(FRACTION)), bits & U((1 << FRACTION) - 1)
    if exponent == 0:
        shift = _leading(whole) - (63 - FRACTION)
        return whole << U(shift), 1 - shift - BIAS - FRACTION
    return whole | U(1 << FRACTION), exponent - BIAS - FRACTION


@njit(inline="always")
def _product(a, b):
    """The 128 bits of a product, high and low."""
    low, middle = (a & U(LOW)) * (b & U(LOW)), (a >> U(32)) * (b & U(LOW))
    middle += low >> U(32)
    other = (a & U(LOW)) * (b >> U(32)) + (middle & U(LOW))
    return (a >> U(32)) * (b >> U(32)) + (middle >> U(32)) + (other >> U(32)), other << U(32) | low & U(LOW)


@njit(inline="always")
def _moved(high, low, by):
    """128 bits moved down; the last bit is set if any was lost."""
    if by >= 128:
        return U(0), U(1)
    if by >= 64:
        lost = low | (high << U(128 - by) if by > 64 else U(0))
        return U(0), high >> U(by - 64) | U(lost != U(0))
    if by > 0:
        lost = low << U(64 - by)
        return high >> U(by), high << U(64 - by) | low >> U(by) | U(lost != U(0))
    return high, low


@njit(inline="always")
def _rounded(whole, exponent, sign):
    """The float nearest to ``whole * 2**exponent``, half to even; bit 63 of ``whole`` is set."""
    field = exponent + 63 + BIAS
    cut = I(63 - FRACTION)
    if field < 1:
        cut, field = cut + 1 - field, I(1)
    if cut > 64:
        return _float(sign << U(63))  # less than half of the smallest
    kept = whole >> U(cut) if cut < 64 else U(0)
    rest, half = whole << U(64 - cut) if cut < 64 else whole, U(1 << 63)
    if rest > half or (rest == half and kept & U(1) != U(0)):
        kept += U(1)
    bits = kept + (U(field - 1) << U(FRACTION))  # the first bit counts as one of the exponent, and so does a carry
    if field >= INFINITE or bits >> U(FRACTION) >= U(INFINITE):
        bits = U(INFINITE << FRACTION)
    return _float(bits | sign << U(63))


def fma64(a, b, c):
    """``a * b + c``, rounded once."""
    if a - a != 0.0 or b - b != 0.0 or a == 0.0 or b == 0.0:
        return a * b + c
    if c - c != 0.0:
        return c
    if c == 0.0:
        return a * b  # not + c: a product that vanishes keeps its sign
    (x, ex), (y, ey), (z, ez) = _parts(a), _parts(b), _parts(c)
    sign, other = (_bits(a) ^ _bits(b)) >> U(63), _bits(c) >> U(63)
    high, low = _product(x, y)
    high, low, exponent = high << U(20) | low >> U(44), low << U(20), ex + ey - 20
    addend, nothing, places = z << U(9), U(0), ez - 73
    if places > exponent:
        high, low = _moved(high, low, places - exponent)
        exponent = places
    else:
        addend, nothing = _moved(addend, nothing, exponent - places)
    if sign == other:
        low += nothing
        high += addend + U(low < nothing)
    else:
        if high < addend or (high == addend and low < nothing):
            high, low, addend, nothing, sign = addend, nothing, high, low, other
        high -= addend + U(low < nothing)
        low -= nothing
    if high == U(0):
        if low == U(0):
            return 0.0
        high, low, exponent = low, U(0), exponent - 64
    shift = _leading(high)
    if shift > 0:
        high, low = high << U(shift) | low >> U(64 - shift), low << U(shift)
    return _rounded(high | U(low != U(0)), exponent + 64 - shift, sign)
