"""exp, log, tanh and sigmoid: error against mpmath, special values, vectors."""

import math
import re
from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit, types

from dgrr.tape.numerics import coefficients
from dgrr.tape.numerics.math import elementary
from dgrr.tape.numerics.simd import operations

from .measured import bits, loop_over

mpmath.mp.prec = 140

NAMES = ("exp", "log", "tanh", "sigmoid")
DTYPES = (np.float32, np.float64)
NUMBA_TYPES = {np.float32: types.float32, np.float64: types.float64}
MAX_ULP = {"exp": 0.8, "log": 0.8, "tanh": 1.4, "sigmoid": 1.5}
"""The documented bounds."""


def hardware_fma() -> bool:
    """Whether the target has the instruction; without it LLVM calls a function."""

    @njit
    def fused(x):
        return operations.fma(x, x, x)

    fused.compile((types.float64,))
    return re.search("fmadd|fmla", fused.inspect_asm()[(types.float64,)]) is not None


LOOPS = {name: loop_over(getattr(elementary, name)) for name in NAMES}
LN2 = math.log(2)
HALVES = [sign * LN2 * (k + 0.5) for k in (0, 1, 2, 10, 60) for sign in (1, -1)]
SMALL_EXP = [-87.336544, -103.972, -708.3964185322, -745.1332191019]
CUTS = {
    "exp": [0.0, *HALVES, *SMALL_EXP, 88.722839, 709.7827128933],
    "log": [math.sqrt(0.5), 1.0, math.sqrt(2), 2.0, 0.5, 2.0**-126, 2.0**-1022, math.sqrt(0.5) * 2.0**-126],
    "tanh": [0.0, 0.625, -0.625, LN2 / 4, 0.549306144, 3 * LN2 / 4, 9.010913, 19.061547, 44.3614, 354.891],
    "sigmoid": [0.0, *HALVES, *SMALL_EXP, 17.3, 37.5],
}
"""Where a formula changes, results turn subnormal, overflow or become constant."""


CASES = [pytest.param((name, dtype), id=f"{name}-{dtype.__name__}") for name in NAMES for dtype in DTYPES]


@pytest.fixture(params=CASES)
def case(request):
    """A function's name and a float type."""
    return request.param


def evaluate(name: str, x: np.ndarray) -> np.ndarray:
    """The compiled function on an array; the output starts as junk."""
    y = np.full_like(x, 12345)
    LOOPS[name](x, y)
    return y


def integers(dtype: type) -> type:
    return np.int32 if dtype is np.float32 else np.int64


def near(dtype: type, centres: list[float], reach: int) -> np.ndarray:
    """The floats up to ``reach`` steps around each centre, a row each, ascending."""
    patterns = np.array(centres, dtype).view(integers(dtype))
    magnitudes = (patterns & np.iinfo(patterns.dtype).max).astype(np.int64)
    ordered = np.where(patterns < 0, -magnitudes, magnitudes)[:, None] + np.arange(-reach, reach + 1)
    x = np.abs(ordered).astype(patterns.dtype).view(dtype)
    return np.where(ordered < 0, -x, x)


def binades(dtype: type) -> np.ndarray:
    """Two random floats and the first and last of every binade of either sign, subnormals included."""
    info, rng = np.finfo(dtype), np.random.default_rng(1)
    exponents = np.arange(0, 2 ** (info.bits - info.nmant - 1) - 1, dtype=np.int64)[:, None] << info.nmant
    last = (1 << int(info.nmant)) - 1
    fractions = np.column_stack([exponents * 0, exponents * 0 + last, rng.integers(1, last, (exponents.size, 2))])
    x = (exponents | fractions).astype(integers(dtype)).view(dtype).ravel()
    return np.concatenate([x, -x])


def true_value(name: str, x: Any) -> mpmath.mpf:
    wide = mpmath.mpf(float(x))
    return 1 / (1 + mpmath.exp(-wide)) if name == "sigmoid" else getattr(mpmath, name)(wide)


def ulps(name: str, x: Any, y: Any) -> float:
    """The error in units of the float spacing at the true value; infinity counts as the next power of 2."""
    info = np.finfo(type(y))
    ceiling = mpmath.ldexp(1, int(info.maxexp))
    true = min(true_value(name, x), ceiling)
    got = ceiling if y == np.inf else mpmath.mpf(float(y))
    exponent = max(mpmath.frexp(true)[1] - 1, int(info.minexp)) - int(info.nmant)
    return float(mpmath.ldexp(abs(got - true), -exponent))


def worst(name: str, x: np.ndarray) -> float:
    if name == "log":
        x = x[x > 0]
    elif name == "tanh":
        x = x[np.abs(x) < 400]
    else:
        x = x[np.abs(x) < 800]
    return max(ulps(name, *pair) for pair in zip(x, evaluate(name, x), strict=True))


