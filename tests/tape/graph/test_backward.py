"""The five backward calls: what they return, in what order they add, what they refuse."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, DTypeError, GradientError, ShapeError, Tape, TapeError, ops

from .reading import values

pytestmark = pytest.mark.quick

BIG = 2.0**24
"""In float32 ``BIG + 1 == BIG``: the order of additions shows."""


def test_every_node_has_its_gradient(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0])
    square = x * x
    doubled = ops.scale(square, 2.0)
    out = doubled.sum()
    grads = tape.backward_dense(out)
    assert len(grads) == len(tape) == 4
    assert [g.numpy().tolist() for g in grads if g is not None] == [[4.0, 8.0], [2.0, 2.0], [1.0, 1.0], 1.0]
    assert grads[square] is grads[square.id] is grads[1]


def test_nodes_that_are_not_reached_have_none(tape: Tape[Any]) -> None:
    x, unused, constant, labels = tape.leaf([1.0]), tape.leaf([1.0]), tape.const([2.0]), tape.leaf([3])
    aside = unused * 2.0
    out = (x * constant).sum()
    after = out * 5.0
    grads = tape.backward_dense(out)
    assert [grads[v] for v in (unused, constant, labels, aside, after)] == [None] * 5
    assert set(grads.reached()) == {x.id, out.id, out.id - 1}


def test_backward_gives_the_reached_ids_only(tape: Tape[Any]) -> None:
    x, unused = tape.leaf([2.0]), tape.leaf([1.0])
    out = (x * x).sum()
    grads = tape.backward(out)
    assert unused.id not in grads
    assert {id: g.numpy().tolist() for id, g in grads.items()} == {0: [4.0], 2: [1.0], 3: 1.0}


def test_the_result_can_be_a_leaf(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    assert values(tape, x, x) == [1.0]


def test_an_id_stands_for_its_var(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    out = x * x
    assert tape.backward(out.id)[0].item() == tape.backward(out)[0].item() == 6.0


def test_backward_changes_nothing_and_can_be_repeated(tape: Tape[Any]) -> None:
    x = tape.leaf(np.linspace(-1, 1, 7))
    out = (x.tanh() * x.exp()).sum()
    nodes, bytes_before = list(tape), [node.value.array.tobytes() for node in tape]
    first, second = tape.backward_dense(out), tape.backward_dense(out)
    for a, b in zip(first, second, strict=True):
        assert a is not None
        assert b is not None
        assert a.numpy().tobytes() == b.numpy().tobytes()
    assert list(tape) == nodes
    assert [node.value.array.tobytes() for node in tape] == bytes_before


@pytest.mark.parametrize("weights", list(permutations((1.0, BIG, -BIG))))
def test_children_are_added_from_the_highest_id_down(tape: Tape[Any], weights: tuple[float, ...]) -> None:
    x = tape.leaf(np.float32(1))
    a, b, c = (ops.scale(x, w) for w in weights)
    out = ops.add(ops.add(a, b), c)
    first, second, third = (np.float32(w) for w in weights)
    assert values(tape, out, x) == [(third + second) + first]


@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
def test_the_order_of_use_does_not_matter(tape: Tape[Any], order: tuple[int, ...]) -> None:
    """The diamond's sides are added by their ids, however they are joined."""
    x = tape.leaf(np.float32(1))
    sides = [ops.scale(x, w) for w in (1.0, BIG, -BIG)]
    out = ops.add(ops.add(sides[order[0]], sides[order[1]]), sides[order[2]])
    assert values(tape, out, x) == [(np.float32(-BIG) + np.float32(BIG)) + np.float32(1)] == [1.0]


def test_the_initial_cotangent_comes_first(tape: Tape[Any]) -> None:
    x = tape.leaf(np.float32(1))
    ops.scale(x, BIG)
    ops.scale(x, -BIG)
    one = np.float32(1)
    grads = tape.backward_dense_from([one, one, one])
    assert grads[x].item() == (one - np.float32(BIG)) + np.float32(BIG) == 1.0  # type: ignore[union-attr]
    tape.reset()
    x = tape.leaf(np.float32(1))
    ops.scale(x, -BIG)
    ops.scale(x, BIG)
    grads = tape.backward_dense_from([one, one, one])
    assert grads[x].item() == (one + np.float32(BIG)) - np.float32(BIG) == 0.0  # type: ignore[union-attr]


