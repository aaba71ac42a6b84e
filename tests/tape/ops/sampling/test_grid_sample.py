"""Planes read at the places of grids, by hand."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops

X = np.arange(12.0).reshape(1, 3, 4) ** 2
IDENTITY = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def sample(x: Any, grid: Any, *args: Any, **kwargs: Any) -> Any:
    return ops.grid_sample(Tape().leaf(x), np.asarray(grid), *args, **kwargs).numpy()


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_the_grid_of_the_identity_reads_the_plane(mode: str, align_corners: bool) -> None:
    grid = ops.affine_grid(Tape().leaf(IDENTITY), (3, 4), align_corners).numpy()
    assert sample(X, grid, mode, "zeros", align_corners) == pytest.approx(X, abs=1e-12)


@pytest.mark.parametrize(
    ("padding", "reads"),
    [
        ("zeros", [None, None, None, 0, 3, None, None, None]),
        ("border", [0, 0, 0, 0, 3, 3, 3, 3]),
        ("reflection", [2, 1, 0, 0, 3, 3, 2, 0]),
    ],
)
def test_what_stands_beyond_the_edges(padding: str, reads: list[int | None]) -> None:
    cells, row = np.array([-3, -2, -1, 0, 3, 4, 5, 7]), X[:, 1:2]
    grid = np.stack([(2 * cells + 1) / 4 - 1, np.zeros(8)], -1)[None]
    for mode in ("bilinear", "nearest", "bicubic"):
        found = sample(row, grid, mode, padding)[0, 0]
        assert found.tolist() == [0.0 if c is None else row[0, 0, c] for c in reads]


def test_a_place_that_is_nan_shows() -> None:
    grid = np.array([[[np.nan, 0.0], [0.0, 0.0]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        assert np.isnan(sample(X, grid, mode)).tolist() == [[[True, False]]]


def test_a_place_far_away_reads_zeros() -> None:
    grid = np.array([[[1e30, 0.0], [0.0, -1e300]]])
    assert sample(X, grid).tolist() == [[[0.0, 0.0]]]


def test_the_gradient_of_a_cell_is_added_in_ascending_order_of_places() -> None:
    big, grid = np.float32(2.0**24), np.zeros((1, 3, 2), np.float32)
    for order, expected in (([1.0, big, -big], 0.0), ([big, -big, 1.0], 1.0)):
        tape: Tape[Any] = Tape()
        x = tape.leaf(np.ones((1, 1, 1), np.float32))
        y = ops.grid_sample(x, grid, "nearest")
        assert np.asarray(tape.backward_dense(y, np.array([[order]], np.float32))[x]).tolist() == [[[expected]]]
