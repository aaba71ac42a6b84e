"""The way from a node to the loss, or why no gradient comes back along it."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import GradientError, Tape, TapeError, ops

pytestmark = pytest.mark.quick


def test_the_path_with_norms(tape: Tape[Any]) -> None:
    x = tape.leaf([3.0, 4.0], name="x")
    aside = x * 7.0
    y = ops.scale(x, 2.0)
    z = y * y
    loss = z.sum()
    _ = aside
    table = tape.explain("x", tape.backward_dense(loss))
    assert table.title == f"from node 0 (leaf 'x') to node {loss.id} (reduce_sum)"
    assert table.columns == ("id", "name", "op", "shape", "from", "value", "gradient", "line")
    rows = table.to_dicts()
    assert [row["id"] for row in rows] == [x.id, y.id, z.id, loss.id]
    assert [row["from"] for row in rows] == ["", str(x.id), str(y.id), str(z.id)]
    assert [row["op"] for row in rows] == ["leaf", "scale", "mul", "reduce_sum"]
    assert [row["value"] for row in rows] == pytest.approx([5.0, 10.0, np.hypot(36, 64), 100.0])
    assert [row["gradient"] for row in rows] == pytest.approx([40.0, 20.0, np.sqrt(2), 1.0])
    assert rows[2]["line"].endswith(": z = y * y")


def test_every_path_is_shown(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    left, right = x.exp(), x.tanh()
    loss = left * right
    table = tape.explain(x)
    assert [(row["id"], row["from"]) for row in table] == [
        (x.id, ""), (left.id, "0"), (right.id, "0"), (loss.id, f"{left.id}, {right.id}"),
    ]  # fmt: skip
    assert [row["id"] for row in tape.explain(right)] == [right.id, loss.id]
    assert [row["id"] for row in tape.explain(loss)] == [loss.id]


def test_a_long_chain(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    y = x
    for _ in range(5000):
        y = ops.scale(y, 1.0)
    assert len(tape.explain(x)) == 5001


def title(tape: Tape[Any], key: Any) -> str:
    return tape.explain(key).title


def test_why_no_gradient_arrives(tape: Tape[Any]) -> None:
    x, c = tape.leaf([1.0, 2.0], name="x"), tape.const([3.0, 4.0], name="c")
    labels, unused = tape.const([1, 0]), tape.leaf(1.0, name="unused")
    doubled, mask = ops.scale(c, 2.0), x < c
    taken = ops.take(x, labels)
    loss = (ops.where(mask, taken, doubled)).sum()
    said = "no gradient arrives at"
    assert title(tape, unused) == (
        f"{said} node 3 (leaf 'unused'): node {loss.id} (reduce_sum), the loss, does not depend on it"
    )
    assert title(tape, c) == f"{said} node 1 (leaf 'c'): it was made not to require one"
    assert title(tape, labels) == f"{said} node 2 (leaf): int64 has no gradient"
    assert title(tape, mask) == f"{said} node {mask.id} (less): bool has no gradient"
    assert title(tape, doubled) == f"{said} node {doubled.id} (scale): it depends on no leaf that requires one"
    assert [row["id"] for row in tape.explain(unused)] == [3]
    assert [row["id"] for row in tape.explain(c)] == [c.id, doubled.id, mask.id, loss.id - 1, loss.id]
    assert tape.explain(c).to_dicts()[0]["gradient"] is None


def test_an_op_in_between_that_has_no_gradient(tape: Tape[Any]) -> None:
    x, w = tape.leaf([1.0, 2.0], name="x"), tape.leaf([1.0, 1.0], name="w")
    y = x.exp()
    mask = y > 2.0
    loss = ops.where(mask, w, ops.scale(w, 2.0)).sum()
    for key in (x, y):
        node = tape.node(key)
        assert title(tape, key) == (
            f"no gradient arrives at {node.title}: nothing comes back through node {mask.id} (greater), "
            "which has no gradient there"
        )
    assert [row["id"] for row in tape.explain(x)][:3] == [x.id, y.id, mask.id]
    assert tape.explain(x).to_dicts()[-1]["id"] == loss.id


def test_a_loss_that_depends_on_nothing_trainable(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0, name="x")
    mask = x > 0.5
    loss = ops.cast(mask, "float64")
    assert title(tape, x) == (
        "no gradient arrives at node 0 (leaf 'x'): nothing comes back through "
        f"node {mask.id} (greater), which has no gradient there"
    )
    assert [row["id"] for row in tape.explain(x)] == [x.id, mask.id, loss.id]


def test_what_cannot_be_explained(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0])
    y = x * 2.0
    with pytest.raises(GradientError) as caught:
        tape.explain(x)
    assert str(caught.value) == (
        "explain: expected the last node to be a scalar loss, got node 2 (mul) of shape (2,); "
        "give grads=tape.backward_dense(out, seed)"
    )
    assert len(tape.explain(x, tape.backward_dense(y, np.ones(2)))) == 2
    with pytest.raises(GradientError) as caught:
        tape.explain(x, tape.backward_dense_from([None] * 3))
    assert str(caught.value) == "explain: argument 'grads': expected the gradients of a loss, got none at any node"
    with pytest.raises(TapeError, match="^node: expected an id from 0 to 2, got 7$"):
        tape.explain(7)
