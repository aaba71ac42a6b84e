"""``x[index]`` with arrays and masks: numpy's own results, gradients by counting, and indices that are data."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime import SGD, capture
from dgrr.tape import AnyTensor, BoundsError, DgrrError, DTypeError, ShapeError, Tape, f64, ops

Array = npt.NDArray[Any]

ROWS = np.array([[0, -1], [2, 1]])


@st.composite
def indexed(draw: st.DrawFn) -> tuple[Array, tuple[Any, ...]]:
    """An array and an index that numpy takes: numbers, slices, new axes, ``...``, arrays that broadcast, a mask."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    index: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        n, kind = shape[axis], draw(st.sampled_from(("array", "array", "number", "slice", "whole", "mask", "new")))
        if kind == "new":
            index.append(None)
            continue
        made = {
            "array": rng.integers(-n, n, draw(st.sampled_from(((2,), (3, 2), (1,), (3, 1), ())))),
            "number": draw(st.integers(-n, n - 1)),
            "slice": slice(draw(st.integers(0, n)), None, draw(st.sampled_from((1, 2, -1)))),
            "whole": slice(None),
            "mask": np.arange(n) < 2 if n > 1 else np.array([True]),
        }[kind]
        index.append(made)
        axis += 1
    if axis < len(shape) and draw(st.booleans()):
        index.append(...)
    return rng.standard_normal(shape), tuple(index)


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(indexed())
def test_numpy_decides(case: tuple[Array, tuple[Any, ...]]) -> None:
    x, index = case
    leaf: Any = Tape(f64).leaf(x)
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(ShapeError, match=r"^index: argument 'index': expected arrays of indices whose shapes br"):
            _ = leaf[index]
        return
    assert_gives(leaf, leaf[index], x, index, expected)


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(indexed())
def test_numpy_decides_for_indices_that_are_data(case: tuple[Array, tuple[Any, ...]]) -> None:
    x, index = case
    tape = Tape[Any]()
    leaf: Any = tape.leaf(x)
    is_index = [isinstance(part, np.ndarray) and part.dtype != bool for part in index]
    data = tuple(tape.const(part) if is_data else part for part, is_data in zip(index, is_index, strict=True))
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(ShapeError, match=r"whose shapes broadcast, got"):
            _ = leaf[data]
        return
    assert_gives(leaf, leaf[data], x, index, expected)


def assert_gives(leaf: Any, out: Any, x: Array, index: Any, expected: Array) -> None:
    """The elements that numpy gives, and a gradient that adds up where numpy's own ``add.at`` does."""
    assert out.numpy().shape == expected.shape
    assert out.numpy().tobytes() == expected.tobytes()
    weights = np.arange(expected.size, dtype=float).reshape(expected.shape) + 1  # whole: their sums are exact
    found = np.zeros_like(x)
    np.add.at(found, index, weights)
    gradient = leaf.tape.backward_dense(out, weights)[leaf].numpy()
    assert gradient.tobytes() == found.tobytes()


def test_gradients_of_one_element_are_added_in_the_order_of_the_result(tape: Tape[Any]) -> None:
    x: Any = tape.leaf([[1.0, 2.0]])
    seed = np.array([1e16, 1.0, -1e16])
    assert tape.backward_dense(x[[0, 0, 0], [1, -1, 1]], seed)[x].numpy().tolist() == [[0.0, 0.0]]  # type: ignore[union-attr]
    seed = np.array([1e16, -1e16, 1.0])
    assert tape.backward_dense(x[[0, 0, 0], [1, -1, 1]], seed)[x].numpy().tolist() == [[0.0, 1.0]]  # type: ignore[union-attr]


def test_whole_rows_are_moved_by_one_take(tape: Tape[Any]) -> None:
    x: Any = tape.leaf(np.zeros((3, 4, 5)))
    _ = x[[0, 2]]
    assert [node.op_name for node in tape][1:] == ["leaf", "take"]
    assert tape.node(2).value.sizes == (2, 4, 5)


def step(p: Any, batch: Any) -> Any:
    """Elements at positions of which a batch holds the rows, weighted by their number."""
    rows, columns = batch
    picked = p["w"][rows, 1:, columns]
    return ops.reduce_sum(picked * picked)


