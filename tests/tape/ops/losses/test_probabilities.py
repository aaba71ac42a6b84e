"""The cross-entropy of probabilities at the ends, where logarithms have none."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends_cost_a_hundred_and_have_no_gradient(dtype: Any) -> None:
    tape: Tape[Any] = Tape()
    p = tape.leaf(np.array([0.0, 1.0, 0.0, 1.0, 0.5], dtype))
    terms = ops.binary_cross_entropy(p, np.array([1, 0, 0, 1, 1], dtype), reduction="none")
    gradient = np.asarray(tape.backward_dense(terms, np.ones(5, dtype))[p])
    assert terms.numpy()[:4].tolist() == [100, 100, 0, 0]
    assert gradient[[0, 1]].tolist() == [0, 0]
    assert gradient[4] == -2


def test_a_probability_that_is_nan_shows() -> None:
    p = Tape().leaf(np.array([np.nan, 0.5]))
    assert np.isnan(ops.binary_cross_entropy(p, np.array([1.0, 0.0]), reduction="none").numpy()).tolist() == [
        True,
        False,
    ]
