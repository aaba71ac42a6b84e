"""Weighted sums of any cells against the formula, where blocks, kept lines and shares begin and end."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle, islice, product
from math import prod
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.kernel import call
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.exact_fma import fma
from dgrr.tape.ops.pooling.kernels.upsample import weighted_sums
from dgrr.tape.ops.pooling.kernels.weighted import BLOCK, LINES_KEPT, WeightedAxis, words

from ..bits import same
from .test_kernels import FLOATS, PARTS, filled, numbers

VOLUMES = 3


def windows_of(source: int, count: int, *cells: int) -> WeightedAxis:
    """Windows of so many cells, over and over, anywhere on the axis."""
    rng = np.random.default_rng(source)
    found = [
        tuple([(int(c), Fraction(int(rng.integers(1, 99)), -77)) for c in sorted(rng.choice(source, n, replace=False))])
        for n in islice(cycle(cells), count)
    ]
    return WeightedAxis(source, tuple(found))


CASES = {
    "a line": ([windows_of(9, 33, 2, 5, 0, 1)], 816, 1),
    "rows that are kept": ([windows_of(7, 6, 3, 2, 0), windows_of(9, 17, 2)], 816, 4),
    "layers that are kept": ([windows_of(3, 4, 2, 1), windows_of(5, 3, 2, 3), windows_of(6, 18, 1, 2)], 448, 8),
    "three blocks": ([windows_of(3, 2, 2), windows_of(210, 40, 170, *[1, 3, 0] * 13)], 16, 2),
    "no room for a window": ([windows_of(20, 2, 20, 1), windows_of(30, 17, 30, *[1] * 16)], 128, 1),
    "more lines than are kept": ([windows_of(70, 2, 70, 1), windows_of(4, 5, 2)], 2048, 1),
    "no room for a block": ([windows_of(3, 2, 1), windows_of(300, 4, 300, 2, 0)], 0, 1),
}
"""Windows along each axis; the columns of a block and the lines kept, which say what the case is about."""


def by_the_formula(axes: Sequence[WeightedAxis], x: Any) -> Any:
    """``fma((Z·V)·H, x, sum)``, each weight rounded to float64 and then to the type of ``x``."""
    out = np.zeros((len(x), *[len(axis.windows) for axis in axes]), x.dtype)
    for o in np.ndindex(*out.shape[1:]):
        for cells in product(*[axis.windows[i] for axis, i in zip(axes, o, strict=True)]):
            weight = prod([x.dtype.type(float(w)) for _, w in cells], start=x.dtype.type(1))
            out[:, *o] = fma(weight, x[:, *[c for c, _ in cells]], out[:, *o])
    return out


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES)
def test_windows_and_back(run: Any, dtype: Any, case: str) -> None:
    axes, *expected = CASES[case]
    assert [words(VOLUMES, axes)[i] for i in (BLOCK, LINES_KEPT)] == expected
    for way in (axes, [axis.transposed() for axis in axes]):
        x = numbers((VOLUMES, *[axis.source for axis in way]), dtype)
        sums = by_the_formula(way, x)
        for parts in PARTS:
            assert same(filled(run, weighted_sums, sums.shape, [x], words(VOLUMES, way), parts), sums)


def test_a_share_writes_its_lines_alone() -> None:
    """Another part may add to the next line at the same time."""
    axes, parts = CASES["layers that are kept"][0], 7
    x, ints = np.ones((VOLUMES, 3, 5, 6)), Words(*words(VOLUMES, axes))
    shares = [np.full((VOLUMES, 4 * 3, 18), np.nan) for _ in range(parts)]
    for part, out in enumerate(shares):
        assert call(weighted_sums.address(x.dtype), ints.address, part, parts, (id(out), id(x))) == 0
    assert (np.sum(~np.isnan(shares), axis=0) == 1).all()
