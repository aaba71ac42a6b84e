"""Graphs as data: equality to the bit, roles, attributes in canonical form."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.ir import IRError, IRGraph, IRNode, Role, canonical, gradient_name
from dgrr.tape import Tape, boolean, f32, f64, i64, ops

UNLIKE: list[Any] = [
    None, True, 1, 1.0, "1", 0, False, 0.0, -0.0, float("nan"), float("inf"), ..., "...", "nan",
    (), (1,), (1.0,), ((1,),),
    slice(1), slice(0, 1), slice(1, None), slice(None, 1.0), np.dtype(np.float32), np.dtype(np.float64), "float32",
]  # fmt: skip


def node(value: Any) -> IRNode:
    return IRNode(0, "op", (1, None), (2,), {"a": value})


def test_nodes_with_attributes_that_differ_in_a_bit_are_not_equal() -> None:
    for i, one in enumerate(UNLIKE):
        for j, other in enumerate(UNLIKE):
            assert (node(one) == node(other)) == (i == j), (one, other)
    digests = {IRGraph("", {}, (node(value),), {}, {}).digest() for value in UNLIKE}
    assert len(digests) == len(UNLIKE)


def test_every_nan_is_one_attribute() -> None:
    assert node((float("nan"),)) == node((-float("nan"),))


@pytest.mark.parametrize(
    "change", [{"id": 1}, {"op": "other"}, {"inputs": (1, 2)}, {"outputs": ()}, {"attrs": {}}, {"attrs": {"b": 1}}]
)
def test_every_field_of_a_node_counts(change: dict[str, Any]) -> None:
    assert replace(node(1), **change) != node(1)
    assert node(1) != ("op", 1)


def test_the_order_of_attributes_counts() -> None:
    pairs = [("axis", 0), ("keepdims", 1)]
    assert IRNode(0, "op", (), (), dict(pairs)) != IRNode(0, "op", (), (), dict(reversed(pairs)))


def test_nodes_that_are_equal_hash_alike() -> None:
    assert len({node(1), node(1), replace(node(1), id=3)}) == 2


def backwards(table: Any) -> dict[Any, Any]:
    return dict(reversed(table.items()))


def test_the_order_of_mappings_does_not_count(step: IRGraph) -> None:
    values, outputs, updates = map(backwards, (step.values, step.outputs, step.updates))
    other = IRGraph(step.name, values, step.nodes, outputs, updates)
    assert other == step
    assert (str(other), other.to_json(), other.to_dot()) == (str(step), step.to_json(), step.to_dot())
    assert [v.id for v in other.with_role(Role.STATE)] == [5, 6, 7, 8]


@pytest.mark.parametrize("field", ["name", "values", "nodes", "outputs", "updates"])
def test_every_field_of_a_graph_counts(step: IRGraph, field: str) -> None:
    other = replace(step, **{field: type(getattr(step, field))()})
    assert other != step
    assert other.digest() != step.digest()


def test_roles_and_names(step: IRGraph) -> None:
    assert [v.name for v in step.with_role(Role.PARAM)] == ["0.weight", "0.bias"]
    assert [v.content for v in step.with_role(Role.CONST)] == ["1.0", "sha256:5f2c"]
    assert step.outputs[gradient_name(0)] == 16
    assert step.nodes[0].reads == (2, 0, 1)
    assert node(1).reads == (1,)


# Attributes in canonical form.

CANONICAL: list[tuple[Any, Any]] = [
    (f32, np.dtype(np.float32)),
    (boolean, np.dtype(bool)),
    (np.float64, np.dtype(np.float64)),
    (bool, np.dtype(bool)),
    (int, np.dtype(np.int64)),
    (np.int64(3), 3),
    (np.float32(0.5), 0.5),
    (np.bool_(True), True),
    ((np.int64(1), (np.int64(2), f64)), (1, (2, np.dtype(np.float64)))),
    (slice(np.int64(1), None, np.int64(-1)), slice(1, None, -1)),
]


@pytest.mark.parametrize(("given", "expected"), CANONICAL)
def test_canonical_attributes(given: Any, expected: Any) -> None:
    made = canonical(given)
    assert repr(made) == repr(expected)
    assert type(made) is type(expected)


@pytest.mark.parametrize("value", UNLIKE)
def test_what_is_canonical_stays_as_it_is(value: Any) -> None:
    assert repr(canonical(value)) == repr(value)


@pytest.mark.parametrize("value", [[0], {}, 1j, b"0", object(), object, str, (1, [2]), slice(1, [2]), np.ones(2)])
def test_what_no_graph_can_hold(value: Any) -> None:
    with pytest.raises(
        IRError, match="^attribute: expected numbers, text, slices, element types or tuples of them, got "
    ):
        canonical(value)


def test_the_attributes_that_a_tape_records() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.ones((3, 4), np.float32))
    made = [
        ops.cast(x, f64), ops.cast(x, i64), ops.cast(x, np.float64), ops.cast(x, "float64"), x[np.int64(1)],
        x[np.int64(0) : 2, ..., None], x[::-1], ops.scale(x, np.float64(0.1)), ops.reduce_sum(x, axis=(0, -1)),
    ]  # fmt: skip
    recorded = [tape.node(v) for v in made]
    nodes = [IRNode(n.id, n.op_name, (0,), (n.id,), {k: canonical(v) for k, v in n.attrs.items()}) for n in recorded]
    graph = IRGraph("attributes", {}, tuple(nodes), {}, {})
    assert IRGraph.parse(str(graph)) == graph
    assert IRGraph.from_json(graph.to_json()) == graph
    assert nodes[5].attrs == {"index": (slice(0, 2, None), ..., None)}
    assert nodes[0].attrs == nodes[2].attrs == {"dtype": np.dtype(np.float64)}
