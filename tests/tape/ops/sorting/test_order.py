"""Orders beside numpy's stable sort, ties and special values, the largest few, and where their gradients go."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime import SGD, capture
from dgrr.tape import AnyTensor, DgrrError, DomainError, DTypeError, ShapeError, Tape, TapeError, f64, ops

SPECIAL = [2.0, np.nan, -0.0, 0.0, -np.inf, -0.0, np.inf, 2.0, -np.nan, 5e-324, -5e-324]


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(st.integers(0, 300), st.integers(1, 60), st.booleans(), st.sampled_from((np.float32, np.float64, np.int64)))
def test_numpy_decides(n: int, kinds: int, descending: bool, dtype: Any) -> None:
    x = np.random.default_rng(n).integers(-kinds, kinds, (2, n)).astype(dtype)
    expected = np.argsort(-x if descending else x, axis=-1, kind="stable")
    order = ops.argsort(AnyTensor(x), descending=descending)  # type: ignore[call-overload,arg-type]
    assert order.numpy().tolist() == expected.tolist()
    few = min(2 * kinds, n)
    values, first = ops.topk(AnyTensor(x), few, largest=descending)  # type: ignore[arg-type]
    assert first.numpy().tolist() == expected[:, :few].tolist()
    assert values.numpy().tolist() == np.take_along_axis(x, expected[:, :few], -1).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_float_has_a_place(dtype: Any) -> None:
    x = np.array([3e38, 1e-45, -3e38, -1.0, 1.0, *SPECIAL], dtype)
    ascending = ops.sort(Tape[Any]().leaf(x)).numpy()
    numbers = ascending[~np.isnan(ascending)]
    assert np.isnan(ascending[-2:]).all()
    assert (np.diff(numbers[np.isfinite(numbers)]) >= 0).all()
    zeros = ascending[ascending == 0]
    assert np.signbit(zeros).tolist() == sorted(np.signbit(zeros).tolist(), reverse=True)
    descending = ops.sort(Tape[Any]().leaf(x), descending=True).numpy()
    assert np.array_equal(descending, ascending[::-1], equal_nan=True)
    assert np.array_equal(np.signbit(descending[2:]), np.signbit(ascending[::-1][2:]))


def test_equal_elements_stand_by_position_either_way(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, np.nan, 0.0, 1.0, -np.nan, 1.0, -0.0])
    assert ops.argsort(x).numpy().tolist() == [6, 2, 0, 3, 5, 1, 4]
    assert ops.argsort(x, descending=True).numpy().tolist() == [1, 4, 0, 3, 5, 2, 6]


def test_the_first_is_that_of_argmax_and_reduce_max(tape: Tape[Any]) -> None:
    for row in (SPECIAL, [0.0, -0.0, 0.0], [-0.0, 0.0], [1.0, 3.0, 3.0]):
        x = tape.leaf(row)
        values, indices = ops.topk(x, 1)
        assert indices.item() == ops.argmax(x).item()
        assert values.numpy().tobytes() == ops.reduce_max(x, 0, keepdims=True).numpy().tobytes()


def test_the_smallest_few(tape: Tape[Any]) -> None:
    values, indices = ops.topk(tape.leaf([[3.0, 1.0], [2.0, 5.0], [2.0, 0.0]]), 2, axis=0, largest=False)
    assert values.numpy().tolist() == [[2.0, 0.0], [2.0, 1.0]]
    assert indices.numpy().tolist() == [[1, 2], [2, 0]]
    assert ops.topk(tape.leaf([1.0]), 0)[0].shape == (0,)


def test_gradients_go_where_the_elements_came_from() -> None:
    tape = Tape(f64)
    x = tape.leaf([3.0, 1.0, 2.0, 1.0])
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    assert tape.backward_dense(ops.sort(x), weights)[x].numpy().tolist() == [1000.0, 1.0, 100.0, 10.0]  # type: ignore[union-attr]
    values, _ = ops.topk(x, 2)
    assert tape.backward_dense(values, weights[:2])[x].numpy().tolist() == [1.0, 0.0, 10.0, 0.0]  # type: ignore[union-attr]


def test_a_captured_step_sorts_anew() -> None:
    def loss(p: Any, x: Any) -> Any:
        values, _ = ops.topk(p["w"] * x, 2)
        return ops.reduce_sum(values * values)

    step = capture(loss, {"w": np.ones(3)}, SGD(0.0), np.arange(3.0))
    assert step(np.array([1.0, 2.0, 3.0])) == 13.0
    assert step(np.array([5.0, 2.0, 1.0])) == 29.0


REFUSED: list[tuple[dict[str, Any], type[DgrrError], str]] = [
    ({"k": 4}, DomainError, "topk: argument 'k': expected 0 to 3, the size of axis -1, got 4"),
    ({"k": -1}, DomainError, "topk: argument 'k': expected 0 to 3, the size of axis -1, got -1"),
    ({"k": 1, "axis": 2}, ShapeError, "topk: argument 'axis': expected an axis from -2 to 1, got 2"),
    ({"k": 1.0}, DTypeError, "topk: argument 'k': expected a whole number, got 1.0"),
    ({"k": 1, "axis": None}, DTypeError, "topk: argument 'axis': expected a whole number, got None"),
    ({"k": 1, "largest": 1}, DTypeError, "topk: argument 'largest': expected True or False, got 1"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_topk_refuses(tape: Tape[Any], call: dict[str, Any], error: type[DgrrError], text: str) -> None:
    x = tape.leaf(np.zeros((2, 3)))
    with pytest.raises(error) as caught:
        ops.topk(x, **call)
    assert str(caught.value) == text
    assert len(tape) == 1


def test_topk_of_an_array_is_refused() -> None:
    with pytest.raises(TapeError, match=r"^topk: expected a Var among the arguments; put an array on a tape with"):
        ops.topk(np.zeros(3), 1)