def test_one_childs_contributions_are_added_in_its_order(tape: Tape[Any]) -> None:
    x = tape.leaf(np.float32(5))
    ops.sub(x, x)
    grads = tape.backward_dense_from([np.float32(1), np.float32(BIG)])
    assert grads[x].item() == 0.0  # type: ignore[union-attr]  # (1 + BIG) - BIG, not 1 + (BIG - BIG)


def test_repeated_parents(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    for out, expected in ((x + x, 2.0), (x * x, 6.0), (x - x, 0.0), (x / x, 0.0)):
        assert values(tape, out, x) == [expected]
    m = tape.leaf([[1.0, 2.0], [3.0, 4.0]])
    assert values(tape, (m @ m).sum(), m) == [[[7.0, 11.0], [9.0, 13.0]]]


def test_several_seeds_are_added(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0])
    y, z = x * 3.0, x * x
    seeds: list[Any] = [None] * len(tape)
    seeds[y.id], seeds[z.id], seeds[x.id] = (
        np.array([1.0, 10.0]),
        np.array([1.0, 1.0]),
        np.array([100.0, 0.0]),
    )
    grads = tape.backward_dense_from(seeds)
    assert grads[x].numpy().tolist() == [100 + 2 + 3, 4 + 30]  # type: ignore[union-attr]
    assert grads[y].numpy().tolist() == [1.0, 10.0]  # type: ignore[union-attr]
    assert list(tape.backward_dense_from([None] * len(tape))) == [None] * len(tape)


def test_a_seed_on_an_inner_node_meets_what_flows_in(tape: Tape[Any]) -> None:
    x = tape.leaf(2.0)
    y = x * x
    z = y * 3.0
    grads = tape.backward_dense_from([None, 10.0, None, 1.0])
    assert (grads[y].item(), grads[x].item()) == (13.0, 52.0)  # type: ignore[union-attr]
    assert z.item() == 12.0


@pytest.mark.parametrize("seed", [np.array([1.0, 2.0]), [1.0, 2.0], AnyTensor(np.array([1.0, 2.0]))])
def test_seeds_are_arrays_lists_or_tensors(tape: Tape[Any], seed: Any) -> None:
    x = tape.leaf([3.0, 4.0])
    assert tape.backward(x * x, seed)[0].numpy().tolist() == [6.0, 16.0]


def test_a_number_is_a_seed_of_a_scalar(tape: Tape[Any]) -> None:
    x = tape.leaf(np.float32(3))
    assert tape.backward(x * x, 0.5)[0].item() == 3.0
    assert tape.backward(x * x, 2)[0].item() == 12.0


def test_seeds_that_do_not_fit(tape: Tape[Any]) -> None:
    x = tape.leaf([3.0, 4.0])
    out = x * x
    with pytest.raises(
        GradientError, match=r"^backward_dense: argument 'out': expected a scalar, got shape \(2,\); red"
    ):
        tape.backward_dense(out)
    with pytest.raises(ShapeError, match=r"^backward: argument 'seed': expected shape \(2,\), got \(3,\)$"):
        tape.backward(out, np.ones(3))
    with pytest.raises(ShapeError, match=r"^backward_dense_all: argument 'seed': expected shape \(2,\), got \(\)$"):
        tape.backward_dense_all(out, 1.0)
    with pytest.raises(DTypeError, match=r"^backward_dense: argument 'seed': expected dtype float64, got float32$"):
        tape.backward_dense(out, np.ones(2, np.float32))
    with pytest.raises(DTypeError, match=r"^backward_dense: argument 'seed': expected dtype float64, got int64$"):
        tape.backward_dense(out, np.array([1, 1]))
    assert len(tape) == 2


def test_cotangents_that_do_not_fit(tape: Tape[Any]) -> None:
    x = tape.leaf([3.0, 4.0])
    _ = x * x
    call = "^backward_dense_from: argument "
    for wrong in (1, 3):
        with pytest.raises(
            GradientError, match=f"{call}'cotangents': expected one entry for each of 2 nodes, got {wrong}$"
        ):
            tape.backward_dense_from([None] * wrong)
    with pytest.raises(ShapeError, match=rf"{call}'cotangents\[1\]': expected shape \(2,\), got \(1,\)$"):
        tape.backward_dense_from([None, np.ones(1)])
    with pytest.raises(DTypeError, match=rf"{call}'cotangents\[0\]': expected dtype float64, got float32$"):
        tape.backward_dense_from([np.ones(2, np.float32), None])


def test_a_seed_of_another_tape_is_refused(tape: Tape[Any]) -> None:
    other: Tape[Any] = Tape()
    seed, x = other.leaf(1.0), tape.leaf(3.0)
    out = x + x
    with pytest.raises(TapeError, match="expected a Var of"):
        tape.backward_dense(out, seed, create_graph=True)
    assert (len(tape), len(other)) == (2, 1)


