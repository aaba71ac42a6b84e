"""Means folded from the sums of any number of ranks: the bits of the tree as its definition says it, in numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime.ranks.fold import BLOCK, fold_means
from dgrr.runtime.step.tree import range_of, spans_of

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]
SPECIAL = [0.0, -0.0, np.inf, 1e-45, 3e38, 1.0, -1.0, 1e8, 0.1]


def level_by_level(terms: list[Array]) -> Array:
    """The sum as the definition says it."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]


def folded(terms: Array, size: int) -> Array:
    """The mean of rows by ``size`` ranks, each of which gives the sums that it makes whole."""
    count = len(terms)
    spans = [span for rank in range(size) for span in spans_of(count, range_of(count, rank, size))]
    rows = [level_by_level(list(terms[span.start : span.stop])).copy() for span in spans]
    out = rows[0]  # as ranks do, which have no room to spare
    fold_means(out, rows, [span.stop for span in spans], count)
    return out


@settings(max_examples=60)
@given(st.integers(1, 40), st.data(), st.sampled_from([np.float32, np.float64]))
def test_any_number_of_ranks_folds_to_the_bits_of_the_tree(count: int, data: st.DataObject, dtype: Any) -> None:
    size = data.draw(st.integers(1, count))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    terms = rng.standard_normal((count, 5)).astype(dtype) * np.array([1e-3, 1.0, 1e5, 1.0, 1e30], dtype)
    terms[:, 3] = rng.choice(SPECIAL, count).astype(dtype)
    with np.errstate(all="ignore"):
        mean = level_by_level(list(terms))
        expected = mean / dtype(count) if count > 1 else mean
        assert folded(terms, size).tobytes() == expected.tobytes()


@pytest.mark.parametrize("n", [0, BLOCK - 1, BLOCK + 3])
def test_rows_of_any_length_are_folded_block_by_block(n: int) -> None:
    terms = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    assert folded(terms, 3).tobytes() == (level_by_level(list(terms)) / np.float32(5)).tobytes()
