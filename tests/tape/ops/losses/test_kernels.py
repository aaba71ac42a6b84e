"""The cross-entropy kernels row by row against the reference, and the fused one against the two that it joins."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.math.reference import sums as reference_sums
from dgrr.tape.ops.losses import reference
from dgrr.tape.ops.reduce.kernels.softmax import cross_entropy_grad, cross_entropy_rows, cross_entropy_rows_with_grad

FLOATS = (np.float32, np.float64)
PARTS = (1, 2, 7)
SHAPES = ((1, 1), (64, 10), (7, 3), (5, 16), (9, 17), (3, 65), (1, 4100), (35, 1), (0, 10))


def case(shape: tuple[int, int], dtype: Any) -> tuple[Any, Any, Any]:
    """Logits of all sizes, a class for each row, and a cotangent."""
    rng = np.random.default_rng(sum(shape))
    x = (rng.standard_normal(shape) * rng.choice([1e-3, 1.0, 60.0], (shape[0], 1))).astype(dtype)
    return x, rng.integers(0, shape[1], shape[0]), np.array(rng.standard_normal(), dtype)


def junk(shape: Any, dtype: Any) -> Any:
    return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_gradient_follow_the_reference(run: Any, dtype: Any, shape: tuple[int, int]) -> None:
    x, labels, g = case(shape, dtype)
    terms = [
        reference_sums.log_sum(row) - (row[i] - reference_sums.row_max(row)) for row, i in zip(x, labels, strict=True)
    ]
    slope = reference.cross_entropy_grad(x, labels, g) if shape[0] else x
    for parts in PARTS:
        losses, grad = junk(shape[0], dtype), junk(shape, dtype)
        assert run(cross_entropy_rows, Words(*shape), [losses, x, labels], parts) == 0
        assert run(cross_entropy_grad, Words(*shape), [grad, x, labels, g], parts) == 0
        assert losses.tobytes() == np.array(terms, dtype).tobytes()
        assert grad.tobytes() == slope.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("parts", PARTS)
def test_one_pass_gives_the_bits_of_two(run: Any, dtype: Any, shape: tuple[int, int], parts: int) -> None:
    x, labels, g = case(shape, dtype)
    losses, grad, both = junk(shape[0], dtype), junk(shape, dtype), [junk(shape[0], dtype), junk(shape, dtype)]
    run(cross_entropy_rows, Words(*shape), [losses, x, labels])
    run(cross_entropy_grad, Words(*shape), [grad, x, labels, g])
    assert run(cross_entropy_rows_with_grad, Words(*shape), [*both, x, labels, g], parts) == 0
    assert both[0].tobytes() == losses.tobytes() and both[1].tobytes() == grad.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_and_nan_stay_in_their_row(run: Any, dtype: Any) -> None:
    x, labels, g = case((64, 10), dtype)
    losses, grad = junk(64, dtype), junk((64, 10), dtype)
    run(cross_entropy_rows_with_grad, Words(64, 10), [losses, grad, x, labels, g])
    wild = x.copy()
    wild[3, 4], wild[20, 0], wild[41, labels[41]] = np.nan, np.inf, -np.inf
    found, slope = junk(64, dtype), junk((64, 10), dtype)
    run(cross_entropy_rows_with_grad, Words(64, 10), [found, slope, wild, labels, g])
    calm = [r for r in range(64) if r not in (3, 20, 41)]
    assert found[calm].tobytes() == losses[calm].tobytes() and slope[calm].tobytes() == grad[calm].tobytes()
    assert np.isnan(found[[3, 20]]).all() and np.isnan(slope[[3, 20]]).all()
    assert found[41] == np.inf and np.isfinite(slope[41]).all()


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("wrong", [10, -1, 1 << 40, -(1 << 63)])
def test_the_first_label_that_is_no_class_is_named(run: Any, wrong: int, parts: int) -> None:
    x, labels, g = case((64, 10), np.float32)
    losses, grad = junk(64, np.float32), junk((64, 10), np.float32)
    for position in (0, 20, 63):
        bad = labels.copy()
        bad[position::5] = wrong
        assert run(cross_entropy_rows, Words(64, 10), [losses, x, bad], parts) == position + 1
        assert run(cross_entropy_grad, Words(64, 10), [grad, x, bad, g], parts) == position + 1
        assert run(cross_entropy_rows_with_grad, Words(64, 10), [losses, grad, x, bad, g], parts) == position + 1
