"""The graph: colours by gradient, scopes drawn as one, a large graph that stays readable."""

import re
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyVar, DomainError, Tape, TapeError, nn, ops

pytestmark = pytest.mark.quick


def boxes(text: str) -> dict[str, str]:
    """The label of every node that is drawn, and its other attributes."""
    return {m[1]: m[2] for m in re.finditer(r'^  n\d+ \[label="(.*?)"(.*)\];$', text, re.MULTILINE)}


def colours(text: str) -> dict[str, str]:
    return {label: rest.rpartition('"#')[2].strip('"') for label, rest in boxes(text).items() if "fillcolor" in rest}


def test_colours_go_from_white_to_red_with_the_logarithm_of_the_norm(tape: Tape[Any]) -> None:
    a, b, c = (tape.leaf(1.0, name=name) for name in "abc")
    unused, dead = tape.leaf(1.0, name="unused"), tape.leaf(1.0, name="dead")
    out = ops.scale(a, 1e4) + ops.scale(b, 1e2) + c + ops.scale(dead, 0.0)
    _ = unused
    text = tape.to_dot(tape.backward_dense(out))
    assert '  label="gradient norm: white 1, red 1e+04; blue zero, magenta non-finite";' in text
    found = {label.split(r"\n")[0].split(": ")[1]: colour for label, colour in colours(text).items()}
    assert {name: found.get(name) for name in ("a", "b", "c", "dead", "unused")} == {
        "a": "ff0000", "b": "ff8080", "c": "ffffff", "dead": "9ecae1", "unused": None,
    }  # fmt: skip


def test_gradients_that_are_not_finite_have_their_own_colour(tape: Tape[Any]) -> None:
    x, y = tape.leaf([1.0, 2.0], name="x"), tape.leaf([1.0, 1.0], name="y")
    text = tape.to_dot(tape.backward_dense((x * y * np.array([np.nan, 1.0])).sum()))
    assert colours(text)[r"0: x\n(2,)"] == "ff00ff"


def test_one_norm_alone_is_red(tape: Tape[Any]) -> None:
    x = tape.leaf(2.0)
    assert set(colours(tape.to_dot(tape.backward_dense(x.sum()))).values()) == {"ff0000"}


