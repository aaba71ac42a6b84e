"""Two tapes and two sets of gradients: the first difference, to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyVar, Tape, compare_grads, compare_tapes, ops

pytestmark = pytest.mark.quick


def model(tape: Tape[Any], w: Any, factor: float = 2.0) -> AnyVar:
    x = tape.const(np.array([1.0, 2.0], np.float32), name="x")
    return ops.scale(x * tape.param(w, name="w"), factor).sum()


def pair(*args: tuple[Any, ...]) -> tuple[Tape[Any], Tape[Any]]:
    tapes = Tape[Any](), Tape[Any]()
    for tape, given in zip(tapes, args, strict=True):
        model(tape, *given)
    return tapes


W = np.array([0.5, 0.1], np.float32)
MOVED = np.nextafter(W, np.array([0.5, 1.0], np.float32))


def test_equal_tapes_and_gradients() -> None:
    a, b = pair((W,), (W,))
    assert compare_tapes(a, b) is None
    assert compare_tapes(a, a) is None
    assert compare_grads(a.backward_dense(4), b.backward_dense(4)) is None


def test_the_first_element_that_differs() -> None:
    found = compare_tapes(*pair((W,), (MOVED,)))
    assert found is not None
    assert (found.id, found.op, found.name, found.what, found.index, found.ulps) == (1, "leaf", "w", "value", (1,), 1)
    assert (found.a, found.b) == (W[1], MOVED[1])
    assert str(found) == (
        "node 1 (leaf 'w'): value, element [1]: 0.1 (0x1.99999a0000000p-4, bits 3dcccccd) against "
        "0.10000001 (0x1.99999c0000000p-4, bits 3dccccce), 1 ULP apart"
    )


def test_values_that_compare_equal_but_are_not() -> None:
    zero = np.zeros(2, np.float32)
    found = compare_tapes(*pair((zero,), (-zero,)))
    assert found is not None
    assert (found.index, found.ulps) == ((0,), 0)
    assert "0.0 (0x0.0p+0, bits 00000000) against -0.0 (-0x0.0p+0, bits 80000000), 0 ULP apart" in str(found)
    one, other = np.array([np.nan, 1.0], np.float32), np.array([-np.nan, 1.0], np.float32)
    assert one.tobytes() != other.tobytes()
    assert compare_tapes(*pair((one,), (other,))) is None


def test_integers() -> None:
    a, b = Tape[Any](), Tape[Any]()
    a.const([[1, 2], [3, 4]])
    b.const([[1, 2], [5, 4]])
    found = compare_tapes(a, b)
    assert str(found) == "node 0 (leaf): value, element [1, 0]: 3 against 5"


BUILDS: list[tuple[Callable[[AnyVar], Any], Callable[[AnyVar], Any], str]] = [
    (lambda x: x.exp(), lambda x: x.tanh(), "node 1 (exp): op: exp against tanh"),
    (
        lambda x: ops.scale(x, 0.0),
        lambda x: ops.scale(x, -0.0),
        "node 1 (scale): attributes: {'c': 0.0} against {'c': -0.0}",
    ),
    (lambda x: (x.exp(), x.exp()), lambda x: x.exp().exp(), "node 2 (exp): parents: (0,) against (1,)"),
    (lambda x: x[:1], lambda x: x[:0], "node 1 (getitem): attributes:"),
    (lambda x: x.exp(), lambda x: None, "node 1 (exp): the node: one against none"),
    (lambda x: None, lambda x: x.exp(), "node 1 (exp): the node: none against one"),
]


@pytest.mark.parametrize(("left", "right", "text"), BUILDS, ids=[text for *_, text in BUILDS])
def test_nodes_that_are_made_differently(left: Any, right: Any, text: str) -> None:
    a, b = Tape[Any](), Tape[Any]()
    left(a.leaf([1.0, 2.0]))
    right(b.leaf([1.0, 2.0]))
    assert str(compare_tapes(a, b)).startswith(text)


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (np.ones(2), np.ones(3), "node 0 (leaf): shape: (2,) against (3,)"),
        (np.ones(2), np.ones(2, np.float32), "node 0 (leaf): dtype: float64 against float32"),
    ],
)
def test_leaves_that_differ(left: Any, right: Any, text: str) -> None:
    a, b = Tape[Any](), Tape[Any]()
    a.leaf(left)
    b.leaf(right)
    assert str(compare_tapes(a, b)) == text


def test_gradients_are_compared_from_the_loss_down() -> None:
    """Both inner gradients differ; the scale's own is where it began."""
    a, b = Tape[Any](), Tape[Any]()
    for tape in (a, b):
        x = tape.leaf([1.0, 2.0])
        ops.scale(ops.scale(x, 3.0), 2.0)
    one, other = a.backward_dense(2, np.ones(2)), b.backward_dense(2, np.array([1.0, np.nextafter(1.0, 2.0)]))
    found = compare_grads(one, other)
    assert found is not None
    assert (found.id, found.what, found.index, found.ulps) == (2, "gradient", (1,), 1)
    assert str(found).startswith("node 2 (scale): gradient, element [1]: 1.0 (0x1.0000000000000p+0, bits 3ff00")


def test_a_gradient_that_only_one_has() -> None:
    a, b = pair((W,), (W,))
    one, other = a.backward_dense(4), b.backward_dense_from([None, np.ones(2, np.float32), None, None, None])
    assert str(compare_grads(one, other)) == "node 4 (reduce_sum): gradient: one against none"


def test_gradients_of_tapes_that_are_made_differently() -> None:
    a, b = pair((W,), (W, 3.0))
    found = compare_grads(a.backward_dense(4), b.backward_dense(4))
    assert str(found) == "node 3 (scale): attributes: {'c': 2.0} against {'c': 3.0}"


def test_recorded_gradients_are_compared_by_value() -> None:
    a, b = pair((W,), (W,))
    assert compare_grads(a.backward_dense(4, create_graph=True), b.backward_dense(4)) is None