def batch_of(*columns: int) -> tuple[Array, Array]:
    return ROWS, np.array(columns)


def test_indices_of_a_captured_step_are_data() -> None:
    w = np.arange(24.0).reshape(3, 4, 2)
    made = capture(step, {"w": w}, SGD(0.0), batch_of(0, 1))
    for batch in (batch_of(0, 1), batch_of(1, -2)):
        assert made(batch) == np.square(w[batch[0], 1:, batch[1]]).sum()
    with pytest.raises(
        BoundsError, match=r"^index: argument 'index': expected -2 to 1 on axis 2, got 2 at position 1$"
    ):
        made(batch_of(1, 2))


def test_masks_of_a_captured_step_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"got a Var; .*use ops\.where\(mask, x, 0\.0\), which keeps the shape$"):
        capture(
            lambda p, mask: ops.reduce_sum(p["w"][mask]), {"w": np.ones(3)}, SGD(0.1), np.array([True, False, True])
        )


def test_masks_of_numpy_are_constants_of_a_captured_step() -> None:
    mask = np.array([True, False, True])
    made = capture(lambda p, x: ops.reduce_sum(p["w"][mask] * x), {"w": np.arange(3.0)}, SGD(0.1), np.ones(2))
    assert made(np.array([5.0, 7.0])) == 14.0


REFUSED: list[tuple[Any, type[DgrrError], str]] = [
    (np.array([0, 2]), BoundsError, "expected -2 to 1 on axis 0, got 2 at position 1"),
    ((slice(None), [[0], [-4]]), BoundsError, "expected -3 to 2 on axis 1, got -4 at position 1"),
    (([0], 3), BoundsError, "expected -3 to 2 on axis 1, got 3$"),
    (([0], 0, 0), ShapeError, "expected at most 2 axes and one ..., got 3 axes$"),
    (([0], ..., ...), ShapeError, "got 1 axes and several ...$"),
    (np.ones((3, 2), bool), ShapeError, r"expected a mask of shape \(2, 3\) from axis 0 on, got \(3, 2\)"),
    ([[0], [0, 1]], DTypeError, "expected an array of numbers, got list"),
    (np.array([2**64 - 1], np.uint64), DTypeError, "expected whole numbers that int64 holds, got 18446744073709551615"),
    (([0.0],), DTypeError, "arrays of int64 or masks, got float64"),
    (([0], True), DTypeError, "arrays of int64 or masks, got bool"),
    (([0], 1.0), DTypeError, "arrays of int64 or masks, got float"),
    (np.array(True), DTypeError, "arrays of int64 or masks, got bool"),
]


@pytest.mark.parametrize(("index", "error", "text"), REFUSED)
def test_indices_that_are_refused(tape: Tape[Any], index: Any, error: type[DgrrError], text: str) -> None:
    x = tape.leaf(np.arange(6.0).reshape(2, 3))
    with pytest.raises(error, match=f"^index: argument 'index': .*{text}"):
        _ = x[index]
    assert len(tape) == 1


def test_data_that_is_no_index_is_refused(tape: Tape[Any]) -> None:
    x = tape.leaf(np.zeros((2, 0)))
    with pytest.raises(
        DTypeError, match=r"^index: argument 'index': expected int64, got a Var of float64; convert with"
    ):
        _ = x[tape.leaf([0.0])]
    with pytest.raises(BoundsError, match=r"expected 0 to -1 on axis 1, got indices of an axis without elements$"):
        _ = x[0, tape.const([0])]
    with pytest.raises(
        BoundsError, match=r"^index: argument 'index': expected -2 to 1 on axis 0, got -3 at position 1$"
    ):
        _ = x[tape.const([0, -3]), :0]


def test_tensors_and_lists_are_arrays(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0, 3.0])
    assert x[AnyTensor(np.array([2, 0]))].numpy().tolist() == [3.0, 1.0]
    assert x[[[2], [0]]].numpy().tolist() == [[3.0], [1.0]]
    assert x[[]].shape == (0,)
    assert x[np.array([1, 2], np.uint8)].numpy().tolist() == [2.0, 3.0]
    assert x[np.array(1)].item() == 2.0
    assert x[tape.const(2)].item() == 3.0
