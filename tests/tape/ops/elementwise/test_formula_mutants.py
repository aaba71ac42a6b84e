"""The tests of formulas can fail: each formula that is wrong in one way misses its bound, or a special value.

Of a wrong formula kernel and reading agree, so nothing but the truths and the tables of special values can notice.
"""

import inspect
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

from dgrr.tape.numerics.math import elementary, inverse, trigonometry
from dgrr.tape.numerics.math.reference.functions import reading

from .test_truths import FORMULAS, bits, ulps
from .truths import NEAR, Array, Near

TRUTHS = {
    **NEAR,
    "power": NEAR["broken_power"],
    "atan": Near(mpmath.atan, 0.85),
    "asin": Near(mpmath.asin, 0.7),
    "acos": Near(mpmath.acos, 0.7),
    "sinh": Near(mpmath.sinh, 2.0),
    "cosh": Near(mpmath.cosh, 1.2),
    "asinh": Near(mpmath.asinh, 1.8),
    "acosh": Near(mpmath.acosh, 2.6),
    "atanh": Near(mpmath.atanh, 2.1),
    "sin_near": Near(mpmath.sin, 0.85),
    "cos_near": Near(mpmath.cos, 0.85),
}
INF, NAN, PI = np.inf, np.nan, np.pi
TURNS = 30_000.0
"""Angles up to here are reduced in place."""
SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (710, INF), (-800, 0), (-1e30, 0), (NAN, NAN)],
    "log": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (-1, NAN), (NAN, NAN)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN)],
    "sigmoid": [(0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN)],
    "log1p": [(0, 0), (-0.0, -0.0), (INF, INF), (-1, -INF), (-2, NAN), (NAN, NAN)],
    "expm1": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN)],
    "softplus": [(INF, INF), (-INF, 0), (NAN, NAN)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN)],
    "power": [
        (0, 0.7, 0),
        (INF, 0.7, INF),
        (0, -0.7, INF),
        (INF, -0.7, 0),
        (-INF, 0.7, INF),
        (-1, 0.7, NAN),
        (NAN, 0.7, NAN),
    ],
    "pow_of_elements": [
        *((0, -3, INF), (-0.0, -3, -INF), (0, -2, INF), (-0.0, -2, INF), (-0.0, -0.5, INF), (0, -INF, INF)),
        *((0, 3, 0), (-0.0, 3, -0.0), (-0.0, 2, 0), (-0.0, 0.5, 0), (-1, INF, 1), (-1, -INF, 1), (1, NAN, 1)),
        *((NAN, 0, 1), (-INF, -0.0, 1), (-2, 0.5, NAN), (-INF, 0.5, INF), (0.5, -INF, INF), (2, -INF, 0)),
        *((0.5, INF, 0), (2, INF, INF), (-INF, -3, -0.0), (-INF, -2, 0), (-INF, 3, -INF), (-INF, 2, INF)),
        *((INF, -1, 0), (INF, 2, INF), (NAN, 2, NAN), (2, NAN, NAN), (-1, 3, -1), (-1, 4, 1), (-2, 3, -8), (-2, 2, 4)),
    ],
    "atan": [(0, 0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2), (NAN, NAN)],
    "atan2": [
        *((0, 1, 0), (-0.0, 1, -0.0), (0, -1, PI), (-0.0, -1, -PI), (0, 0, 0), (0, -0.0, PI), (-0.0, -0.0, -PI)),
        *((1, 0, PI / 2), (-1, 0, -PI / 2), (1, INF, 0), (-1, INF, -0.0), (1, -INF, PI), (-1, -INF, -PI)),
        *((INF, 1, PI / 2), (-INF, 1, -PI / 2), (INF, INF, PI / 4), (-INF, INF, -PI / 4), (INF, -INF, PI * 3 / 4)),
        *((-INF, -INF, -PI * 3 / 4), (NAN, 1, NAN), (1, NAN, NAN)),
    ],
    "asin": [(0, 0), (-0.0, -0.0), (1, PI / 2), (-1, -PI / 2), (2, NAN), (NAN, NAN)],
    "acos": [(1, 0), (0, PI / 2), (-0.0, PI / 2), (-1, PI), (2, NAN), (-2, NAN), (NAN, NAN)],
    "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "cosh": [(0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1, 0), (INF, INF), (0.5, NAN), (NAN, NAN)],
    "atanh": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (2, NAN), (NAN, NAN)],
    "sin_near": [(0, 0), (-0.0, -0.0), (NAN, NAN)],
    "cos_near": [(0, 1), (-0.0, 1), (NAN, NAN)],
}
"""What C's Annex F and IEEE 754-2019 say of each function: its arguments, then its value."""
DOMAIN = {
    "log": (0.0, INF),
    "log1p": (-0.999, INF),
    "power": (0.0, INF),
    "pow_of_elements": (0.0, INF),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "acosh": (1.0, INF),
    "atanh": (-0.999, 0.999),
    "sin_near": (-TURNS, TURNS),
    "cos_near": (-TURNS, TURNS),
}
"""Between which numbers a function is looked at."""


