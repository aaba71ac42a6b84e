"""The constants of the elementary functions that depend on the float type, shared with their reference.

Sources: ``log`` and the two parts of ln 2 are fdlibm's (e_log.c and e_exp.c, Sun Microsystems, 1993) and, for
float32, those of FreeBSD's msun (e_logf.c and e_expf.c); the other polynomials are minimax, found by the Remez
exchange, which tests/bench/elementary_coefficients.py does again; the rest is the true number, rounded.
"""

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

Real = np.floating[Any]
R = TypeVar("R")
"""What stands for a number: one of the type, or one in every lane or place."""


class Constants(NamedTuple, Generic[R]):
    """Constants in one float type. Polynomials stand highest power first."""

    exp: tuple[R, ...]
    """q in ``exp(r) = 1 + r + r² q(r)``, where ``-ln(2)/2 <= r <= ln(2)/2``."""
    log: tuple[R, ...]
    """R in ``log((1 + s) / (1 - s)) = 2 s + s z R(z)``, where ``z = s²`` the quotient in ``[√½, √2]``."""
    tanh: tuple[R, ...]
    """P in ``tanh(x) = x + x z P(z)``, where ``z = x²`` and ``-5/8 <= x <= 5/8``."""
    artanh: tuple[R, ...]
    """T in ``log((1 + s) / (1 - s)) = 2 s + s z (2/3 + z T(z))``, where ``z = s²`` and the quotient in ``[√½, √2]``."""
    erf_near: tuple[R, ...]
    """E in ``erf(x) = x + x E(z)``, where ``z = x²`` and ``-7/8 <= x <= 7/8``."""
    erf_far: tuple[R, ...]
    """L in ``erf(x) = 1 - exp(L(x))``, where ``7/8 <= x <= erf_one``."""
    arctan: tuple[R, ...]
    """A in ``atan(u) = u + u z A(z)``, where ``z = u²`` and ``1 - √2 <= u <= √2 - 1``."""
    arcsine: tuple[R, ...]
    """B in ``asin(t) = t + t z B(z)``, where ``z = t²`` and ``-1/2 <= t <= 1/2``."""
    sine: tuple[R, ...]
    """S in ``sin(r) = r + r z S(z)``, where ``z = r²`` and ``-pi/4 <= r <= pi/4``."""
    cosine: tuple[R, ...]
    """C in ``cos(r) = 1 - z / 2 + z² C(z)``, where ``z = r²`` and ``-pi/4 <= r <= pi/4``."""
    log2_e: R
    """1 / ln 2."""
    ln2_high: R
    """The leading bits of ln 2, so few that the product with any exponent is exact."""
    ln2_low: R
    """What ``ln2_high`` leaves of ln 2."""
    two_thirds: R
    """2/3."""
    two_thirds_low: R
    """What ``two_thirds`` leaves of 2/3."""
    two_over_pi: R
    """2 / pi."""
    half_pi: R
    """pi / 2."""
    half_pi_middle: R
    """What ``half_pi`` leaves of pi / 2."""
    half_pi_low: R
    """What the two leave."""
    turns_known: R
    """Up to here three parts of pi / 2 are enough to reduce an angle."""
    root_half: R
    """√½."""
    erf_one: R
    """A number whose erf rounds to 1."""
    tiny: R
    """Below it ``expm1(x)`` and ``sin(x)`` are x to within half an ULP."""
    exp_zero: R
    """A number whose exponential rounds to 0."""
    exp_overflow: R
    """A number whose exponential overflows."""
    smallest_normal: R
    """The smallest number that is not subnormal."""
    lift: R
    """The power of two that makes every subnormal number normal."""
    lift_exponent: R
    """Its exponent."""
    rounder: R
    """``1.5 * 2**mantissa``: the low bits of ``rounder + x`` are x rounded to a whole number."""
    mantissa: int
    """How many bits of the mantissa are stored."""
    bias: int
    """The exponent field of 1."""
    sign: int
    """The position of the sign bit."""


def _table(dtype: type[Real], text: str) -> tuple[Real, ...]:
    return tuple(dtype(float.fromhex(number)) for number in text.split())


