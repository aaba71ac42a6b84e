"""The tape: it only grows, ids are indices, an op that fails leaves it as it was, foreign Vars are refused."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import BoundsError, Dim, DTypeError, Shape, ShapeError, Tape, TapeError, Var, f32, f64, ops

pytestmark = pytest.mark.quick


class Batch(Dim):
    pass


class Features(Dim):
    pass


class Three(Dim, size=3):
    pass


def test_ids_are_indices_and_parents_come_first(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0])
    y = x.exp()
    z = y * x
    assert [x.id, y.id, z.id] == [0, 1, 2]
    assert [node.id for node in tape] == list(range(len(tape)))
    assert [node.parents for node in tape] == [(), (0,), (1, 0)]
    assert all(parent < node.id for node in tape for parent in node.parents)


def test_each_op_appends_one_node(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3)))
    functions: tuple[Any, ...] = (ops.exp, ops.softmax, ops.transpose2d, ops.reduce_sum, ops.neg)
    for n, apply in enumerate(functions, start=2):
        apply(x)
        assert len(tape) == n


def test_a_node_says_how_it_was_made(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3)), name="x")
    node = tape.node(x.softmax(axis=0))
    assert (node.op_name, dict(node.attrs), node.parents, node.requires_grad) == (
        "softmax",
        {"axis": 0},
        (0,),
        True,
    )
    assert node.inputs == [tape.node(x).value]
    leaf = tape.node("x")
    assert (leaf.op, leaf.op_name, leaf.name, leaf.parents) == (None, "leaf", "x", ())


def test_an_operand_that_is_no_var_becomes_a_constant_node(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0])
    y = x * np.array([3.0, 4.0])
    assert len(tape) == 3
    assert tape.node(1).op is None
    assert not tape.node(1).requires_grad
    assert tape.node(y).parents == (0, 1)


def test_leaves_copy_what_they_are_given(tape: Tape[Any]) -> None:
    given = np.ones(3)
    x = tape.leaf(given)
    given[0] = 7
    assert x.numpy().tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 2


def test_requires_grad(tape: Tape[Any]) -> None:
    leaves = [tape.leaf(1.0), tape.param(1.0), tape.const(1.0), tape.leaf(1.0, requires_grad=False)]
    assert [tape.node(v).requires_grad for v in leaves] == [True, True, False, False]
    assert [tape.node(tape.leaf(a)).requires_grad for a in (np.arange(3), np.ones(3, bool))] == [False, False]
    trained, _, fixed, _ = leaves
    assert tape.node(trained + fixed).requires_grad
    assert not tape.node(fixed * fixed).requires_grad
    assert not tape.node(trained < fixed).requires_grad


def test_params_are_named_by_their_keys(tape: Tape[Any]) -> None:
    made = tape.params({"w": np.ones((2, 2)), "b": np.zeros(2)})
    assert list(made) == ["w", "b"]
    assert [node.name for node in tape] == ["w", "b"]
    assert made["b"].name == "b"


@pytest.mark.parametrize("value", [np.arange(3), np.ones(3, bool), 3])
def test_param_refuses_what_cannot_be_trained(tape: Tape[Any], value: Any) -> None:
    with pytest.raises(DTypeError, match=r"^param: argument 'value': expected float32 or float64, got (int64|bool)"):
        tape.param(value)
    assert len(tape) == 0


@pytest.mark.parametrize("value", ["text", np.ones(2, np.float16), np.ones(2, complex), [None]])
def test_leaf_refuses_element_types_that_the_engine_does_not_hold(tape: Tape[Any], value: Any) -> None:
    with pytest.raises(
        DTypeError, match=r"^leaf: argument 'value': expected float32, float64, an integer type or bool"
    ):
        tape.leaf(value)
    assert len(tape) == 0


def test_integers_become_int64(tape: Tape[Any]) -> None:
    for dtype in (np.int8, np.uint8, np.int32, np.uint32):
        assert tape.leaf(np.ones(2, dtype)).dtype == np.int64
    assert tape.leaf(np.ones(2, ">f4")).dtype == np.dtype(np.float32)


def failures(tape: Tape[Any]) -> list[tuple[type[Exception], Any]]:
    x: Any
    x, m = tape.leaf([1.0, 2.0, 3.0]), tape.leaf(np.ones((2, 3)))
    i, j = tape.const(np.arange(6).reshape(2, 3)), tape.const([0, 1, 3], name="indices")
    return [
        (ShapeError, lambda: x + np.ones(2)),
        (ShapeError, lambda: x @ m),
        (ShapeError, lambda: ops.add(x, m)),
        (ShapeError, lambda: x.reshape(2, 2)),
        (DTypeError, lambda: x + np.ones(3, np.float32)),
        (DTypeError, lambda: x + "text"),
        (BoundsError, lambda: x[3]),
        (BoundsError, lambda: ops.take(x, tape.var("indices"))),
        (DTypeError, lambda: i + x),
        (DTypeError, lambda: j.exp()),
    ]


@pytest.mark.parametrize("k", range(10))
def test_an_op_that_fails_appends_nothing(tape: Tape[Any], k: int) -> None:
    error, fail = failures(tape)[k]
    before = list(tape)
    with pytest.raises(error):
        fail()
    assert list(tape) == before


def test_a_var_of_another_tape_is_refused(tape: Tape[Any]) -> None:
    other: Tape[Any] = Tape()
    x, y = tape.leaf([1.0]), other.leaf([2.0])
    for use in (
        lambda: x + y,
        lambda: ops.matmul(x, y),
        lambda: tape.value(y),
        lambda: tape.backward_dense(y),
    ):
        with pytest.raises(TapeError, match=r"^expected a Var of <Tape #\d+ with 1 nodes>, got node 0 of <Tape #\d+"):
            use()
    with pytest.raises(TapeError) as caught:
        _ = x + y
    assert f"#{tape.number} " in str(caught.value).split(", got")[0]
    assert f"#{other.number} " in str(caught.value).split(", got")[1]
    assert (len(tape), len(other)) == (1, 1)


def test_reset_forgets_nodes_and_refuses_their_vars(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3)), Shape[Batch, Features])
    tape.reset()
    assert len(tape) == 0
    y = tape.leaf(np.ones((5, 3)), Shape[Batch, Features])
    for use in (
        lambda: x.value,
        lambda: x.exp(),
        lambda: y + x,
        lambda: repr(x),
        lambda: tape.backward_dense(x),
    ):
        with pytest.raises(
            TapeError, match=r"expected a Var of generation 1 of .*, got node 0 of generation 0: the tape"
        ):
            use()
    assert len(tape) == 1


def test_node_by_var_id_or_name(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0, name="x")
    tape.leaf(2.0, name="twice")
    tape.leaf(3.0, name="twice")
    assert tape.node(x) is tape.node(0) is tape.node("x")
    assert tape.var("x").id == tape.var(0).id == 0
    assert tape.value("x").item() == 1.0
    for bad in (-1, 3):
        with pytest.raises(TapeError, match=f"^node: expected an id from 0 to 2, got {bad}$"):
            tape.node(bad)
    with pytest.raises(
        TapeError, match=r"^name 'y': expected one node of that name, got no node; use the Var or its id"
    ):
        tape.node("y")
    with pytest.raises(TapeError, match=r"^name 'twice': expected one node of that name, got nodes 1, 2; use the Var"):
        tape.node("twice")


def test_require_value(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3)))
    assert tape.require_value(x, (2, 3)) is x.value
    with pytest.raises(ShapeError, match=r"^require_value: node 0: expected shape \(3, 2\), got \(2, 3\)$"):
        tape.require_value(0, (3, 2))


def test_a_tape_of_one_float_type() -> None:
    for marker, own, other in ((f32, np.float32, np.float64), (f64, np.float64, np.float32)):
        tape: Tape[Any] = Tape(marker)
        assert tape.leaf(np.ones(2, own)).dtype == own
        assert tape.const(np.arange(3)).dtype == np.int64
        assert tape.const(np.ones(3, bool)).dtype == np.bool_
        text = f"leaf: argument 'value': expected {np.dtype(own)} on this tape, got {np.dtype(other)}; convert with"
        with pytest.raises(DTypeError, match=text):
            tape.leaf(np.ones(2, other))
        assert len(tape) == 3


def test_a_dim_has_one_size_on_a_tape(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3)), Shape[Batch, Features])
    tape.leaf(np.ones(3), Shape[Features])
    with pytest.raises(
        ShapeError, match=r"^leaf: argument 'value': expected shape \(Batch=2, Features=3\), got \(2, 4\)$"
    ):
        tape.leaf(np.ones((2, 4)), Shape[Batch, Features])
    with pytest.raises(ShapeError, match=r"^expect: expected shape \(Batch=2,\), got \(3,\)$"):
        tape.leaf(np.ones(3)).expect(Shape[Batch])
    assert len(tape) == 3
    other: Tape[Any] = Tape()
    other.leaf(np.ones((7, 4)), Shape[Batch, Features])
    assert x.expect(Shape[Batch, Features]) is x


def test_a_dim_with_a_size_has_that_size_from_the_start(tape: Tape[Any]) -> None:
    tape.leaf(np.ones(3), Shape[Three])
    with pytest.raises(ShapeError, match=r"^const: argument 'value': expected shape \(Three=3,\), got \(4,\)$"):
        tape.const(np.ones(4), Shape[Three])


def test_a_shape_that_is_refused_binds_nothing(tape: Tape[Any]) -> None:
    with pytest.raises(ShapeError, match=r"expected shape \(Batch, Three=3\), got \(2, 4\)"):
        tape.leaf(np.ones((2, 4)), Shape[Batch, Three])
    tape.leaf(np.ones((5, 3)), Shape[Batch, Three])


def test_summary_has_a_row_per_node(tape: Tape[Any]) -> None:
    x = tape.param(np.ones((2, 3), np.float32), name="x")
    tape.const(np.arange(3), name="labels")
    _ = x.exp()
    table = tape.summary()
    assert [row["dtype"] for row in table] == ["float32", "int64", "float32"]
    assert [{k: v for k, v in row.items() if k != "dtype"} for row in table] == [
        {"id": 0, "name": "x", "op": "leaf", "shape": (2, 3), "parents": "", "bytes": 24, "grad": "yes"},
        {"id": 1, "name": "labels", "op": "leaf", "shape": (3,), "parents": "", "bytes": 24, "grad": ""},
        {"id": 2, "name": None, "op": "exp", "shape": (2, 3), "parents": "0", "bytes": 24, "grad": "yes"},
    ]  # fmt: skip
    text = str(table)
    assert f"<Tape #{tape.number} with 3 nodes>" in text
    for word in (*table.columns, "labels", "float32", "(2, 3)", "exp"):
        assert word in text


def test_dot_draws_every_node_and_edge(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0], name='a "b"')
    _ = x * x
    assert tape.to_dot().splitlines() == [
        "digraph tape {",
        "  node [shape=ellipse];",
        r'  n0 [label="0: a \"b\"\n(1,)", shape=box];',
        r'  n1 [label="1: mul\n(1,)"];',
        "  n0 -> n1;",
        "  n0 -> n1;",
        "}",
    ]


def test_twenty_thousand_nodes_deep() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.zeros(2))
    y: Var[Any, Any] = x
    for _ in range(20_000):
        y = ops.add(y, x)
    grads = tape.backward_dense(y, np.ones(2))
    g = grads[x]
    assert g is not None
    assert g.numpy().tolist() == [20_001, 20_001]


def test_a_leaf_with_ten_thousand_children() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.array([3.0]))
    outs = [ops.scale(x, float(k)) for k in range(10_000)]
    seeds: list[Any] = [None, *[np.ones(1)] * len(outs)]
    g = tape.backward_dense_from(seeds)[x]
    assert g is not None
    assert g.item() == sum(range(10_000))