class Mutant(NamedTuple):
    """A piece of a module's text, what stands in its place, and the function that is wrong then."""

    module: ModuleType
    function: str
    text: str
    wrong: str


MUTANTS = {
    "exp: part of the reduction is lost": Mutant(
        elementary, "exp", "return raised(rounded, high, n * -c.ln2_low, r)", "return raised(rounded, high, n - n, r)"
    ),
    "exp: a correction of the other sign": Mutant(
        elementary, "exp", "return raised(rounded, high, n * -c.ln2_low, r)",
        "return raised(rounded, high, n * c.ln2_low, r)",
    ),
    "exp: the rounding of 1 + high is lost": Mutant(
        elementary, "exp", "y = y + (((one - y) + high) + tail)", "y = y + tail"
    ),
    "exp: no lower bound": Mutant(elementary, "exp", "    x = select(x < c.exp_zero, c.exp_zero, x)\n", ""),
    "exp: NaN is infinite": Mutant(
        elementary, "exp", "x = select(x > c.exp_overflow, c.exp_overflow, x)",
        "x = select(x <= c.exp_overflow, x, c.exp_overflow)",
    ),
    "tanh: the cut elsewhere": Mutant(elementary, "tanh", "a < constant(x, 0.625)", "a < constant(x, 0.75)"),
    "tanh: -0 is +0": Mutant(
        elementary, "tanh", "return float_of(add(bits_of(y), sign))", "return select(x < -one * (one - one), -y, y)"
    ),
    "sigmoid: no correction": Mutant(elementary, "sigmoid", "return fma(rest, inverse, y)", "return y"),
    "sigmoid: half of the correction": Mutant(
        elementary, "sigmoid", "fma(-y, lost, fma(-y, total, part))", "fma(-y, total, part)"
    ),
    "log1p: what the sum lost is lost": Mutant(
        elementary, "log1p", "y = _log_of(f, n, lost / total)", "y = _log_of(f, n, zero)"
    ),
    "log1p: the other infinity at -1": Mutant(
        elementary, "log1p", "(total == zero, constant(x, -np.inf), y)", "(total == zero, constant(x, np.inf), y)"
    ),
    "expm1: tiny numbers are reduced": Mutant(
        elementary, "expm1", "return select(abs(given) < c.tiny, given, y + y)", "return y + y"
    ),
    "expm1: part of the reduction is lost": Mutant(
        elementary, "expm1", "polynomial(r, c.exp), n * -c.ln2_low)", "polynomial(r, c.exp), n - n)"
    ),
    "log: a number below 0 is as one above": Mutant(
        elementary, "log", "select(x < zero, constant(x, np.nan), y)", "select(x < zero, y, y)"
    ),
    "log: half of the square is lost": Mutant(
        elementary, "log", "tail = fma(-half_f, f, tail) + more", "tail = tail + more"
    ),
    "softplus: of the other sign": Mutant(elementary, "softplus", "log1p(exp(-abs(x)))", "log1p(exp(-x))"),
    "erf: the cut elsewhere": Mutant(elementary, "erf", "a < constant(x, 0.875)", "a < constant(x, 1.25)"),
    "power: what the product lost is lost": Mutant(
        elementary, "power", "fma(high, exponent, -product) + low * exponent", "low * exponent"
    ),
    "atan: without its sign": Mutant(
        inverse, "atan", "return select(x != x, x, signed(y, x))", "return select(x != x, x, y)"
    ),
    "asin: what the root lost is lost": Mutant(inverse, "asin", "select(far, lost, zero)", "zero"),
    "sinh: without e ** -x": Mutant(inverse, "sinh", "h - constant(x, 0.25) / h), x)", "h), x)"),
    "sin: what the reduction lost is lost": Mutant(
        trigonometry, "sin_near", "return r, lost - fma(n, c.half_pi_low, middle_low)", "return r, lost - lost"
    ),
}  # fmt: skip


