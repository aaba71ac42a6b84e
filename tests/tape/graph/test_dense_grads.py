"""Gradients as a mapping and as a table."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, Tape, TapeError

pytestmark = pytest.mark.quick


def test_gradients_by_name(tape: Tape[Any]) -> None:
    w, b = tape.param([1.0, 2.0], name="w"), tape.param([1.0, 2.0], name="b")
    grads = tape.backward_dense((w * b).sum())
    assert grads["w"] is grads[w]
    tape.leaf(1.0, name="later")
    with pytest.raises(TapeError, match=r"^name 'later': expected one node of that name, got no node"):
        _ = grads["later"]


def test_gradients_of_nodes_they_do_not_have(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    grads = tape.backward_dense(x * x)
    later, foreign = tape.leaf(1.0), Tape[Any]().leaf(1.0)
    for key in (2, -1, later):
        with pytest.raises(TapeError, match=r"^gradients: expected a node id from 0 to 1, got (2|-1)$"):
            _ = grads[key]
    with pytest.raises(TapeError, match=r"^expected a Var of"):
        _ = grads[foreign]
    tape.reset()
    with pytest.raises(TapeError, match="the tape was reset since"):
        _ = grads[x]


def test_table_of_gradients(tape: Tape[Any]) -> None:
    x = tape.param([3.0, -4.0, 0.0, 1.0], name="x")
    out = (x * np.array([3.0, -4.0, 0.0, np.inf])).sum()
    table = tape.backward_dense(out).table()
    assert dict(next(iter(table))) == {
        "id": 0, "name": "x", "op": "leaf", "shape": (4,),
        "norm": 5.0, "min": -4.0, "max": 3.0, "zeros": 1, "non-finite": 1,
    }  # fmt: skip
    assert [row["op"] for row in table] == ["leaf", "mul", "reduce_sum"]
    for word in ("norm", "non-finite", "reduce_sum", "-4"):
        assert word in str(table)


def several(tape: Tape[Any]) -> Any:
    """Gradients of norms 3, 1, 2 and 6 for leaves, one of them with an infinity and without a name."""
    leaves = [tape.leaf(1.0, name=name) for name in ("enc.b", "enc.a", "dec.a")]
    out = leaves[0] * 3.0 + leaves[1] * 1.0 + leaves[2] * 2.0
    spoiled = tape.leaf([1.0, 1.0])
    return tape.backward_dense(out + (spoiled * np.array([6.0, np.inf])).sum())


def test_a_table_begins_with_the_greatest_statistic(tape: Tape[Any]) -> None:
    grads = several(tape)
    norms = [row["norm"] for row in grads.table("norm", op="leaf")]
    assert norms == [6.0, 3.0, 2.0, 1.0]
    assert [row["norm"] for row in grads.table(op="leaf")] == [3.0, 1.0, 2.0, 6.0]
    assert [row["norm"] for row in grads.table(op="leaf").sorted("norm")] == norms[::-1]
    assert [row["non-finite"] for row in grads.table("non-finite", op="leaf")] == [1, 0, 0, 0]


def test_a_table_by_name_or_id_goes_upwards_and_rows_without_a_name_come_last(tape: Tape[Any]) -> None:
    grads = several(tape)
    assert [row["name"] for row in grads.table("name", op="leaf")] == ["dec.a", "enc.a", "enc.b", None]
    assert [row["id"] for row in grads.table("id")] == sorted(row["id"] for row in grads.table())


def test_a_table_of_some_nodes(tape: Tape[Any]) -> None:
    grads = several(tape)
    assert [row["name"] for row in grads.table(name="enc.*")] == ["enc.b", "enc.a"]
    assert {row["op"] for row in grads.table(op="m*")} == {"mul"}
    assert [row["op"] for row in grads.table(nonfinite=True)] == ["leaf"]
    assert [row["name"] for row in grads.table("norm", op="leaf", name="*.a")] == ["dec.a", "enc.a"]
    assert len(grads.table(name="nothing")) == 0


def test_a_column_that_is_not_there(tape: Tape[Any]) -> None:
    with pytest.raises(DomainError) as caught:
        several(tape).table("size")
    assert str(caught.value) == (
        "table: argument 'sort': expected one of id, name, op, shape, norm, min, max, zeros, non-finite, got 'size'"
    )
