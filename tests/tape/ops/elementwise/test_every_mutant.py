"""Every formula of numbers with every one of its operations changed: each change is found, or changes no value.

A mutant (`mutants`) is found if a formula that reads it misses its bound, a special value, or the bits of numpy's own
function.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from dgrr.tape.numerics.basic import arithmetic
from dgrr.tape.numerics.math import elementary, inverse, rounding, trigonometry
from dgrr.tape.numerics.math.reference.functions import reading
from dgrr.tape.numerics.simd import minmax
from dgrr.tape.ops.elementwise.kernels import basic, clamp, functions, pow as powers
from dgrr.tape.record.pointwise_op import SPECIAL as EDGES

from ....mutants import Formulas
from .test_formula_mutants import SPECIAL, is_right
from .test_truths import FORMULAS, NUMBERS, arrays, bits, drawn, ulps
from .truths import EXACT, NEAR, Array

TYPES = (np.float32, np.float64)
MODULES = (arithmetic, elementary, inverse, rounding, trigonometry, minmax, basic, clamp, functions, powers)
KERNEL = {"larger": "maximum", "smaller": "minimum"}
"""The kernels of formulas that are called otherwise."""

EQUAL = {
    # A sign bit that is added or taken away gives the same bits; so do bits that are shifted out.
    "erf: return float_of(sub(bits_of(y), sign))",
    "tanh: return float_of(sub(bits_of(y), sign))",
    "turned: return float_of(sub(bits_of(y), shl(lshr(quadrant, 1), c.sign)))",
    "signed: return float_of(sub(bits_of(y), sub(bits_of(x), bits_of(abs(x)))))",
    "raised: fields = add(add(bits_of(rounded), bits_of(c.rounder)), 2 * c.bias)",
    "expm1: scale = float_of(shl(add(add(bits_of(rounded), bits_of(c.rounder)), c.bias - 1), c.mantissa))",
    "near: return (r, lost - fma(n, c.half_pi_low, middle_low), add(bits_of(rounded), bits_of(c.rounder)))",
    # From these numbers on both sides round alike.
    "acosh: large = x > constant(x, LARGE * 2.0)",
    "asinh: large = a > constant(x, LARGE * 2.0)",
    "atan: y = _angle(select(a > constant(x, FAR * 2.0), constant(x, FAR), a), one, one, zero)",
    "atan: y = _angle(select(a > constant(x, FAR), constant(x, FAR * 2.0), a), one, one, zero)",
    "expm1: x = select(x < constant(x, -60.0 * 2.0), constant(x, -60.0), x)",
    "atan2: factor = select(a + b == infinity, constant(x, 0.25 * 2.0), select(a + b < one, c.lift * c.lift, one))",
    # What is changed here is NaN in the end, or a zero that is added to another number.
    "log1p: swapped = x > one",
    "power: high, low = _log_pair(x)",
    "log: y = select(x == constant(x, np.inf), x, _log_of(f, n, zero))",
    "log_of_twice: return select(x < infinity, _log_of(f, n + one, zero), x)",
    # What is lost is made good by the next line, or is less than what the bound leaves room for.
    "_log_pair: t = c.two_thirds - q",
    "_log_pair: t_low = c.two_thirds - t + q - c.two_thirds_low",
    "_log_pair: total = y - y_low",
    "turned: sine = r + fma(z * r, polynomial(z, c.sine), fma(half_z, low, low))",
    "atan2: factor = select(a + b == infinity, constant(x, 0.25), select(a + b < one, c.lift / c.lift, one))",
}
"""Mutants that nothing finds, and why."""


ALL = Formulas(MODULES, ("formula", "pointwise", "comparing", "selecting"))
ROUNDED = {"sign": np.sign, "floor": np.floor, "ceil": np.ceil, "rounded": np.rint, "trunc": np.trunc}
"""Formulas that one kernel has by a word, and the functions of numpy whose bits they have."""


def readers(name: str) -> list[str]:
    """The formula and all that read it, those that are checked."""
    checked = {*SPECIAL, *ROUNDED, *EXACT, *NEAR}
    return [other for other in ALL.readers(name) if KERNEL.get(other, other) in checked]


@cache
def exact(name: str, dtype: Any) -> tuple[list[Array], Array]:
    """Arguments of a formula that numpy has too, edges and random numbers, and what numpy makes of them."""
    count = arrays(FORMULAS[name], name)
    edges = [*(dtype(x) for x in EDGES if abs(x) < np.finfo(dtype).max or x != x or abs(x) == np.inf), 1.25, -0.5]
    rows = np.array(list(product(edges, repeat=count)), dtype).T
    given: list[Any] = list(
        np.concatenate([rows, np.random.default_rng(0).standard_normal((count, 200))], 1, dtype=dtype)
    )
    if name == "where":
        given[0] = given[0] > 0
    given += [dtype(number) for number in NUMBERS.get(name, ())]
    with np.errstate(all="ignore"):
        return given, np.asarray(EXACT[name](*given))


@cache
def near(name: str, dtype: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Arguments of a smooth formula, its true values, and the numbers whose spacing counts."""
    at = drawn(name, arrays(FORMULAS[name], name), dtype)
    numbers = [dtype(number) for number in NUMBERS.get(name, ())]
    with mpmath.workprec(140):
        given = [[mpmath.mpf(float(x)) for x in (*row, *numbers)] for row in zip(*at, strict=True)]
        trues = [NEAR[name].true(*row) for row in given]
        of = NEAR[name].of
        return [*at, *numbers], trues, trues if of is None else [of(*row) for row in given]


def is_as_said(name: str, text: Callable[..., Any], dtype: Any) -> bool:
    """Whether a formula is what its truth says."""
    if name in SPECIAL and not is_right(text, name, dtype):
        return False
    name = KERNEL.get(name, name)
    if name in ROUNDED:
        halves = np.append(np.arange(-9, 10) / 2, [2.0**23 - 0.5, 2.0**51 + 0.5, 2.0**52 + 1]).astype(dtype)
        x = np.concatenate([halves, np.nextafter(halves, dtype(9)), np.array(EDGES, dtype)])
        return bool((bits(reading(text)(x)) == bits(ROUNDED[name](x))).all())
    if name in EXACT:
        given, expected = exact(name, dtype)
        return bool((bits(reading(text)(*given)) == bits(expected)).all())
    if name in NEAR and name in FORMULAS:
        given, trues, spaced = near(name, dtype)
        found = reading(text)(*given)
        return bool(np.isfinite(found).all()) and max(map(ulps, found, trues, spaced)) <= NEAR[name].ulp
    return True


@pytest.mark.long
@pytest.mark.parametrize("name", ALL.texts)
def test_every_change_is_found(name: str) -> None:
    held = [(other, dtype) for other in readers(name) for dtype in TYPES]
    ALL.require_found(name, lambda made: all(is_as_said(other, made[other], dtype) for other, dtype in held), EQUAL)