def evaluated(module: ModuleType, text: str) -> Any:
    """The module with another text."""
    made = ModuleType(module.__name__)
    made.__package__, made.__file__ = module.__package__, module.__file__
    exec(compile(text, str(module.__file__), "exec"), made.__dict__)
    return made


@cache
def points(name: str, dtype: Any) -> tuple[list[Array], list[Any]]:
    """Where a function varies, and of every size, and its true values there."""
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    low, high = DOMAIN.get(name, (-INF, INF))
    sizes = np.exp2(rng.uniform(int(info.minexp) - int(info.nmant), int(info.maxexp) - 1, 250))
    sizes = np.concatenate([sizes, rng.uniform(0, 30, 250), rng.uniform(0, 2, 350)])
    x = (sizes * rng.choice([-1, 1], sizes.size)).astype(dtype)
    if name in ("sin_near", "cos_near"):
        x = np.append(x, (rng.integers(1, TURNS / 2, 400) * (PI / 2)).astype(dtype))
    x = x[(x >= low) & (x <= high)]
    if name == "atan2":
        at = [x, np.where(rng.random(x.size) < 0.5, rng.permutation(x), x / 2 * rng.uniform(-2, 2, x.size))]
        at = [np.append(each, float(info.max) * rng.uniform(0.6, 1, 20)) for each in at]
    elif name in ("power", "pow_of_elements"):
        close = rng.uniform(0.7, 1.4, 200)
        at = [np.append(x, close).astype(dtype), np.append(rng.uniform(-1, 1, x.size), rng.uniform(-200, 200, 200))]
    else:
        at = [x]
    at = [each.astype(dtype) for each in at]
    with mpmath.workprec(1200 if name in ("sin_near", "cos_near") else 200):
        return at, [TRUTHS[name].true(*map(mpmath.mpf, map(float, given))) for given in zip(*at, strict=True)]


def miss(got: Any, true: Any) -> float:
    """How many ULP a result is from the truth; of what is beyond the largest number infinity is right."""
    if not np.isfinite(got):
        return 0.0 if got == mpmath.sign(true) * INF and abs(true) > float(np.finfo(type(got)).max) else INF
    return ulps(got, true, true)


def is_right(text: Any, name: str, dtype: Any) -> bool:
    """Whether a formula keeps its bound where the function varies, and has its special values."""
    *x, expected = (np.array(column).astype(dtype) for column in zip(*SPECIAL[name], strict=True))
    if not (bits(reading(text)(*x)) == bits(expected)).all():
        return False
    at, trues = points(name, dtype)
    return max(map(miss, reading(text)(*at), trues)) <= TRUTHS[name].ulp


@pytest.mark.parametrize("name", SPECIAL)
def test_the_formulas_are_right(name: str) -> None:
    home = next((module for module in (elementary, inverse, trigonometry) if hasattr(module, name)), None)
    text = FORMULAS[name].formula if home is None else getattr(home, name)
    assert all(is_right(text, name, dtype) for dtype in (np.float32, np.float64))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_formula_is_found(name: str) -> None:
    mutant = MUTANTS[name]
    text = inspect.getsource(mutant.module)
    assert mutant.text in text
    made = evaluated(mutant.module, text.replace(mutant.text, mutant.wrong, 1))
    formula = getattr(made, mutant.function)
    assert not all(is_right(formula, mutant.function, dtype) for dtype in (np.float32, np.float64))
