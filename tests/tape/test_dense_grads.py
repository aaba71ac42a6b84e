"""Gradients as a mapping and as a table."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, TapeError


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
