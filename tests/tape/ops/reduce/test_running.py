"""Running products and extremes, standard deviations and norms: edges, and values known from elsewhere."""

# Lambdas carry no types.
# pyright: basic
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, ShapeError, Tape, ops


def gradient(function: Any, x: Any, seed: Any = None) -> Any:
    tape: Tape[Any] = Tape()
    leaf = tape.leaf(np.asarray(x, np.float64))
    return np.asarray(tape.backward_dense(function(leaf), seed)[leaf])


def test_running_products(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert ops.cumprod(x, 0).numpy().tolist() == [[1.0, 2.0], [3.0, 8.0], [15.0, 48.0]]
    assert ops.cumprod(x, -1).numpy().tolist() == [[1.0, 2.0], [3.0, 12.0], [5.0, 30.0]]
    assert np.signbit(ops.cumprod(tape.leaf([-0.0, 1.0]), 0).numpy()).tolist() == [True, True]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([2.0, 3.0, 5.0], [1 + 3 + 15, 2 + 10, 6]),
        ([2.0, 0.0, 5.0], [1, 2 + 10, 0]),
        ([0.0, 0.0, 5.0], [1, 0, 0]),
        ([7.0], [1]),
    ],
)
def test_zeros_in_a_running_product_have_exact_gradients(row: list[float], expected: list[float]) -> None:
    assert gradient(lambda x: ops.cumprod(x, 0).sum(), row).tolist() == expected


def test_running_extremes(tape: Tape[Any]) -> None:
    row = tape.leaf([2.0, 1.0, 2.0, np.nan, 5.0, np.nan, 1.0])
    np.testing.assert_array_equal(ops.cummax(row, 0).numpy(), [2, 2, 2, np.nan, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(ops.cummin(row, 0).numpy(), [2, 1, 1, np.nan, np.nan, np.nan, np.nan])
    assert ops.cumargmax(row, 0).numpy().tolist() == [0, 0, 2, 3, 3, 5, 5]
    assert ops.cumargmin(row, 0).numpy().tolist() == [0, 1, 1, 3, 3, 5, 5]
    zeros = tape.leaf([-0.0, 0.0, -0.0])
    assert np.signbit(ops.cummax(zeros, 0).numpy()).tolist() == [True, False, False]
    assert np.signbit(ops.cummin(zeros, 0).numpy()).tolist() == [True, True, True]
    assert ops.cumargmin(zeros, 0).numpy().tolist() == [0, 0, 2]


def test_running_extremes_are_numpys_along_every_axis(tape: Tape[Any]) -> None:
    x = np.random.default_rng(0).integers(0, 4, (3, 4, 5)).astype(np.float32)
    for axis in (0, 1, -1):
        assert ops.cummax(tape.leaf(x), axis).numpy().tolist() == np.maximum.accumulate(x, axis).tolist()
        assert ops.cummin(tape.leaf(x), axis).numpy().tolist() == np.minimum.accumulate(x, axis).tolist()
        for places, value in ((ops.cumargmax, np.maximum), (ops.cumargmin, np.minimum)):
            found = places(tape.leaf(x), axis).numpy()
            assert np.take_along_axis(x, found, axis).tolist() == value.accumulate(x, axis).tolist()


def test_the_gradient_of_a_running_extreme_goes_to_the_last_of_equal_ones() -> None:
    seed = np.array([1.0, 10.0, 100.0, 1000.0])
    assert gradient(lambda x: ops.cummax(x, 0), [2.0, 1.0, 2.0, 0.0], seed).tolist() == [11.0, 0.0, 1100.0, 0.0]
    assert gradient(lambda x: ops.cummin(x, 0), [2.0, 1.0, 1.0, 3.0], seed).tolist() == [1.0, 10.0, 1100.0, 0.0]


def test_standard_deviations_are_numpys(tape: Tape[Any]) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    for axis in (None, 0, -1, (0, 1)):
        for correction in (0, 1):
            got = ops.std(tape.leaf(x), axis, keepdims=True, correction=correction).numpy()
            np.testing.assert_allclose(got, np.std(x, axis=axis, keepdims=True, ddof=correction), rtol=1e-14)


def test_the_gradient_of_a_standard_deviation_of_0_is_0() -> None:
    assert gradient(lambda x: ops.std(x, correction=1), [2.0, 2.0, 2.0]).tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(gradient(lambda x: ops.std(x, correction=1), [2.0])).all()


@pytest.mark.parametrize("p", [1, 2, np.inf, 3, 2.5, 0.5])
def test_norms(tape: Tape[Any], p: float) -> None:
    x = np.array([[3.0, -4.0, 0.0], [1.0, 2.0, -2.0]])
    for axis in (0, 1):
        np.testing.assert_allclose(ops.norm(tape.leaf(x), p, axis).numpy(), np.linalg.norm(x, p, axis), rtol=1e-14)
    flat = np.linalg.norm(x.reshape(-1), p)
    np.testing.assert_allclose(ops.norm(tape.leaf(x), p, keepdims=True).numpy(), [[flat]], rtol=1e-14)
    assert ops.norm(tape.leaf(np.zeros(3)), p).item() == 0.0


@pytest.mark.parametrize(
    ("p", "expected"), [(1, [1, -1, 0]), (2, [0.6, -0.8, 0]), (np.inf, [0, -1, 0]), (3, [9 / 91 ** (2 / 3), None, 0])]
)
def test_gradients_of_norms(p: float, expected: list[Any]) -> None:
    got = gradient(lambda x: ops.norm(x, p), [3.0, -4.0, 0.0]).tolist()
    for found, known in zip(got, expected, strict=True):
        assert known is None or found == pytest.approx(known, rel=1e-14)


@pytest.mark.parametrize("p", [1, 2, np.inf, 3, 1.5, 0.5])
def test_the_gradient_of_a_norm_at_0_is_0(p: float) -> None:
    assert gradient(lambda x: ops.norm(x, p), [0.0, 0.0]).tolist() == [0.0, 0.0]


def test_a_norm_that_is_refused_appends_nothing(tape: Tape[Any]) -> None:
    x = tape.leaf(np.zeros((2, 0)))
    with pytest.raises(ShapeError, match=r"^norm: argument 'x': expected elements along axis 1, got shape \(2, 0\)"):
        ops.norm(x, np.inf, 1)
    with pytest.raises(DomainError, match=r"^norm: argument 'p': expected a number from 2\*\*-20 to 2"):
        ops.norm(x, -1)
    assert len(tape) == 1
