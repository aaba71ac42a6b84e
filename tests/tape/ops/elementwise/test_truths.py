"""Every formula that is a kernel gives what another text says: to the bit, or within a bound."""

from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.record.pointwise_op import SPECIAL, read

from .truths import EXACT, NEAR, Array

FORMULAS = {
    name: kernel
    for name, kernel in KERNELS.items()
    if kernel.formula is not None and kernel.body.__module__.startswith("dgrr.tape.")
}

TYPES = (np.float32, np.float64)
NUMBERS = {"scale": [-0.3], "divide": [3.0], "shift": [0.7], "leaky": [0.01], "clamp": [-0.5, 1.25],
           "where_inside": [-0.5, 1.25], "broken_power": [-1.7], "elu": [0.75], "elu_slope": [0.75],
           "huber_terms": [0.75], "over": [0.7], "celu": [0.75]}  # fmt: skip
"""Of formulas that take numbers behind their arrays."""


def test_every_formula_has_a_truth() -> None:
    """Those of losses are held to PyTorch and to sums by hand, beside them."""
    here = [name for name, kernel in FORMULAS.items() if ".ops.losses." not in kernel.body.__module__]
    assert sorted(here) == sorted({**EXACT, **NEAR})
    assert not EXACT.keys() & NEAR.keys()


def arrays(kernel: Kernel, name: str) -> int:
    assert kernel.formula is not None
    return kernel.formula.__code__.co_argcount - len(NUMBERS.get(name, ()))


def bits(x: Array) -> Array:
    """Bit patterns, one for all NaN."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"i{x.itemsize}") if x.dtype.kind == "f" else x


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact_is_so(name: str, dtype: Any) -> None:
    kernel = FORMULAS[name]
    edges = [*(dtype(x) for x in SPECIAL if abs(x) < np.finfo(dtype).max or x != x or abs(x) == np.inf), 1.25, -0.5]
    rows = np.array(list(product(edges, repeat=arrays(kernel, name))), dtype).T
    drawn = np.random.default_rng(0).standard_normal((len(rows), 50_000)).astype(dtype)
    given: list[Array] = list(np.concatenate([rows, drawn], axis=1))
    if name == "where":
        given[0] = given[0] > 0
    numbers = [dtype(number) for number in NUMBERS.get(name, ())]
    with np.errstate(all="ignore"):
        expected = np.asarray(EXACT[name](*given, *numbers))
    np.testing.assert_array_equal(bits(read(kernel)(*given, *numbers)), bits(expected))


def ulps(got: Any, true: Any, spaced: Any) -> float:
    """How far a float is from a number, in spacings of floats at a third one."""
    info = np.finfo(type(got))
    exponent = max(mpmath.frexp(spaced)[1] - 1, int(info.minexp)) - int(info.nmant)
    return float(mpmath.ldexp(abs(mpmath.mpf(float(got)) - true), -exponent))


def drawn(name: str, count: int, dtype: Any) -> list[Array]:
    """Points where a function varies."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-30, 30, 150), rng.uniform(-2, 2, 250)]).astype(dtype)
    x = np.abs(x) if name in ("log", "broken_power", "pow_of_elements") else x
    x = x[x > -1] if name == "log1p" else x
    return [x, rng.uniform(-3, 3, x.size).astype(dtype)][:count]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NEAR)
def test_what_is_near_is_within_its_bound(name: str, dtype: Any) -> None:
    kernel, near = FORMULAS[name], NEAR[name]
    points = drawn(name, arrays(kernel, name), dtype)
    numbers = [dtype(number) for number in NUMBERS.get(name, ())]
    found = 0.0
    with mpmath.workprec(140):
        for got, *at in zip(read(kernel)(*points, *numbers), *points, strict=True):
            given = [mpmath.mpf(float(x)) for x in (*at, *numbers)]
            true = near.true(*given)
            found = max(found, ulps(got, true, true if near.of is None else near.of(*given)))
    assert found <= near.ulp


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_the_kernel_is_what_python_reads(run: Any, name: str, dtype: Any) -> None:
    kernel, rng = FORMULAS[name], np.random.default_rng(2)
    words = rng.integers(0, 1 << 63, (arrays(kernel, name), 20_000)).astype(f"u{np.dtype(dtype).itemsize}")
    given: list[Array] = list(words.view(dtype))
    if name == "where":
        given[0] = words[0].view(np.uint8)[: words.shape[1]] & 1
    numbers = NUMBERS.get(name, [])
    expected = read(kernel)(given[0] != 0 if name == "where" else given[0], *given[1:], *map(dtype, numbers))
    out = np.full(expected.shape, 77).astype(np.uint8 if expected.dtype == bool else dtype)
    counted = [int(number) if name == "divide" else number for number in numbers]
    assert run(kernel, Words(expected.size, *counted), [out, *given], 3, np.dtype(dtype)) == 0
    np.testing.assert_array_equal(bits(out), bits(expected.view(out.dtype)))