FLOAT32: Constants[Real] = Constants(
    exp=_table(
        np.float32,
        """0x1.9f08dcp-13 0x1.6d8cf6p-10 0x1.111270p-7 0x1.55548ep-5 0x1.555554p-3 0x1.000000p-1""",
    ),
    log=_table(np.float32, "0x1.f13c4cp-3 0x1.23d3dcp-2 0x1.999c26p-2 0x1.555554p-1"),
    tanh=_table(np.float32, "-0x1.75e172p-8 0x1.522684p-6 -0x1.b83c56p-5 0x1.110726p-3 -0x1.555532p-2"),
    artanh=_table(
        np.float32,
        """
        0x1.8eb390p-3 0x1.c6595ep-3 0x1.249374p-2 0x1.999998p-2
        """,
    ),
    erf_near=_table(
        np.float32,
        """
        0x1.6bdf6cp-14 -0x1.ae7f9ap-11 0x1.553abap-8 -0x1.b819a8p-6
        0x1.ce2e84p-4 -0x1.812744p-2 0x1.06eba8p-3
        """,
    ),
    erf_far=_table(
        np.float32,
        """
        -0x1.135b32p-20 -0x1.ec9610p-18 0x1.74bcd6p-12 -0x1.00b876p-8
        0x1.93606cp-6 -0x1.b8fe16p-4 -0x1.448310p-1 -0x1.211af6p+0
        0x1.231176p-13
        """,
    ),
    arctan=_table(
        np.float32,
        """
        -0x1.f1ed38p-5 0x1.b1ec22p-4 -0x1.23b522p-3 0x1.999196p-3
        -0x1.55554ap-2
        """,
    ),
    arcsine=_table(
        np.float32,
        """
        0x1.3355eap-5 0x1.d91f2cp-7 0x1.0491aap-5 0x1.6caed2p-5
        0x1.33387cp-4 0x1.55554cp-3
        """,
    ),
    sine=_table(
        np.float32,
        """
        0x1.6ccf5ep-19 -0x1.a00f74p-13 0x1.111108p-7 -0x1.555556p-3
        """,
    ),
    cosine=_table(
        np.float32,
        """
        -0x1.241cacp-22 0x1.a010d6p-16 -0x1.6c16b8p-10 0x1.555556p-5
        """,
    ),
    log2_e=np.float32(float.fromhex("0x1.715476p+0")),
    ln2_high=np.float32(float.fromhex("0x1.62e4p-1")),
    ln2_low=np.float32(float.fromhex("0x1.7f7d1cp-20")),
    two_thirds=np.float32(float.fromhex("0x1.555556p-1")),
    two_thirds_low=np.float32(float.fromhex("-0x1.555556p-26")),
    two_over_pi=np.float32(float.fromhex("0x1.45f306p-1")),
    half_pi=np.float32(float.fromhex("0x1.921fb6p+0")),
    half_pi_middle=np.float32(float.fromhex("-0x1.777a5cp-25")),
    half_pi_low=np.float32(float.fromhex("-0x1.ee59dap-50")),
    turns_known=np.float32(32768),
    root_half=np.float32(float.fromhex("0x1.6a09e6p-1")),
    erf_one=np.float32(4),
    tiny=np.float32(float.fromhex("0x1p-25")),
    exp_zero=np.float32(-105),
    exp_overflow=np.float32(89),
    smallest_normal=np.float32(float.fromhex("0x1p-126")),
    lift=np.float32(float.fromhex("0x1p+24")),
    lift_exponent=np.float32(24),
    rounder=np.float32(float.fromhex("0x1.8p+23")),
    mantissa=23,
    bias=127,
    sign=31,
)

