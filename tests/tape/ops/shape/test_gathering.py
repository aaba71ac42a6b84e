"""Gathering, scattering and the documented transposes: the edges of the documented ops, by hand."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import BoundsError, DTypeError, ShapeError, Tape, ops
from dgrr.tape.ops import OPS


def ascending(*shape: int) -> Any:
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("transpose3d_first_to_last", "permute"),
        ("transpose3d_last_to_first", "permute"),
        ("transpose3d_last_two", "permute"),
        ("swap_adjacent_at_depth", "swapaxes"),
        ("gather_scalar", "getitem"),
        ("gather_row", "gather_row"),
        ("gather_scalar_nat", "take_or_zero"),
        ("gather_vec_nat", "take_or_zero"),
        ("gather_rows_nat", "take_or_zero"),
        ("scatter_add_vec", "index_add"),
        ("scatter_add_row", "index_add"),
        ("concat_vectors", "append"),
        ("concat_dim0", "append"),
        ("slice_range0", "narrow"),
    ],
)
def test_documented_names_are_covered(name: str, op: str) -> None:
    assert name in OPS[op].covers


def test_transposes_of_three_axes(tape: Tape[Any]) -> None:
    a = ascending(2, 3, 4)
    x = tape.leaf(a)
    assert x.permute(1, 2, 0).numpy()[1, 2, 0] == a[0, 1, 2]
    assert x.permute(1, 2, 0).shape == (3, 4, 2)
    assert x.permute(2, 0, 1).numpy()[2, 0, 1] == a[0, 1, 2]
    assert x.permute(0, 2, 1).numpy()[0, 2, 1] == a[0, 1, 2]
    assert np.array_equal(x.permute(1, 2, 0).permute(2, 0, 1).numpy(), a)


def test_neighbouring_axes_change_places_and_a_depth_that_is_none_is_an_error(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(2, 3, 4))
    swapped = x.swapaxes(1, 2)
    assert swapped.shape == (2, 4, 3)
    assert np.array_equal(swapped.swapaxes(1, 2).numpy(), x.numpy())
    with pytest.raises(ShapeError, match="swapaxes: argument 'axis2': expected an axis from -3 to 2, got 3"):
        x.swapaxes(2, 3)


def test_one_element_is_bounded(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(3))
    assert x[1].shape == ()
    assert np.asarray(tape.backward_dense(x[1], np.array(7.0))[x]).tolist() == [0.0, 7.0, 0.0]
    with pytest.raises(BoundsError, match="expected -3 to 2 on axis 0, got 3"):
        x[3]


@pytest.mark.parametrize(
    ("index", "value", "gradient"), [(2, 3.0, [0, 0, 7]), (3, 0.0, [0, 0, 0]), (-1, 0.0, [0, 0, 0])]
)
def test_one_element_or_zero(tape: Tape[Any], index: int, value: float, gradient: list[float]) -> None:
    x = tape.leaf(ascending(3))
    out = ops.take_or_zero(x, index)  # type: ignore[arg-type]
    assert (out.shape, out.item()) == ((), value)
    assert np.asarray(tape.backward_dense(out, np.array(7.0))[x]).tolist() == gradient


def test_repeated_indices_add_their_gradients_in_ascending_order(tape: Tape[Any]) -> None:
    x = tape.leaf(np.zeros(2, np.float32))
    out = ops.take_or_zero(x, np.array([1, 5, 1, 1]))  # type: ignore[arg-type]
    seed = np.array([1.0, 9.0, 2.0**24, -(2.0**24)], np.float32)
    assert np.asarray(tape.backward_dense(out, seed)[x]).tolist() == [0.0, 0.0]  # ((0 + 1) + 2^24) - 2^24, to nearest
    other = np.array([2.0**24, 9.0, -(2.0**24), 1.0], np.float32)
    assert np.asarray(tape.backward_dense(out, other)[x]).tolist() == [0.0, 1.0]


def test_rows_or_zeros(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(2, 3))
    out = ops.take_or_zero(x, np.array([1, 2, 1]))  # type: ignore[arg-type]
    assert out.numpy().tolist() == [[4, 5, 6], [0, 0, 0], [4, 5, 6]]
    assert np.asarray(tape.backward_dense(out, np.ones((3, 3)))[x]).tolist() == [[0, 0, 0], [2, 2, 2]]


def test_what_is_outside_has_no_gradient_even_if_it_is_nan(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(2))
    out = ops.take_or_zero(x, np.array([0, 9]))  # type: ignore[arg-type]
    assert np.asarray(tape.backward_dense(out, np.array([1.0, np.nan]))[x]).tolist() == [1.0, 0.0]


def test_adding_to_one_element_and_to_one_row(tape: Tape[Any]) -> None:
    x, v = tape.leaf(ascending(3)), tape.leaf(10.0)
    out = ops.index_add(x, 1, v)  # type: ignore[arg-type]
    assert out.numpy().tolist() == [1.0, 12.0, 3.0]
    grads = tape.backward_dense(out, np.array([1.0, 2.0, 3.0]))
    assert (np.asarray(grads[x]).tolist(), np.asarray(grads[v]).tolist()) == ([1.0, 2.0, 3.0], 2.0)
    m, row = tape.leaf(ascending(2, 2)), tape.leaf([10.0, 20.0])
    assert ops.index_add(m, 0, row).numpy().tolist() == [[11.0, 22.0], [3.0, 4.0]]  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [1, np.int64(1), np.int8(1), np.array(1)])
def test_a_whole_number_is_an_index(tape: Tape[Any], index: Any) -> None:
    assert ops.take(tape.leaf(ascending(3)), index).item() == 2.0


@pytest.mark.parametrize("index", [1.0, np.float64(1)])
def test_a_fraction_is_no_index(tape: Tape[Any], index: Any) -> None:
    with pytest.raises(DTypeError, match="take: argument 'indices': expected a whole number beside int64, got 1.0"):
        ops.take(tape.leaf(ascending(3)), index)


def test_embedding_looks_rows_up(tape: Tape[Any]) -> None:
    table = tape.leaf(ascending(3, 2))
    out: Any = ops.embedding(table, np.array([[2, 0], [2, 2]]))  # type: ignore[arg-type]
    assert out.numpy().tolist() == [[[5, 6], [1, 2]], [[5, 6], [5, 6]]]
    assert np.asarray(tape.backward_dense(out, np.ones((2, 2, 2)))[table]).tolist() == [[1, 1], [0, 0], [3, 3]]


def test_a_range_must_lie_inside(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(5, 2))
    assert np.array_equal(ops.narrow(x, 1, 3).numpy(), x.numpy()[1:4])
    assert ops.narrow(x, 5, 0).shape == (0, 2)
    with pytest.raises(BoundsError, match=r"start \+ length of at most 5 on axis 0, got 3 \+ 3"):
        ops.narrow(x, 3, 3)
