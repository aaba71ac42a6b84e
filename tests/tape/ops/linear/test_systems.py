"""Equations of square matrices, and factors by reflections: what no sample of the properties asks."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, capture, capture_function
from dgrr.tape import ShapeError, SingularMatrixError, Tape, TapeError, ops
from dgrr.tape.ops.linear import reference

TEXT = "solve: argument 'a': expected matrices with an inverse, got one without, matrix {}"
rng = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-6), (np.float64, 1e-15)])
def test_what_is_left_over_is_rounding(n: int, dtype: Any, bound: float) -> None:
    """Elimination with pivots is backward stable: the residual is small whatever the condition."""
    a = (rng.standard_normal((3, n, n)) * np.logspace(-6, 6, n)).astype(dtype)
    b = rng.standard_normal((3, n, 2)).astype(dtype)
    x = ops.solve(Tape().leaf(a), b).numpy().astype(np.float64)
    left = np.abs(a.astype(np.float64) @ x - b).max()
    assert left <= bound * 40 * n * (np.abs(a) @ np.abs(x)).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_without_a_heavy_diagonal_have_the_bits_of_the_reference(dtype: Any) -> None:
    """Any row may have the pivot, and it may be little larger than the others."""
    a, b = rng.standard_normal((5, 9, 9)).astype(dtype), rng.standard_normal((5, 9, 2)).astype(dtype)
    assert ops.solve(Tape().leaf(a), b).numpy().tobytes() == reference.solve(a, b).tobytes()
    q, r = (factor.numpy() for factor in ops.qr(Tape().leaf(a)))
    assert np.concatenate([q, r], -1).tobytes() == reference.reflections(a).tobytes()


def test_pivots_are_the_largest_of_their_column() -> None:
    """Without exchanges the small pivot would lose all of the other row."""
    a = np.array([[1e-20, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(ops.solve(Tape().leaf(a), [[1.0], [2.0]]).numpy(), [[1.0], [1.0]], rtol=1e-15)


@pytest.mark.parametrize("a", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 1.0]]])
def test_a_singular_matrix_is_an_error_that_says_which(a: Any) -> None:
    given = np.stack([np.eye(2), np.array(a), np.zeros((2, 2))])
    with pytest.raises(SingularMatrixError) as error:
        ops.solve(Tape().leaf(given), np.ones((3, 2, 1)))
    assert str(error.value) == TEXT.format(1)
    with pytest.raises(SingularMatrixError):
        ops.inverse(Tape().leaf(given))
    assert isinstance(error.value, ArithmeticError)


def test_a_singular_matrix_ends_a_captured_step_and_function() -> None:
    def loss_fn(p: Any, a: Any) -> Any:
        return ops.reduce_sum(ops.solve(a * p["w"], np.ones((2, 1))))

    step = capture(loss_fn, {"w": np.ones(())}, SGD(0.0), np.eye(2))
    assert step(np.eye(2)) == 2.0
    with pytest.raises(SingularMatrixError) as error:
        step(np.ones((2, 2)))
    assert str(error.value) == TEXT.format(0)
    function = capture_function(lambda a: ops.inverse(a), np.eye(2))
    with pytest.raises(SingularMatrixError):
        function(np.zeros((2, 2)))


@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (2, 6, 4), (1, 1), (4, 1)])
def test_factors_are_orthogonal_and_triangular_with_lapacks_signs(shape: tuple[int, ...]) -> None:
    a = rng.standard_normal(shape)
    q, r = (factor.numpy() for factor in ops.qr(Tape().leaf(a)))
    np.testing.assert_allclose(q @ r, a, atol=1e-14)
    np.testing.assert_allclose(
        q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *(q.shape[-1],) * 2)), atol=1e-14
    )
    assert (np.tril(r, -1) == 0).all()
    for ours, theirs in zip((q, r), np.linalg.qr(a), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


@pytest.mark.parametrize("a", [np.zeros((3, 3)), np.ones((4, 2)), np.diag([1.0, 0.0, -2.0]), np.full((2, 2), 1e-200)])
def test_matrices_without_full_rank_have_factors(a: Any) -> None:
    q, r = (factor.numpy() for factor in ops.qr(Tape().leaf(a)))
    np.testing.assert_allclose(q @ r, a, atol=1e-15)
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-15)


def test_what_qr_refuses() -> None:
    with pytest.raises(ShapeError, match=r"^qr: argument 'a': expected a matrix, got shape \(3,\)$"):
        ops.qr(Tape().leaf(np.ones(3)))
    with pytest.raises(
        TapeError, match="^qr: expected a Var among the arguments; put an array on a tape with tape.leaf$"
    ):
        ops.qr(np.ones((2, 2)))
