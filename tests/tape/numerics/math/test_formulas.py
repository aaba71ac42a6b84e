"""Formulas: what LLVM makes of them is what Python reads, without branches or foreign calls; their hardest parts."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit, types

from dgrr.tape.numerics.coefficients import FLOAT32, FLOAT64
from dgrr.tape.numerics.engine.numba_internals import INLINED
from dgrr.tape.numerics.math import elementary, inverse, trigonometry
from dgrr.tape.numerics.math.reference.functions import reading
from dgrr.tape.numerics.simd import operations

from .measured import bits

Array = npt.NDArray[Any]
HOMES = [module.__name__ for module in (elementary, inverse, trigonometry)]
KINDS = {np.float32: types.float32, np.float64: types.float64}


def is_of_one_number(text: Callable[..., Any]) -> bool:
    """Whether a formula makes one number of one."""
    signature = inspect.signature(text)
    return len(signature.parameters) == 1 and signature.return_annotation is operations.Number


FORMULAS = {text.__name__: text for text in INLINED if text.__module__ in HOMES and is_of_one_number(text)}


@pytest.fixture(params=[pytest.param((n, d), id=f"{n}-{d.__name__}") for n in FORMULAS for d in KINDS])
def case(request: Any) -> Any:
    """A formula and a float type."""
    name, dtype = request.param
    return FORMULAS[name], dtype


def called(text: Callable[..., Any]) -> Any:
    """A formula as compiled code has it, to be called from Python."""

    @njit(error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
    def call(x):  # type: ignore[no-untyped-def]
        return text(x)

    return call


def over(text: Callable[..., Any]) -> Any:
    """The same over an array."""

    @njit(error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
    def loop(x, y):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            y[i] = text(x[i])

    return loop


def patterns(dtype: type, n: int) -> Array:
    """Any floats, ordinary ones, and special ones."""
    rng, width = np.random.default_rng(0), np.dtype(dtype).itemsize
    anything = rng.integers(0, 2 ** (8 * width), n, f"u{width}").view(dtype)
    info = np.finfo(dtype)
    special = [0.0, 1.0, 0.5, 0.625, 0.875, 2.0**28, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    ordinary = [rng.uniform(-110, 90, n), rng.uniform(-2, 2, n), special, np.negative(special)]
    return np.concatenate([anything, np.concatenate(ordinary).astype(dtype)])


def test_all_are_found() -> None:
    assert {"exp", "log_of_twice", "atanh", "sin_near"} <= FORMULAS.keys()
    assert len(FORMULAS) == 20


def test_python_reads_what_is_compiled(case: Any) -> None:
    text, dtype = case
    x = patterns(dtype, 12_000 if dtype is np.float32 else 3_000)
    y = np.full_like(x, 12345)
    over(text)(x, y)
    np.testing.assert_array_equal(bits(y), bits(reading(text)(x)))


def hardware_fma() -> bool:
    """Whether the target has the instruction; without it LLVM calls a function, maybe behind a branch."""
    bare = called(lambda x: operations.fma(x, x, x))
    bare.compile((types.float64,))
    return re.search("fmadd|fmla", bare.inspect_asm()[(types.float64,)]) is not None


def test_code_has_no_branch_foreign_call_or_fast_math(case: Any) -> None:
    text, dtype = case
    compiled = called(text)
    compiled.compile((KINDS[dtype],))
    bodies = re.findall(r"^define[^\n]*{\n.*?^}", compiled.inspect_llvm()[(KINDS[dtype],)], re.DOTALL | re.MULTILINE)
    (body,) = (b for b in bodies if not re.match(r"define[^\n]*@(_ZN7cpython|cfunc)", b))
    calls = set(re.findall(r"call [^@]*@([\w.]+)\(", body))
    assert f"llvm.fma.f{np.finfo(dtype).bits}" in calls
    assert [call for call in calls if not re.fullmatch(r"llvm\.(fma|fabs|sqrt|is\.fpclass)\.f(32|64)", call)] == []
    assert not re.search(r"\b(fast|reassoc|contract|nnan|ninf|nsz|arcp|afn)\b", body)
    assert not re.search(r"\b(br|switch)\b", body) or not hardware_fma()


def test_shapes_stay() -> None:
    x = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(3, 1, 4)
    for text in FORMULAS.values():
        y = reading(text)(x)
        assert y.shape == (3, 1, 4)
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y.ravel()[5:6], reading(text)(x.ravel()[5:6]))
        assert reading(text)(np.array(1, np.float32)).shape == ()
        assert reading(text)(x[:0]).shape == (0, 1, 4)


# ------------------------------------------------------------------ the hardest parts once more, by other means


@pytest.mark.parametrize("dtype", KINDS)
def test_scaling_by_exponent_fields_is_ldexp(dtype: Any) -> None:
    rng, c = np.random.default_rng(1), FLOAT32 if dtype is np.float32 else FLOAT64
    lowest, highest = int(np.finfo(dtype).minexp) - int(np.finfo(dtype).nmant) - 2, int(np.finfo(dtype).maxexp)
    n = np.concatenate([rng.integers(lowest, highest, 2000), [lowest, -1, 0, 1, highest]])
    high, low = rng.uniform(-0.35, 0.35, n.size).astype(dtype), rng.uniform(-1e-9, 1e-9, n.size).astype(dtype)
    with np.errstate(all="ignore"):
        found: Any = elementary.raised(n.astype(dtype) + c.rounder, high, low, high + low)  # type: ignore[arg-type]
        # At n = 0 both factors are 1, and so the rest alone is left.
        rest: Any = elementary.raised(np.zeros_like(high) + c.rounder, high, low, high + low)  # type: ignore[arg-type]
        half = n // 2
        expected = np.ldexp(np.ldexp(rest, half), n - half)
    np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("dtype", KINDS)
def test_splitting_by_exponent_fields_is_frexp(dtype: Any) -> None:
    x = np.abs(patterns(dtype, 4000))
    x = x[np.isfinite(x) & (x > 0)]
    with np.errstate(all="ignore"):
        f, n = (np.asarray(part) for part in elementary.split(x))  # type: ignore[arg-type]
    mantissa, exponent = np.frexp(x)
    below = mantissa < (FLOAT32 if dtype is np.float32 else FLOAT64).root_half
    np.testing.assert_array_equal(f, np.where(below, mantissa * 2, mantissa) - dtype(1))
    np.testing.assert_array_equal(n, exponent - below)
