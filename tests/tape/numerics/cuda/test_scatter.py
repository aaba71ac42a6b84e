"""Rows added at indices in CUDA C++ against the CPU's, bit for bit, on the host."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.arrays import Array
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.launch import Words, launch
from dgrr.tape.ops import cuda_forms
from dgrr.tape.ops.indices import cuda as cuda_indices

from .host import NO_FAULT, OP, Host, needs_cuda, output, values, wrong
from .mutation import is_found, mutated

pytestmark = needs_cuda
NAMES = ("scatter_add", "scatter_add_inside", "index_add")
FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))
SIZES = ((1, 5, 3, 40), (2, 65, 7, 300), (3, 1, 1, 9), (1, 300, 2, 50), (1, 4, 5, 0), (0, 3, 2, 4), (2, 3, 0, 4))
"""Outer, rows, elements of a row, indices: often the same row, rows that get nothing, one row, no indices, nothing."""


def table_of(name: str, size: tuple[int, ...], indices: Array, dtype: Any, kind: str) -> list[Array]:
    """Arrays behind the output."""
    outer, n, inner, count = size
    rng = np.random.default_rng(1)
    x, added = values(rng, (outer, n, inner), kind, dtype), values(rng, (outer, count, inner), kind, dtype)
    return [x, indices, added] if name == "index_add" else [added, indices]


def wrong_bits(host: Host, name: str, size: tuple[int, ...], dtype: Any, kind: str = "wide", seed: int = 1) -> int:
    outer, n, inner, count = size
    low, high = (-n - 3, n + 3) if "inside" in name else (-n, n)
    inputs = table_of(name, size, np.random.default_rng(seed).integers(low, high, count), dtype, kind)
    want, (got, untouched) = np.empty((outer, n, inner), dtype), output((outer, n, inner), dtype)
    assert launch(KERNELS[name], np.dtype(dtype), Words(*size), [want, *inputs], 0) == 0
    assert host.run(name, [got, *inputs], size, np.dtype(dtype), seed) == NO_FAULT
    assert untouched(), "a kernel writes outside of its output"
    return wrong(got, want)


@pytest.mark.parametrize("few", [cuda_indices.FEW, 0], ids=["one launch", "launches"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_bits_of_the_cpu(
    host: Host, name: str, dtype: Any, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_indices, "FEW", few)
    for i, size in enumerate(SIZES):
        assert not wrong_bits(host, name, size, dtype, ("wide", "zeros", "special")[i % 3], seed=i), size


@pytest.mark.parametrize("few", [cuda_indices.FEW, 0], ids=["one launch", "launches"])
@pytest.mark.parametrize("name", ["scatter_add", "index_add"])
def test_the_first_index_out_of_range_is_told(host: Host, name: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_indices, "FEW", few)
    size, indices = (1, 5, 2, 20), np.arange(20) % 5
    indices[[7, 13]] = 5, -6
    inputs = table_of(name, size, indices, np.float32, "normal")
    assert host.run(name, [np.empty((1, 5, 2), np.float32), *inputs], size, FLOATS[0]) == OP << 40 | 8


def test_more_indices_than_a_device_counts_are_refused() -> None:
    with pytest.raises(OverflowError, match=r"fewer than 2\^31 indices and rows together, got 2147483640 and 9; split"):
        cuda_forms.FORMS["scatter_add"].launches(FLOATS[0], (1, 9, 1, (1 << 31) - 8))


# ------------------------------------------------------------------ mutants

MUTANTS = {
    "positions as they come": ("of.ordered[before] = j", "of.ordered[i] = j"),
    "the smaller ones behind": ("of.found[k] < j", "of.found[k] > j"),
    "from zero where there is a base": ("real total = call.words[BASE] ?", "real total = false ?"),
    "negative rows of another kind": ("index < 0 && !call.words[INSIDE]", "index < 0"),
}


def some(host: Host) -> int:
    return sum(wrong_bits(host, name, SIZES[1], FLOATS[0]) for name in NAMES)


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.long
def test_a_wrong_row_is_found(mutant: str, tmp_path: Path, programs: Path) -> None:
    assert is_found(some, mutated(tmp_path, programs, "scatter.cu", *MUTANTS[mutant]))


def test_without_a_mutant_nothing_is_found(host: Host) -> None:
    assert some(host) == 0
