"""The constants of the elementary functions that depend on the float type, shared with their reference.

Sources: ``exp`` and ``tanh`` are minimax polynomials found by the Remez exchange, which
tests/bench/elementary_coefficients.py does again; ``log`` and the two parts of ln 2 are fdlibm's (e_log.c and
e_exp.c, Sun Microsystems, 1993) and, for float32, those of FreeBSD's msun (e_logf.c and e_expf.c).
"""

from typing import Any, NamedTuple

import numpy as np

Real = np.floating[Any]


class Constants(NamedTuple):
    """Constants in one float type. Polynomials stand highest power first."""

    exp: tuple[Real, ...]
    """q in ``exp(r) = 1 + r + r² q(r)``, where ``-ln(2)/2 <= r <= ln(2)/2``."""
    log: tuple[Real, ...]
    """R in ``log((1 + s) / (1 - s)) = 2 s + s z R(z)``, where ``z = s²`` the quotient in ``[√½, √2]``."""
    tanh: tuple[Real, ...]
    """P in ``tanh(x) = x + x z P(z)``, where ``z = x²`` and ``-5/8 <= x <= 5/8``."""
    log2_e: Real
    """1 / ln 2."""
    ln2_high: Real
    """The leading bits of ln 2, so few that the product with any exponent is exact."""
    ln2_low: Real
    """What ``ln2_high`` leaves of ln 2."""
    root_half: Real
    """√½."""
    exp_zero: Real
    """A number whose exponential rounds to 0."""
    exp_overflow: Real
    """A number whose exponential overflows."""
    smallest_normal: Real
    """The smallest number that is not subnormal."""
    lift: Real
    """The power of two that makes every subnormal number normal."""
    lift_exponent: Real
    """Its exponent."""
    rounder: Real
    """``1.5 * 2**mantissa``: the low bits of ``rounder + x`` are x rounded to a whole number."""
    mantissa: int
    """How many bits of the mantissa are stored."""
    bias: int
    """The exponent field of 1."""


def _table(dtype: type[Real], text: str) -> tuple[Real, ...]:
    return tuple(dtype(float.fromhex(number)) for number in text.split())


FLOAT32 = Constants(
    exp=_table(
        np.float32,
        """0x1.9f08dcp-13 0x1.6d8cf6p-10 0x1.111270p-7 0x1.55548ep-5 0x1.555554p-3 0x1.000000p-1""",
    ),
    log=_table(np.float32, "0x1.f13c4cp-3 0x1.23d3dcp-2 0x1.999c26p-2 0x1.555554p-1"),
    tanh=_table(np.float32, "-0x1.75e172p-8 0x1.522684p-6 -0x1.b83c56p-5 0x1.110726p-3 -0x1.555532p-2"),
    log2_e=np.float32(float.fromhex("0x1.715476p+0")),
    ln2_high=np.float32(float.fromhex("0x1.62e4p-1")),
    ln2_low=np.float32(float.fromhex("0x1.7f7d1cp-20")),
    root_half=np.float32(float.fromhex("0x1.6a09e6p-1")),
    exp_zero=np.float32(-105),
    exp_overflow=np.float32(90),
    smallest_normal=np.float32(float.fromhex("0x1p-126")),
    lift=np.float32(float.fromhex("0x1p+24")),
    lift_exponent=np.float32(24),
    rounder=np.float32(float.fromhex("0x1.8p+23")),
    mantissa=23,
    bias=127,
)

FLOAT64 = Constants(
    exp=_table(
        np.float64,
        """
        0x1.ad7f86bbed09cp-26 0x1.28ad6998b9cabp-22 0x1.71df25351f8c3p-19 0x1.a0199a15ec13bp-16
        0x1.a01a012a6ae70p-13 0x1.6c16c18426be1p-10 0x1.1111111127b9bp-7 0x1.555555555088bp-5
        0x1.55555555554fap-3 0x1.000000000000ap-1
        """,
    ),
    log=_table(
        np.float64,
        """
        0x1.2f112df3e5244p-3 0x1.39a09d078c69fp-3 0x1.7466496cb03dep-3 0x1.c71c51d8e78afp-3
        0x1.2492494229359p-2 0x1.999999997fa04p-2 0x1.5555555555593p-1
        """,
    ),
    tanh=_table(
        np.float64,
        """
        -0x1.0da70b165039ep-16 0x1.43911239c4870p-14 -0x1.df5572cfc1c61p-13 0x1.33661201aadcep-11
        -0x1.7d68a30b5899ep-10 0x1.d6cf280afb6abp-9 -0x1.226e162bd6627p-7 0x1.664f477ad9565p-6
        -0x1.ba1ba1b506416p-5 0x1.111111110acccp-3 -0x1.55555555554ffp-2
        """,
    ),
    log2_e=np.float64(float.fromhex("0x1.71547652b82fep+0")),
    ln2_high=np.float64(float.fromhex("0x1.62e42feep-1")),
    ln2_low=np.float64(float.fromhex("0x1.a39ef35793c76p-33")),
    root_half=np.float64(float.fromhex("0x1.6a09e667f3bcdp-1")),
    exp_zero=np.float64(-746),
    exp_overflow=np.float64(710),
    smallest_normal=np.float64(float.fromhex("0x1p-1022")),
    lift=np.float64(float.fromhex("0x1p+54")),
    lift_exponent=np.float64(54),
    rounder=np.float64(float.fromhex("0x1.8p+52")),
    mantissa=52,
    bias=1023,
)