def test_results_without_a_gradient(tape: Tape[Any]) -> None:
    x, c = tape.leaf(1.0), tape.const(2.0)
    with pytest.raises(
        GradientError, match=r"^backward: argument 'out': expected float values, got bool: no gradient exists$"
    ):
        tape.backward(x < c)
    text = (
        r"^backward_scalar: argument 'out': node \d \(mul\) depends on no leaf that requires a gradient; make one with"
    )
    with pytest.raises(GradientError, match=text):
        tape.backward_scalar(c * c)
    with pytest.raises(GradientError, match=r"node 1 \(leaf\) depends on no leaf"):
        tape.backward_dense(c)


def test_backward_scalar_demands_a_scalar(tape: Tape[Any]) -> None:
    x = tape.leaf([3.0])
    with pytest.raises(
        ShapeError,
        match=r"^backward_scalar: argument 'out': expected shape \(\), got \(1,\); reduce it first$",
    ):
        tape.backward_scalar(x)
    assert tape.backward_scalar((x * x).sum())[x].numpy().tolist() == [6.0]  # type: ignore[union-attr]


def test_dense_all_is_zero_where_nothing_arrives(tape: Tape[Any]) -> None:
    x, unused, labels = tape.leaf(np.float32(2)), tape.leaf(np.zeros((2, 3), np.float32)), tape.leaf([1, 2])
    out = x * x
    grads = tape.backward_dense_all(out)
    zeros = grads[unused]
    assert zeros is not None
    assert (zeros.dtype.name, zeros.array.tolist()) == ("float32", [[0.0] * 3] * 2)
    assert grads[labels] is None
    assert grads[x].item() == 4.0  # type: ignore[union-attr]


def test_no_nan_leaks_from_what_is_not_reached(tape: Tape[Any]) -> None:
    """``0 * (1 / 0)`` would be NaN: the VJP of the unused reciprocal must not run with a zero cotangent."""
    x, w = tape.leaf(0.0), tape.leaf(3.0)
    reciprocal = 1.0 / x
    assert np.isinf(reciprocal.item())
    grads = tape.backward_dense_all(w * w)
    assert grads[x].item() == 0.0  # type: ignore[union-attr]
    assert grads[w].item() == 6.0  # type: ignore[union-attr]


def test_gradients_that_vanish_still_arrive(tape: Tape[Any]) -> None:
    x = tape.leaf([-1.0, 2.0])
    assert values(tape, ops.scale(x, 0.0).sum(), x) == [[0.0, 0.0]]


def test_integers_and_masks_have_no_gradient(tape: Tape[Any]) -> None:
    x, indices, mask = tape.leaf([1.0, 2.0]), tape.leaf([1, 1, 0]), tape.leaf([True, False, True])
    taken = ops.take(x, indices)
    out = ops.where(mask, taken, taken * 2.0).sum()
    assert values(tape, out, x, indices, mask) == [[1.0, 3.0], None, None]


def test_node_backward_is_the_local_vjp(tape: Tape[Any]) -> None:
    x, y = tape.leaf([2.0, 3.0]), tape.leaf([5.0, 7.0])
    node = tape.node(x * y)
    pulled = node.backward(AnyTensor(np.array([1.0, 10.0])))
    assert [(id, g.numpy().tolist()) for id, g in pulled] == [(0, [5.0, 70.0]), (1, [2.0, 30.0])]
    assert tape.node(x).backward(AnyTensor(np.ones(2))) == []
    with pytest.raises(
        ShapeError, match=r"^backward of node 2 \(mul\): argument 'cotangent': expected shape \(2,\), got"
    ):
        node.backward(AnyTensor(np.ones(3)))


def test_an_untrainable_parent_gets_no_contribution(tape: Tape[Any]) -> None:
    x, c = tape.leaf([2.0]), tape.const([5.0])
    assert [id for id, _ in tape.node(x * c).backward(AnyTensor(np.ones(1)))] == [x.id]


def test_an_omitted_input_has_no_parent(tape: Tape[Any]) -> None:
    x, w = tape.leaf(np.ones((2, 3))), tape.leaf(np.ones((4, 3)))
    out = ops.linear(x, w)
    assert tape.node(out).parents == (0, 1)
    assert values(tape, out.sum(), x, w) == [[[4.0] * 3] * 2, [[2.0] * 3] * 4]