def test_gradients_of_more_nodes_are_refused(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    grads = tape.backward_dense(x * x)
    tape.reset()
    tape.leaf(1.0)
    with pytest.raises(TapeError, match="^to_dot: argument 'grads': expected gradients of 1 nodes, got 2$"):
        tape.to_dot(grads)


def test_nodes_after_the_gradients_are_drawn_without_colour(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    grads = tape.backward_dense(x * x)
    _ = x.exp()
    assert len(boxes(tape.to_dot(grads))) == 3
    assert len(colours(tape.to_dot(grads))) == 2


def test_scopes_nest_and_end(tape: Tape[Any]) -> None:
    with tape.scope("a"):
        x = tape.leaf(1.0)
        with tape.scope("b"):
            y = x * 2.0
        with pytest.raises(ZeroDivisionError), tape.scope("c"):
            raise ZeroDivisionError
        z = y.exp()
    end = z + 1.0
    assert [tape.node(v).scope for v in (x, y, z, end)] == ["a", "a.b", "a", ""]


def encoder(tape: Tape[Any]) -> AnyVar:
    x = tape.const([1.0], name="x")
    with tape.scope("encoder"):
        with tape.scope("one"):
            h = x.exp() * x
        with tape.scope("two"):
            h = h.tanh()
    return h


def test_scopes_are_drawn_as_one(tape: Tape[Any]) -> None:
    encoder(tape)
    assert tape.to_dot(collapse=1).splitlines() == [
        "digraph tape {",
        "  node [shape=ellipse];",
        r'  n0 [label="0: x\n(1,)", shape=box];',
        r'  n1 [label="encoder\n(1,) -> (1,)\n3 nodes", shape=box3d];',
        "  n0 -> n1;",
        "}",
    ]
    inside = [r"encoder.one\n(1,) -> (1,)\n2 nodes", r"encoder.two\n(1,) -> (1,)\n1 node"]
    assert list(boxes(tape.to_dot(collapse=2))) == [r"0: x\n(1,)", *inside]
    assert tape.to_dot(collapse=9) == tape.to_dot(collapse=2)
    assert len(boxes(tape.to_dot())) == 4


def test_a_scope_has_the_colour_of_its_greatest_norm(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0, name="x")
    with tape.scope("s"):
        y = ops.scale(ops.scale(x, 0.01), 100.0)  # gradients 1000 and 10
    with tape.scope("loss"):
        loss = ops.scale(y, 10.0)
    text = tape.to_dot(tape.backward_dense(loss), collapse=1)
    assert "white 1, red 1000;" in text
    assert colours(text) == {
        r"0: x\n()": "ffaaaa",
        r"s\n() -> ()\n2 nodes\n|g| 1000": "ff0000",
        r"loss\n() -> ()\n1 node\n|g| 1": "ffffff",
    }


def test_layers_are_scopes_by_their_names(tape: Tape[Any]) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    p, x = tape.params(model.init(seed=0)), tape.const(np.ones((1, 2), np.float32), name="x")
    ops.scale(model(p, x), 2.0).sum()
    assert list(boxes(tape.to_dot(collapse=1))) == [
        r"0: Linear\n(1, 2) -> (1, 3)\n3 nodes, 9 parameters",
        r"2: Linear\n(1, 3) -> ()\n5 nodes, 8 parameters",
        r"4: x\n(1, 2)",
        r"1: ReLU\n(1, 3) -> (1, 3)\n1 node",
    ]


def test_a_box_of_a_layer_has_the_largest_norm_inside_it(tape: Tape[Any]) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    p, x = tape.params(model.init(seed=0)), tape.const(np.full((1, 2), 3.0, np.float32), name="x")
    loss = ops.scale(model(p, x), 2.0).sum()
    first, _ = boxes(tape.to_dot(tape.backward_dense(loss), collapse=1))
    assert first == r"0: Linear\n(1, 2) -> ()\n5 nodes, 6 parameters\n|g| 12"  # of the weight: 4 elements of 2 * 3


def test_many_shapes_are_not_all_listed(tape: Tape[Any]) -> None:
    with tape.scope("leaves"):
        leaves = [tape.leaf(np.ones(n)) for n in range(1, 6)]
    with tape.scope("sums"):
        _ = [x.sum() for x in leaves]
    first, _ = boxes(tape.to_dot(collapse=1))
    assert first == r"leaves\n(1,), (2,), (3,), …\n5 nodes, 15 parameters"


def test_a_reset_tape_has_no_layers(tape: Tape[Any]) -> None:
    for kind in ("Mine", ""):
        with tape.scope("s", kind):
            tape.leaf(1.0)
        assert list(boxes(tape.to_dot(collapse=1))) == [f"s{': Mine' if kind else ''}" + r"\n()\n1 node, 1 parameter"]
        tape.reset()


def test_constants_belong_to_the_op_that_uses_them(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0, name="x")
    with tape.scope("s"):
        y = x * 2.0
    _ = y * 3.0
    assert list(boxes(tape.to_dot(collapse=1))) == [r"0: x\n()", r"s\n() -> ()\n4 nodes"]


def test_two_thousand_nodes_stay_readable(tape: Tape[Any]) -> None:
    h: Any = tape.leaf(np.ones(2), name="x")
    for block in range(25):
        with tape.scope(f"encoder.{block}"):
            for _ in range(80):
                h = ops.scale(h, 1.0)
    loss = h.sum()
    grads = tape.backward_dense(loss)
    assert len(tape) > 2000
    assert len(boxes(tape.to_dot(grads))) == len(tape)
    assert len(boxes(tape.to_dot(grads, collapse=2))) == 1 + 25
    assert len(boxes(tape.to_dot(grads, collapse=1))) == 2


def test_two_thousand_nodes_of_layers_stay_readable(tape: Tape[Any]) -> None:
    """Names of parameters alone are enough: 40 layers of 50 nodes, and the batch."""
    h: Any = tape.const(np.ones((1, 4)), name="x")
    for layer in range(40):
        w = tape.param(np.eye(4), name=f"{layer}.weight")
        h = h @ w
        for _ in range(48):
            h = ops.relu(h)
    h.sum()
    assert len(tape) == 2 + 40 * 50
    assert len(boxes(tape.to_dot(collapse=1))) < 60


def test_names_are_quoted(tape: Tape[Any]) -> None:
    tape.leaf(1.0, name='a\\b"c')
    assert r'label="0: a\\b\"c\n()"' in tape.to_dot()


def test_a_collapse_that_leaves_nothing(tape: Tape[Any]) -> None:
    with pytest.raises(DomainError) as caught:
        tape.to_dot(collapse=0)
    assert str(caught.value) == "to_dot: argument 'collapse': expected at least 1 part of a scope's name to keep, got 0"
