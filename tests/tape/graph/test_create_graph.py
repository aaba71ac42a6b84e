"""Derivatives of derivatives: backward passes that are recorded on the tape."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyVar, Tape

from .reading import values

pytestmark = pytest.mark.quick


def derivatives(tape: Tape[Any], x: AnyVar, y: AnyVar, order: int) -> list[float]:
    """The first derivatives of y by x."""
    found = []
    for _ in range(order):
        g = tape.backward_scalar(y, create_graph=True)[x]
        assert g is not None
        found.append(float(g))
        y = g
    return found


def test_third_derivative_of_a_polynomial(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    assert derivatives(tape, x, x**4, 4) == [4 * 27.0, 12 * 9.0, 24 * 3.0, 24.0]
    assert derivatives(tape, x, x * x * x, 3) == [27.0, 18.0, 6.0]


def test_third_derivative_of_exp_and_tanh(tape: Tape[Any]) -> None:
    x = tape.leaf(0.7)
    y = x.exp()
    assert derivatives(tape, x, y, 3) == [y.item()] * 3
    t = np.tanh(0.7)
    expected = [1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2)]
    np.testing.assert_allclose(derivatives(tape, x, x.tanh(), 3), expected, rtol=1e-13)


def test_create_graph_records_vars_on_the_same_tape(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 2.0])
    out = (x * x * x).sum()
    before = len(tape)
    grads = tape.backward_dense(out, create_graph=True)
    assert len(grads) == before < len(tape)
    g = grads[x]
    assert g is not None
    assert g.tape is tape
    second = tape.backward_scalar(g.sum())[x]
    assert second is not None
    assert second.numpy().tolist() == [6.0, 12.0]


def test_create_graph_differentiates_by_the_seed(tape: Tape[Any]) -> None:
    x, u = tape.leaf([1.0, 2.0]), tape.leaf([5.0, 7.0])
    g = tape.backward_dense(x * x, u, create_graph=True)[x]
    assert g is not None
    assert values(tape, g.sum(), u, x) == [[2.0, 4.0], [10.0, 14.0]]


def test_create_graph_of_the_other_calls(tape: Tape[Any]) -> None:
    x = tape.leaf(2.0)
    y = x * x
    g = tape.backward(y, create_graph=True)[x.id]
    assert values(tape, g, x) == [2.0]
    g_from = tape.backward_dense_from([None, 1.0, *[None] * (len(tape) - 2)], create_graph=True)[x]
    assert g_from is not None
    assert values(tape, g_from, x) == [2.0]