FLOAT64: Constants[Real] = Constants(
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
    artanh=_table(
        np.float64,
        """
        0x1.0e424751d1e4ep-3 0x1.0f7ff4353caabp-3 0x1.3b1eeb9a50553p-3 0x1.745ce9e5b1107p-3
        0x1.c71c722d60003p-3 0x1.2492492457d9ep-2 0x1.9999999999b30p-2
        """,
    ),
    erf_near=_table(
        np.float64,
        """
        -0x1.dbd1db14ffe9fp-31 0x1.e517bd234d828p-27 -0x1.5dca514222216p-23 0x1.b9c05593a8309p-20
        -0x1.f4d00cfd1a255p-17 0x1.f9a30f2ec2b91p-14 -0x1.c02db35e65a4cp-11 0x1.565bcd0bae8ccp-8
        -0x1.b82ce3127aba9p-6 0x1.ce2f21a042991p-4 -0x1.812746b0379e4p-2 0x1.06eba8214db69p-3
        """,
    ),
    erf_far=_table(
        np.float64,
        """
        0x1.473ed800d73b7p-46 -0x1.262738e740628p-40 0x1.f1f0dcb0e21a2p-36 -0x1.081e278b42e8cp-31
        0x1.8a1efc2e37165p-28 -0x1.b7aed73bce474p-25 0x1.7c095ad4e1d4ap-22 -0x1.03af023ff3677p-19
        0x1.1a9e8c52b143dp-17 -0x1.e5be346108b4cp-16 0x1.3d1a5a5fe8b69p-14 -0x1.1358a1578c8dep-13
        0x1.c18e9817b86e9p-15 0x1.0cf48a41fc84bp-11 -0x1.acc49f106ddc5p-10 0x1.67293d88b8732p-13
        0x1.39b40cfbb9b6ep-6 -0x1.a4fbf753c13b3p-4 -0x1.45f2cc830a72ep-1 -0x1.20dd79bc4beaep+0
        0x1.7116641406788p-26
        """,
    ),
    arctan=_table(
        np.float64,
        """
        0x1.f1e3c77538d53p-7 -0x1.1236288ac0a89p-5 0x1.70ec712d9f514p-5 -0x1.ab7d421a6c54cp-5
        0x1.e171f501b1de4p-5 -0x1.110c722f1280ep-4 0x1.3b136e223f043p-4 -0x1.745d14b935560p-4
        0x1.c71c71b746e86p-4 -0x1.249249247567fp-3 0x1.999999999964bp-3 -0x1.5555555555554p-2
        """,
    ),
    arcsine=_table(
        np.float64,
        """
        0x1.139978d361c45p-5 -0x1.ac669ab03a87ap-6 0x1.96bc196e4a5b0p-6 0x1.65dd226684d50p-11
        0x1.47ffa577d0660p-7 0x1.36c4df01b917ap-7 0x1.7ba3f4badb7a8p-7 0x1.c980e69468519p-7
        0x1.1c4f854dce2a0p-6 0x1.6e8b9af356981p-6 0x1.f1c71ca831e82p-6 0x1.6db6db6d48bfcp-5
        0x1.3333333333a3bp-4 0x1.5555555555553p-3
        """,
    ),
    sine=_table(
        np.float64,
        """
        0x1.5d8dfe794470bp-33 -0x1.ae5e5473ac35cp-26 0x1.71de35604171bp-19 -0x1.a01a019bf5811p-13
        0x1.111111110f78fp-7 -0x1.5555555555548p-3
        """,
    ),
    cosine=_table(
        np.float64,
        """
        -0x1.8fa291dca014ap-37 0x1.1ee9d3de9e18fp-29 -0x1.27e4f7e541c1ep-22 0x1.a01a019c7cdf6p-16
        -0x1.6c16c16c14f47p-10 0x1.555555555554bp-5
        """,
    ),
    log2_e=np.float64(float.fromhex("0x1.71547652b82fep+0")),
    ln2_high=np.float64(float.fromhex("0x1.62e42feep-1")),
    ln2_low=np.float64(float.fromhex("0x1.a39ef35793c76p-33")),
    two_thirds=np.float64(float.fromhex("0x1.5555555555555p-1")),
    two_thirds_low=np.float64(float.fromhex("0x1.5555555555555p-55")),
    two_over_pi=np.float64(float.fromhex("0x1.45f306dc9c883p-1")),
    half_pi=np.float64(float.fromhex("0x1.921fb54442d18p+0")),
    half_pi_middle=np.float64(float.fromhex("0x1.1a62633145c07p-54")),
    half_pi_low=np.float64(float.fromhex("-0x1.f1976b7ed8fbcp-110")),
    turns_known=np.float64(1073741824),
    root_half=np.float64(float.fromhex("0x1.6a09e667f3bcdp-1")),
    erf_one=np.float64(6),
    tiny=np.float64(float.fromhex("0x1p-54")),
    exp_zero=np.float64(-746),
    exp_overflow=np.float64(710),
    smallest_normal=np.float64(float.fromhex("0x1p-1022")),
    lift=np.float64(float.fromhex("0x1p+54")),
    lift_exponent=np.float64(54),
    rounder=np.float64(float.fromhex("0x1.8p+52")),
    mantissa=52,
    bias=1023,
    sign=63,
)

PLACES = """
0000000000000000 a2f9836e4e441529 fc2757d1f534ddc0 db6295993c439041 fe5163abdebbc561
b7246e3a424dd2e0 06492eea09d1921c fe1deb1cb129a73e e88235f52ebb4484 e99c7026b45f7e41
3991d639835339f4 9c845f8bbdf9283b 1ff897ffde05980f ef2f118b5a0a6d1f 6d367ecf27cb09b7
4f463f669e5fea2d 7527bac7ebe5f17b 3d0739f78a5292ea 6bfb5fb11f8d5d08 56033046fc7b6bab
"""
TWO_OVER_PI = np.array([int(word, 16) for word in PLACES.split()], np.uint64)
"""64 zeros and the first 1216 binary places of 2 / pi, in words of 64 bits: enough for every float64."""