def test_published_constants():
    """The words in fdlibm's e_log.c and e_exp.c, and in FreeBSD's e_logf.c and e_expf.c."""
    log64 = "3FC2F112DF3E5244 3FC39A09D078C69F 3FC7466496CB03DE 3FCC71C51D8E78AF 3FD2492494229359"
    words64 = f"{log64} 3FD999999997FA04 3FE5555555555593 3FE62E42FEE00000 3DEA39EF35793C76"
    logs = [0xF89E26 * 2.0**-26, 0x91E9EE * 2.0**-25, 0xCCCE13 * 2.0**-25, 0xAAAAAA * 2.0**-24]
    parts = [np.uint32(word).view(np.float32) for word in (0x3F317200, 0x35BFBE8E)]
    c = coefficients.FLOAT64
    assert [f"{x.view(np.int64):X}" for x in (*c.log, c.ln2_high, c.ln2_low)] == words64.split()
    c = coefficients.FLOAT32
    assert [*c.log, c.ln2_high, c.ln2_low] == [*logs, *parts]


def test_error_in_every_binade(case):
    name, dtype = case
    assert worst(name, binades(dtype)) <= MAX_ULP[name]


def test_error_where_results_vary(case):
    name, dtype = case
    rng = np.random.default_rng(2)
    x = [rng.uniform(-104, 89, 1000), rng.uniform(-3, 3, 2000), rng.uniform(0.4, 1.6, 1000)]
    if dtype is np.float64:
        x.append(rng.uniform(-745, 710, 1000))
    assert worst(name, np.concatenate(x).astype(dtype)) <= MAX_ULP[name]


def test_error_at_the_cuts(case):
    name, dtype = case
    assert worst(name, near(dtype, CUTS[name], 40).ravel()) <= MAX_ULP[name]


INF, NAN = np.inf, np.nan
SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (710, INF), (-746, 0), (1e-300, 1), (NAN, NAN)],
    "log": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (-1, NAN), (-1e-45, NAN), (NAN, NAN)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e38, 1), (-1e38, -1), (NAN, NAN)],
    "sigmoid": [(0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (800, 1), (-800, 0), (NAN, NAN)],
}


def test_special_values(case):
    name, dtype = case
    x, expected = (np.array(column, dtype) for column in zip(*SPECIAL[name], strict=True))
    np.testing.assert_array_equal(bits(evaluate(name, x)), bits(expected))


def test_the_smallest_results_and_arguments(case):
    name, dtype = case
    tiny = np.finfo(dtype).smallest_subnormal
    small = np.array([tiny, 2 * tiny, 3 * tiny, np.finfo(dtype).smallest_normal], dtype)
    if name == "tanh":
        np.testing.assert_array_equal(bits(evaluate(name, small)), bits(small))
        np.testing.assert_array_equal(bits(evaluate(name, -small)), bits(-small))
    elif name == "log":
        np.testing.assert_array_equal(evaluate(name, small), [dtype(math.log(float(x))) for x in small])
    else:
        roots = np.log(small.astype(np.longdouble)).astype(dtype)
        np.testing.assert_array_equal(evaluate(name, roots)[:3], small[:3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_overflow_begins_after_the_logarithm_of_the_largest_float(dtype):
    limit = mpmath.log(mpmath.mpf(float(np.finfo(dtype).max)))
    around = near(dtype, [float(limit)], 2).ravel()
    below = np.array([mpmath.mpf(float(x)) <= limit for x in around])
    assert below.any()
    assert not below.all()
    np.testing.assert_array_equal(np.isfinite(evaluate("exp", around)), below)


def test_every_nan_gives_nan(case):
    name, dtype = case
    quiet = int(np.array([np.nan], dtype).view(integers(dtype))[0])
    patterns = [quiet, quiet + 1, quiet - 1, quiet | 0x12345, np.iinfo(integers(dtype)).max]
    positive = np.array(patterns, integers(dtype))
    x = np.concatenate([positive, positive | np.iinfo(integers(dtype)).min]).view(dtype)
    assert np.isnan(x).all()
    assert np.isnan(evaluate(name, x)).all()


def test_tanh_is_odd_to_the_bit():
    for dtype in DTYPES:
        info = np.iinfo(integers(dtype))
        x = np.random.default_rng(4).integers(0, info.max, 50_000, info.dtype).view(dtype)
        x = np.concatenate([x, np.linspace(0, 12, 50_000, dtype=dtype)])
        np.testing.assert_array_equal(bits(evaluate("tanh", -x)), bits(-evaluate("tanh", x)))


def test_neighbours_never_fall(case):
    name, dtype = case
    rng = np.random.default_rng(5)
    starts = [*CUTS[name], *rng.uniform(-100, 88, 40), *rng.uniform(-1, 1, 40)]
    x = near(dtype, [abs(s) for s in starts] if name == "log" else starts, 1000)
    y = evaluate(name, x.ravel()).reshape(x.shape)
    with np.errstate(invalid="ignore"):
        falls = np.diff(y, axis=1) < 0
    assert not falls.any()
    assert not (y < 0).any() or name in ("log", "tanh")


def test_vectors_give_the_bits_of_scalars(case):
    name, dtype = case
    x = np.linspace(-2 if name != "log" else 0, 95, 67, dtype=dtype)
    scalars = np.concatenate([evaluate(name, x[i : i + 1]) for i in range(x.size)])
    for n in range(68):
        np.testing.assert_array_equal(bits(evaluate(name, x[:n])), bits(scalars[:n]))


def test_loops_vectorise(case):
    name, dtype = case
    array = types.Array(NUMBA_TYPES[dtype], 1, "C")
    LOOPS[name].compile((array, array))
    ir = LOOPS[name].inspect_llvm()[(array, array)]
    assert re.search(r"call <\d+ x \w+> @llvm\.fma", ir) or not hardware_fma()
