"""Factors and solutions: what is read, what gives NaN, and equations that hold."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import NonFiniteError, Tape, f64, ops

NAN = float("nan")


def test_the_factor_of_whole_numbers_is_exact(tape: Tape[Any]) -> None:
    lower = np.tril(np.arange(1.0, 17).reshape(4, 4))
    assert ops.cholesky(tape.leaf(lower @ lower.T)).numpy().tolist() == lower.tolist()


def test_only_the_lower_triangle_is_read_and_has_a_gradient() -> None:
    tape = Tape(f64)
    a = tape.leaf([[4.0, NAN], [2.0, 10.0]])
    y = ops.cholesky(a)
    assert y.numpy().tolist() == [[2.0, 0.0], [1.0, 3.0]]
    gradient = tape.backward_dense(y, np.ones((2, 2)))[a]
    assert gradient is not None
    assert gradient.numpy()[0, 1] == 0.0
    assert np.isfinite(gradient.numpy()).all()


def test_the_first_nan_of_the_diagonal_is_the_pivot_that_failed(tape: Tape[Any]) -> None:
    a = np.diag([4.0, 1.0, -1.0, 1.0])
    a[3, 0] = 2.0
    y = ops.cholesky(tape.leaf(np.stack([np.eye(4), a]))).numpy()
    assert y[0].tolist() == np.eye(4).tolist()
    assert np.isnan(np.diagonal(y[1])).tolist() == [False, False, True, True]
    assert y[1, :, 0].tolist() == [2.0, 0.0, 0.0, 1.0]


def test_a_matrix_that_is_not_positive_definite_is_found_where_it_was_factored() -> None:
    tape = Tape(f64, check="finite")
    with pytest.raises(NonFiniteError, match="cholesky"):
        ops.cholesky(tape.leaf([[1.0, 0.0], [0.0, 0.0]]))


def test_positive_definite_equations_by_two_triangular_ones() -> None:
    rng = np.random.default_rng(0)
    root, b = rng.standard_normal((3, 20, 20)), rng.standard_normal((3, 20, 2))
    a = root @ root.swapaxes(1, 2) + np.eye(20)
    tape = Tape(f64)
    y = ops.cholesky(tape.leaf(a))
    half = ops.solve_triangular(y, tape.leaf(b), upper=False)
    x = ops.solve_triangular(y, half, upper=False, transpose=True)
    np.testing.assert_allclose(a @ x.numpy(), b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
def test_equations_of_one_triangle(upper: bool, transpose: bool, unitriangular: bool) -> None:
    rng = np.random.default_rng(0)
    full = rng.integers(-3, 4, (4, 4)).astype(float)
    np.fill_diagonal(full, 2.0)
    x = rng.integers(-3, 4, (4, 3)).astype(float)
    part = np.triu(full) if upper else np.tril(full)
    if unitriangular:
        np.fill_diagonal(part, 1.0)
    read = np.where(np.triu(np.ones((4, 4), bool), 0) == upper, full, NAN)  # what must not be read is NaN
    np.fill_diagonal(read, NAN if unitriangular else 2.0)
    tape = Tape(f64)
    b = (part.T if transpose else part) @ x
    got = ops.solve_triangular(tape.leaf(read), tape.leaf(b), upper, transpose, unitriangular)
    assert got.numpy().tolist() == x.tolist()  # whole numbers and halves: nothing is rounded
