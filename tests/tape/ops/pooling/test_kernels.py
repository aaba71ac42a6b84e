"""The kernels of windows against the reference, where lanes, periods, lines, planes and shares begin and end."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.kernel import Kernel
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops.pooling.kernels import argmax, sums as kernels_sums
from dgrr.tape.ops.pooling.kernels.windows import (
    BESIDE,
    PATTERNS,
    QUARTERED,
    WIDTHS,
    WindowAxis,
    adaptive,
    nearest,
    outputs,
    sliding,
    words,
)
from dgrr.tape.ops.pooling.reference import pools as reference

from ..bits import same

FLOATS = (np.float32, np.float64)
PARTS = (1, 2, 7)
BORDER = 64
Case = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]

RULES = ((2, 2, 0, 1), (3, 1, 1, 1), (3, 2, 1, 2), (2, 3, 1, 1), (5, 4, 2, 1), (2, 5, 0, 1))
LINES: list[Case] = [((2, size), (rule,)) for size in (15, 16, 17, 33, 66) for rule in RULES]
OTHERS: list[Case] = [
    ((3, 4, 34), ((2, 2, 0, 1), (2, 2, 0, 1))),
    ((3, 5, 6, 9), ((2, 1, 1, 1), (3, 2, 1, 2), (2, 2, 1, 1))),
    ((2, 2, 3, 3, 4), ((2, 1, 0, 1),) * 4),
    ((2, 7, 20), ((3,), (10,))),
    ((2, 6), ((14,),)),
    *[((3, 6, size), ((2, 2, 0, 1),) * 2) for size in (2, 4, 6, 8, 16, 32)],
    *[((planes, 5, 7), ((3, 2, 1, 1),) * 2) for planes in (15, 16, 33)],
    *[((18, 8, 9), (rule,) * 2) for rule in RULES],
    ((17, 16, 16), ((3, 3, 0, 1),) * 2),
    ((19, 6), ((2, 1, 1, 1),)),
    ((20, 4, 5, 6), ((2, 1, 1, 1), (3, 2, 1, 2), (2, 2, 1, 1))),
    ((21, 7, 5), ((3,), (4,))),
]  # fmt: skip


def axes_of(case: Case) -> list[WindowAxis]:
    (_, *sizes), rules = case
    return [adaptive(n, *r) if len(r) == 1 else sliding(n, *r) for n, r in zip(sizes, rules, strict=True)]


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers with many ties, zeros of both signs, infinities and NaNs."""
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(-2, 3, shape).astype(dtype) * dtype(0.1)
    for special in (-0.0, np.inf, -np.inf, np.nan):
        x[rng.random(shape) < 0.05] = special
    return x


