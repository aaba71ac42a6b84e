"""Singular values and vectors: how exact they are, of matrices that no sample of the properties is like."""

from typing import Any

import mpmath
import numpy as np
import pytest

from dgrr.tape import ShapeError, Tape, TapeError, ops
from dgrr.tape.ops.linear import reference
from dgrr.tape.transforms.gradcheck import gradcheck

rng = np.random.default_rng(0)
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def factors(a: Any) -> list[Any]:
    return [factor.numpy() for factor in ops.svd(Tape().leaf(a))]


@BOTH
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (9, 2), (2, 9), (30, 20), (20, 30), (64, 64)])
def test_factors_make_the_matrix(shape: tuple[int, int], dtype: Any) -> None:
    a = rng.standard_normal(shape).astype(dtype)
    u, s, vh = (x.astype(np.longdouble) for x in factors(a))
    n, eps = max(shape), np.finfo(dtype).eps
    assert np.abs(u * s @ vh - a).max() <= 4 * np.sqrt(n) * eps * s[0]
    for vectors in (u, vh.T):
        assert np.abs(vectors.T @ vectors - np.eye(min(shape))).max() <= 4 * np.sqrt(n) * eps
    assert (np.diff(s) <= 0).all() and (s >= 0).all()


@BOTH
def test_values_are_the_true_ones(dtype: Any) -> None:
    """Against 50 digits, in units in the last place of the greatest."""
    with mpmath.workdps(50):
        for shape in [(2, 2), (5, 3), (3, 5), (6, 6)] * 3:
            a = rng.standard_normal(shape).astype(dtype)
            true = mpmath.svd_r(mpmath.matrix(a.tolist()), compute_uv=False)
            found = factors(a)[1]
            worst = max(abs(mpmath.mpf(float(x)) - t) for x, t in zip(found, true, strict=True))
            assert worst <= 4 * float(np.spacing(found[0]))


def test_small_values_are_exact_to_their_own_last_places() -> None:
    """Of columns of very unlike lengths; LAPACK's absolute error is that of the largest value."""
    a = rng.standard_normal((8, 4)) * [1.0, 1e-6, 1e-12, 1e-18]
    with mpmath.workdps(80):
        true = sorted(mpmath.svd_r(mpmath.matrix(a.tolist()), compute_uv=False), reverse=True)
        for x, t in zip(factors(a)[1], true, strict=True):
            assert abs(mpmath.mpf(float(x)) / t - 1) < 1e-15


LOST = [[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [3.0, 6.0, 0.0], [4.0, 8.0, 0.0]]
SPECIAL = [
    np.zeros((3, 2)),
    np.zeros((2, 3)),
    np.ones((4, 4)),
    np.array(LOST),
    np.array(LOST).T,
    np.eye(4)[:, ::-1],
    -np.eye(3),
    np.diag([1.0, 0.0, -2.0]),
    np.vander(np.arange(1.0, 8.0)),
]


@BOTH
@pytest.mark.parametrize("a", SPECIAL, ids=range(len(SPECIAL)))
def test_vectors_are_whole_where_values_are_zero_or_equal(a: Any, dtype: Any) -> None:
    a = a.astype(dtype)
    u, s, vh = factors(a)
    eps = np.finfo(dtype).eps
    for vectors in (u, vh.T):
        assert np.abs(vectors.T.astype(np.float64) @ vectors - np.eye(len(s))).max() <= 8 * eps
    assert np.abs(u.astype(np.float64) * s @ vh - a).max() <= 8 * eps * max(s[0], 1)


@BOTH
def test_every_matrix_has_the_bits_of_the_reference(dtype: Any) -> None:
    info = np.finfo(dtype)
    odd = [np.full((3, 3), info.max / 4), np.full((2, 3), info.smallest_subnormal), np.array([[np.nan, 1], [2, 3]])]
    odd += [
        np.array([[np.inf, 1], [2, 3]]),
        rng.standard_normal((5, 3)) * [1, 1e-6, 1e-12],
        rng.standard_normal((3, 9, 7)),
    ]
    for a in [*SPECIAL, *odd]:
        u, s, vh = factors(a.astype(dtype))
        with np.errstate(all="ignore"):
            expected = reference.rotations(a.astype(dtype))
        found = np.concatenate([u.swapaxes(-1, -2), vh, s[..., None]], -1)
        assert np.array_equal(found, expected, equal_nan=True)
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()


@BOTH
@pytest.mark.parametrize("power", [-1, 1])
def test_squares_of_huge_and_tiny_elements_are_no_matter(power: int, dtype: Any) -> None:
    a = rng.standard_normal((5, 4)).astype(dtype)
    by = dtype(2.0) ** (power * (900 if dtype is np.float64 else 90))
    u, s, vh = factors(a)
    scaled = factors(a * by)
    assert scaled[0].tobytes() == u.tobytes() and scaled[2].tobytes() == vh.tobytes()
    assert scaled[1].tobytes() == (s * by).tobytes()


def test_what_is_not_finite_is_seen() -> None:
    for value in (np.nan, np.inf, -np.inf):
        a = np.eye(3)
        a[1, 2] = value
        assert not np.isfinite(factors(a)[1]).all()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
def test_the_gradient_of_what_no_sign_changes(shape: tuple[int, ...]) -> None:
    weights = rng.standard_normal((3, 5))

    def loss_of(a: Any) -> Any:
        u, s, vh = ops.svd(a)
        w = np.broadcast_to(weights[0, : shape[-2], None], u.shape)
        x = np.broadcast_to(weights[1, : shape[-1]], vh.shape)
        y = np.broadcast_to(weights[2, : s.shape[-1]], s.shape)
        return (u * u * w).sum() + (vh * vh * x).sum() + (s * y).sum()

    assert gradcheck(loss_of, rng.standard_normal(shape))


def test_the_gradient_of_values_passes_where_they_are_equal_or_zero() -> None:
    """Of the sum of all, ``u @ vh``; PyTorch gives NaN for some of these."""
    for a in (np.eye(3), np.diag([2.0, 2.0, 1.0]), np.diag([3.0, 0.0])):
        tape: Tape[Any] = Tape()
        x = tape.leaf(a)
        u, s, vh = ops.svd(x)
        grads: Any = tape.backward_dense(s.sum())
        np.testing.assert_allclose(grads[x].numpy(), u.numpy() @ vh.numpy(), atol=1e-15)


def test_what_it_refuses() -> None:
    with pytest.raises(ShapeError, match=r"^svd: argument 'a': expected a matrix, got shape \(3,\)$"):
        ops.svd(Tape().leaf(np.ones(3)))
    with pytest.raises(TapeError, match="^svd: expected a Var among the arguments; put an array on a tape"):
        ops.svd(np.ones((2, 2)))
