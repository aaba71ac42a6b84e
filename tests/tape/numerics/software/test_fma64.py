"""A fused multiply-add of float64 in whole numbers, next to exact integers of Python."""

import math
import random
import struct
from collections.abc import Iterator
from itertools import product

import numpy as np
from numba import njit

from dgrr.tape.numerics.exact_fma import fma
from dgrr.tape.numerics.software.fma64 import fma64

Triple = tuple[float, float, float]

SPECIAL = (
    0.0, 1.0, 1 + 2**-52, 5e-324, 2**-537, 2.2250738585072014e-308, 1.7976931348623157e308, math.inf, math.nan
)  # fmt: skip
"""And their negatives: all triples of them."""

HALVES = ((0x16B6DD157CFA63, 0x168A75807E40C1), (0x11D12802DF8B95, 0x1CBC90095E8C04))
"""The first product is 2**105 and some 30 bits more, the second is less by some."""

TIE = float(2**26 + 1), float(2**27 + 1)
"""Their product has 54 bits."""

COUNT = 6000


def as_float(word: int) -> float:
    """The float of 64 bits."""
    return float(struct.unpack("<d", struct.pack("<Q", word % 2**64))[0])


def word_of(x: float) -> int:
    """Its bits; all that is no number is one."""
    return int(struct.unpack("<Q", struct.pack("<d", x))[0]) if x == x else -1


def triples(rng: random.Random) -> Iterator[Triple]:
    """Of any bits; that nearly cancel; with subnormal results; that are near in size; of few digits, for ties."""

    def small(low: int, high: int) -> float:
        return math.ldexp(rng.random() - 0.5, rng.randrange(low, high))

    def whole() -> float:
        return float(rng.getrandbits(rng.randrange(1, 54)) | 1) * rng.choice((1, -1))

    for _ in range(COUNT):
        a, b, c = (as_float(rng.getrandbits(64)) for _ in range(3))
        yield a, b, c
        yield a, b, as_float(word_of(-a * b) + rng.randrange(-4, 5)) if a * b == a * b else c
        yield small(-560, -500), small(-541, -500), small(-1080, -1015)
        yield small(-60, 60), small(-60, 60), small(-60, 60)
        yield whole(), whole(), math.ldexp(whole(), rng.randrange(-60, 110))


def ties() -> Iterator[Triple]:
    """Addends of which a product is half of the last bit, nearly; and what decides a tie from far below."""
    rng = random.Random(1)
    for (x, y), _ in product(HALVES, range(40)):
        for sign in (1, -1):
            yield float(x), float(y), sign * math.ldexp(rng.getrandbits(52) | 1 << 52, 106)
    for k in range(-1074, 106):
        yield *TIE, math.ldexp(1, k)
        yield *TIE, math.ldexp(-1, k)


def test_it_is_rounded_once_whatever_is_given() -> None:
    ours = njit(fma64)
    signed = [sign * x for x in SPECIAL for sign in (1, -1)]
    every = [*product(signed, signed, signed), *ties(), *triples(random.Random(0))]
    with np.errstate(all="ignore"):
        wrong = [t for t in every if word_of(ours(*t)) != word_of(float(fma(*map(np.float64, t))))]
    assert not wrong
