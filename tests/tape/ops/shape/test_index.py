"""``x[index]`` with arrays and masks: numpy's own results, gradients by counting, and indices that are data."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, capture
from dgrr.tape import AnyTensor, BoundsError, DgrrError, DTypeError, ShapeError, Tape, ops

Array = npt.NDArray[Any]

ROWS = np.array([[0, -1], [2, 1]])


def indexed(rng: np.random.Generator) -> tuple[Array, tuple[Any, ...]]:
    """An array and an index that numpy takes: numbers, slices, new axes, ``...``, arrays that broadcast, masks."""
    shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 5)))
    index: list[Any] = []
    axis, dots = 0, bool(rng.integers(2))
    while axis < len(shape) or rng.integers(3):
        kind = rng.choice(("array", "array", "number", "slice", "whole", "mask", "masks", "new", "dots"))
        if kind == "dots" and dots:  # which may stand for no axis
            index.append(...)
            axis, dots = axis + int(rng.integers(len(shape) - axis + 1)), False
        elif kind == "new":
            index.append(None)
        elif kind != "dots" and axis < len(shape):
            sizes = shape[axis : axis + (2 if kind == "masks" else 1)]
            index.append(part_of(str(kind), sizes, rng))
            axis += len(sizes)
    return rng.standard_normal(shape), tuple(index)


def part_of(kind: str, sizes: tuple[int, ...], rng: np.random.Generator) -> Any:
    """What an index says of axes of these sizes."""
    n = sizes[0]
    if kind in ("mask", "masks"):
        return np.arange(np.prod(sizes)).reshape(sizes) % 3 < 2
    if kind == "array":
        shapes: Any = ((2,), (2,), (3, 2), (1,), (3, 1), (), (0, 1))
        return rng.integers(-n, n, shapes[rng.integers(len(shapes))])
    if kind == "number":
        return int(rng.integers(-n, n))
    if kind == "slice":
        return slice(int(rng.integers(n + 1)), None, (1, 2, -1)[rng.integers(3)])
    return slice(None)


CASES = 1000
"""A tenth of a second's; any number of others can be tried, as the n-th is drawn with the seed n."""


@pytest.mark.parametrize("data", [False, True], ids=["known", "data"])
def test_numpy_decides(data: bool) -> None:
    """Where indices are known, and where they are data of which the shapes are known alone."""
    for seed in range(CASES):
        x, index = indexed(np.random.default_rng(seed))
        tape = Tape[Any]()
        leaf: Any = tape.leaf(x)
        given = tuple(tape.const(part) if data and is_indices(part) else part for part in index)
        try:
            expected = x[index]
        except IndexError:
            with pytest.raises(ShapeError, match=r"^index: argument 'index': expected arrays of indices whose shapes"):
                _ = leaf[given]
        else:
            assert_gives(leaf, leaf[given], x, index, expected)


def is_indices(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype != bool


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
