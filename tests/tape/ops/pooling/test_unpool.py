"""Unpooling: what a cell named by several elements gets, and the way there and back."""

from typing import Any

import numpy as np

from dgrr.tape import Tape, ops


def test_the_last_element_that_names_a_cell_stands_there_and_has_the_gradient() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.array([[1.0, 2.0, 3.0]]))
    y = ops.max_unpool(x, np.array([[4, 1, 4]]), (3,), stride=1)
    assert y.numpy().tolist() == [[0, 2, 0, 0, 3]]
    grads = tape.backward_dense(y, np.arange(10.0, 15.0)[None])
    assert np.asarray(grads[x]).tolist() == [[0, 11, 14]]


def test_largest_cells_return_to_where_they_stood() -> None:
    planes = np.random.default_rng(0).standard_normal((2, 3, 5, 7))
    x = Tape().leaf(planes)
    attrs: dict[str, Any] = {"kernel_size": (2, 3), "stride": (2, 3)}
    largest, places = ops.max_pool(x, **attrs), ops.max_pool_indices(x, **attrs)
    back = ops.max_unpool(largest, places, **attrs, output_size=(5, 7)).numpy()
    kept = np.isin(planes, largest.numpy())
    assert np.array_equal(back, np.where(kept, planes, 0.0))


def test_nan_is_the_largest_and_the_first_of_equal_cells_counts() -> None:
    nan = float("nan")
    x = Tape().leaf([[1.0, nan, nan, 2.0], [-0.0, 0.0, 3.0, 3.0]])
    assert ops.max_pool_indices(x, (2,)).numpy().tolist() == [[1, 2], [1, 2]]