def filled(
    run: Any,
    kernel: Kernel,
    shape: tuple[int, ...],
    inputs: list[Any],
    ints: Sequence[float],
    parts: int,
    dtype: Any = None,
) -> Any:
    """What a kernel writes into junk, between two borders that must not be touched."""
    size, dtype = prod(shape), dtype or inputs[0].dtype
    area = np.full(size + 2 * BORDER, 77, dtype)
    out = area[BORDER : BORDER + size]
    out[:] = -55
    assert run(kernel, Words(*ints), [out, *inputs], parts, inputs[0].dtype) == 0
    assert (area[:BORDER] == 77).all() and (area[BORDER + size :] == 77).all()
    return out.reshape(shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", LINES + OTHERS, ids=str)
def test_windows_and_back(run: Any, dtype: Any, case: Case) -> None:
    (planes, *sizes), rules = case
    axes, x = axes_of(case), numbers(case[0], dtype)
    forth, back = words(planes, axes), words(planes, [axis.transposed() for axis in axes])
    g = numbers((planes, *[axis.size for axis in axes]), dtype)
    with np.errstate(invalid="ignore"):
        sums = reference.pooled(lambda cells, _: reference.total(cells), rules, x)
        spread = reference.spread(lambda g, cells: [g] * len(cells), rules, sizes, g)
        largest, given = reference.max_pool(x, rules), reference.max_pool_grad(g, x, rules)
    for parts in PARTS:
        assert same(filled(run, kernels_sums.window_sums, g.shape, [x], forth, parts), sums)
        assert same(filled(run, kernels_sums.window_maxima, g.shape, [x], forth, parts), largest)
        assert same(filled(run, kernels_sums.window_sums, x.shape, [g], back, parts), spread)
        at = filled(run, argmax.largest_positions, g.shape, [x], forth, parts, np.int64)
        assert same(filled(run, argmax.cells_at, g.shape, [x, at], forth, parts), largest)
        assert same(filled(run, argmax.sums_where_largest, x.shape, [g, at], back, parts), given)
        if all(max(axis.transposed().counts) < 2 for axis in axes):
            assert same(filled(run, argmax.give_to_largest, x.shape, [g, x], forth, parts), given)


WAYS = [(QUARTERED, 2 * width, (2, 2, 0, 1)) for width in WIDTHS] + [
    (BESIDE, 8, (3, 3, 1, 1)),
    (BESIDE, 7, (2, 2, 0, 1)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("way", "size", "rule"), WAYS)
def test_cells_in_lanes_have_the_bits_of_windows_one_by_one(
    run: Any, dtype: Any, way: int, size: int, rule: tuple[int, ...]
) -> None:
    """Down to which NaN wins, of those with a payload each."""
    planes, axes = 67, [sliding(6, *rule), sliding(size, *rule)]
    x, g = numbers((planes, 6, size), dtype), numbers((planes, *[axis.size for axis in axes]), dtype)
    bits, nan = x.view(f"i{x.itemsize}"), np.isnan(x)
    bits[nan] += np.arange(nan.sum(), dtype=bits.dtype)
    cells = words(planes, axes)
    windows = [0 if i in (QUARTERED, BESIDE) else number for i, number in enumerate(cells)]
    assert cells[way]
    for parts in PARTS:
        for kernel, inputs, shape in (
            (kernels_sums.window_maxima, [x], g.shape),
            (argmax.give_to_largest, [g, x], x.shape),
        ):
            found, expected = (filled(run, kernel, shape, inputs, w, parts) for w in (cells, windows))
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("size", "count"), [(17, 17), (16, 32), (20, 61), (33, 7), (12, 48), (40, 40), (9, 45)])
def test_nearest_cells(run: Any, dtype: Any, size: int, count: int) -> None:
    x = numbers((3, size), dtype)
    for parts in PARTS:
        out = filled(run, kernels_sums.window_cells, (3, count), [x], words(3, [nearest(size, count)]), parts)
        assert same(out, x[:, [i * size // count for i in range(count)]])


SMALL = list(product((1, 2, 5, 9), (1, 2, 3), (1, 2, 3, 5), (0, 1, 2), (1, 2, 3)))


def test_sliding_windows_hold_the_real_cells_of_a_padded_axis() -> None:
    for size, kernel, stride, padding, dilation in SMALL:
        padded = [*[-1] * padding, *range(size), *[-1] * padding]
        spans = [padded[i : i + dilation * kernel : dilation] for i in range(0, len(padded), stride)]
        expected = [[c for c in w if c >= 0] for w in spans if len(w) == kernel]
        axis = sliding(size, kernel, stride, padding, dilation)
        assert axis.size == max(outputs(size, kernel, stride, padding, dilation), 0)
        assert [list(axis.cells(o)) for o in range(axis.size)] == expected


def test_transposed_windows_hold_what_holds_each_cell() -> None:
    made = [sliding(*given) for given in SMALL] + [
        f(n, m) for f in (adaptive, nearest) for n in (1, 4, 7) for m in (1, 3, 9)
    ]
    for axis in made:
        back = axis.transposed()
        held = [[o for o in range(axis.size) if c in axis.cells(o)] for c in range(axis.source)]
        assert [list(back.cells(c)) for c in range(axis.source)] == held


def test_regular_windows_repeat() -> None:
    for axis in [sliding(*given) for given in SMALL] + [sliding(*given).transposed() for given in SMALL]:
        begin, repeats, period, advance = axis.regular()
        assert (period, advance) in PATTERNS and begin + repeats * period <= axis.size
        for o in range(begin, begin + (repeats - 1) * period):
            assert [c + advance for c in axis.cells(o)] == list(axis.cells(o + period))


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (sliding(28, 2, 2, 0, 1), (0, 14, 1, 2)),
        (sliding(28, 3, 1, 1, 1), (1, 26, 1, 1)),
        (sliding(28, 2, 2, 0, 1).transposed(), (0, 14, 2, 1)),
        (sliding(27, 3, 3, 0, 1), (0, 9, 1, 3)),
        (nearest(5, 20), (0, 5, 4, 1)),
    ],
)
def test_common_windows_run_in_lanes(axis: WindowAxis, expected: tuple[int, ...]) -> None:
    assert axis.regular() == expected
