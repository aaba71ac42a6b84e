"""The kernels over rows and columns against the reference, where vectors, blocks and shares begin and end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.math.reference import sums as reference_sums
from dgrr.tape.numerics.simd.sums import mean_columns, mean_rows, mean_squared_difference, sum_columns, sum_rows
from dgrr.tape.ops.losses import reference
from dgrr.tape.ops.reduce.kernels.softmax import log_softmax, softmax

from ..bits import same

FLOATS = (np.float32, np.float64)
PARTS = (1, 2, 7)
BORDER = 64
ROWS = ((5, 1), (3, 2), (4, 10), (7, 15), (2, 16), (3, 17), (2, 31), (2, 33), (3, 63), (2, 64), (2, 65), (1, 130))
LONG = ((1, 4095), (2, 4096), (1, 4097), (1, 4112), (1, 8193), (1, 12500))
COLUMNS = ((1, 7, 1), (2, 5, 10), (1, 3, 16), (1, 4, 33), (1, 3, 64), (1, 5, 100), (3, 2, 140), (1, 255, 3),
           (1, 256, 17), (1, 257, 5), (2, 600, 2), (1, 0, 70), (0, 3, 4))  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of many sizes, with signed zeros and subnormals."""
    rng = np.random.default_rng(sum(shape))
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)).astype(dtype)
    x[rng.random(shape) < 0.1] = dtype(-0.0)
    x[rng.random(shape) < 0.05] = np.finfo(dtype).smallest_subnormal
    return x


def filled(run: Any, kernel: Any, shape: tuple[int, ...], inputs: list[Any], ints: Words, parts: int) -> Any:
    """What a kernel writes into junk, between two borders that must not be touched."""
    dtype = inputs[0].dtype
    size = int(np.prod(shape))
    area = np.full(size + 2 * BORDER, 1.75, dtype)
    out = area[BORDER : BORDER + size]
    out[:] = np.nan
    assert run(kernel, ints, [out, *inputs], parts) == 0
    assert (area[:BORDER] == 1.75).all() and (area[BORDER + size :] == 1.75).all()
    return out.reshape(shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [*ROWS, *LONG, (3, 0), (0, 5)])
def test_sums_along_rows(run: Any, dtype: Any, shape: tuple[int, int]) -> None:
    x = numbers(shape, dtype)
    sums = np.array([reference_sums.row_sum(row) for row in x], dtype)
    with np.errstate(invalid="ignore"):
        means = sums / dtype(shape[1])
    for parts in PARTS:
        assert same(filled(run, sum_rows, sums.shape, [x], Words(*shape), parts), sums)
        assert same(filled(run, mean_rows, sums.shape, [x], Words(*shape), parts), means)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 64, 65, 100, 4096, 4100, 8200])
def test_the_mean_of_squared_differences(run: Any, dtype: Any, n: int) -> None:
    a, b = numbers((n,), dtype), numbers((n, 1), dtype)[::-1, 0].copy()
    with np.errstate(invalid="ignore"):
        expected = np.array([reference.mse(a, b)], dtype)
    for parts in PARTS:
        assert same(filled(run, mean_squared_difference, (1,), [a, b], Words(n), parts), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", COLUMNS)
def test_sums_down_columns(run: Any, dtype: Any, shape: tuple[int, int, int]) -> None:
    x = numbers(shape, dtype)
    outer, rows, columns = shape
    sums = np.zeros((outer, columns), dtype)
    for first in range(0, rows, reference_sums.CHAIN_BLOCK):
        chain = np.zeros((outer, columns), dtype)
        for row in range(first, min(first + reference_sums.CHAIN_BLOCK, rows)):
            chain = chain + x[:, row]
        sums = chain if first == 0 else sums + chain
    with np.errstate(invalid="ignore"):
        means = sums / dtype(rows)
    for parts in PARTS:
        assert same(filled(run, sum_columns, sums.shape, [x], Words(*shape), parts), sums)
        assert same(filled(run, mean_columns, sums.shape, [x], Words(*shape), parts), means)


PAIRS: list[tuple[Any, Callable[[Any], Any]]] = [
    (softmax, reference_sums.softmax),
    (log_softmax, reference_sums.log_softmax),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [*ROWS[::2], (35, 3), (3, 0), (0, 5)])
@pytest.mark.parametrize(("kernel", "definition"), PAIRS)
def test_softmax_of_rows(run: Any, dtype: Any, shape: tuple[int, int], kernel: Any, definition: Any) -> None:
    x = numbers(shape, dtype)
    expected = definition(x)
    for parts in PARTS:
        assert same(filled(run, kernel, shape, [x], Words(*shape), parts), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("kernel", "definition"), PAIRS)
@pytest.mark.parametrize("n", [10, 16, 40, 70])
def test_softmax_of_infinities_and_nan(run: Any, dtype: Any, kernel: Any, definition: Any, n: int) -> None:
    x = numbers((6, n), dtype)
    x[0, n - 1], x[1, 0], x[2, n // 2], x[3, :] = np.nan, np.inf, -np.inf, -np.inf
    x[4, :] = [dtype(0.0), dtype(-0.0)] * (n // 2)
    with np.errstate(invalid="ignore"):
        expected = definition(x)
    assert same(filled(run, kernel, (6, n), [x], Words(6, n), 1), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("kernel", "definition"), PAIRS)
def test_softmax_may_overwrite_its_input(run: Any, dtype: Any, kernel: Any, definition: Any) -> None:
    for n in (10, 16, 100):
        x = numbers((9, n), dtype)
        expected = definition(x)
        assert run(kernel, Words(9, n), [x, x], 2) == 0
        assert same(x, expected)
