"""A value through which no gradient flows, in every mode."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, capture
from dgrr.runtime.step.evaluate import gradients
from dgrr.tape import Tape, jvp, ops

X = np.array([1.0, -2.0, 3.0])


def half_square(x: Any) -> Any:
    """Of value x², and of slope x as if one factor were a number."""
    return (x * x.detach()).sum()


def test_the_value_is_not_copied_and_is_a_constant() -> None:
    tape: Tape[Any] = Tape()
    x = tape.param(X, name="x")
    for made in (ops.stop_gradient(x), x.detach()):
        assert np.shares_memory(made.numpy(), x.numpy())
        assert not tape.node(made).requires_grad
        np.testing.assert_array_equal(made.numpy(), X)


@pytest.mark.parametrize("create_graph", [False, True])
def test_no_gradient_flows(create_graph: bool) -> None:
    tape: Tape[Any] = Tape()
    x = tape.param(X, name="x")
    grads = tape.backward_dense(half_square(x), create_graph=create_graph)
    np.testing.assert_array_equal(grads[x].numpy(), X)


def test_nor_one_of_second_order() -> None:
    tape: Tape[Any] = Tape()
    x = tape.param(X, name="x")
    slope = tape.backward_dense((x * x * x.detach()).sum(), create_graph=True)[x]
    second = tape.backward_scalar(slope.sum())[x]
    assert second is not None
    np.testing.assert_array_equal(second.numpy(), 2 * X)  # of 2 x c, not of 2 x²


def test_nor_a_tangent() -> None:
    _, tangent = jvp(half_square, [X], [np.ones(3)])
    np.testing.assert_array_equal(tangent.array, X.sum())


def test_captured_as_eager() -> None:
    params = {"w": X}

    def loss_fn(p: Any, batch: Any) -> Any:
        return half_square(p["w"] * batch)

    step = capture(loss_fn, params, SGD(0.5), np.ones(3))
    _, eager = gradients(loss_fn, params, np.ones(3))
    step(np.ones(3))
    np.testing.assert_array_equal(eager["w"], X)
    np.testing.assert_array_equal(step.params["w"], X - 0.5 * X)


def test_a_loss_behind_it_depends_on_nothing() -> None:
    tape: Tape[Any] = Tape()
    x = tape.param(X, name="x")
    with pytest.raises(Exception, match="depends on no"):
        tape.backward_scalar(x.detach().sum())


def test_integers_pass() -> None:
    assert Tape[Any]().const(np.arange(3)).detach().numpy().tolist() == [0, 1, 2]


def test_a_captured_step_is_verified_with_it() -> None:
    """The finite differences of the verification hold what is a constant to gradients."""

    def loss_fn(p: Any, batch: Any) -> Any:
        return (p["a"].tanh().detach() * p["b"] * batch + p["a"]).sum()

    report = capture(loss_fn, {"a": X, "b": X}, SGD(0.5), np.ones(3)).verify(2)
    assert report.ok, report
