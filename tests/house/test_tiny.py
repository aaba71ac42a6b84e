"""A tour of the library in one page: build, differentiate, inspect, be told what is wrong."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyVar, DTypeError, GradientError, ShapeError, Tape, TapeError, ops

pytestmark = pytest.mark.quick

x = np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], np.float32)
labels = np.array([0, 2, 1])


def model(tape: Tape[Any], w: np.ndarray) -> AnyVar:
    """The loss of a linear classifier of three samples into three classes."""
    logits = ops.linear(tape.const(x, name="x"), tape.param(w, name="w"))
    return ops.cross_entropy(logits, tape.const(labels, name="labels"))


def test_a_loss_is_a_number() -> None:
    assert model(Tape(), np.zeros((3, 2), np.float32)).item() == pytest.approx(np.log(3))


def test_the_gradient_of_every_node() -> None:
    tape: Tape[Any] = Tape()
    loss = model(tape, np.zeros((3, 2), np.float32))
    grads = tape.backward_dense(loss)
    error = np.full((3, 3), 1 / 3) - np.eye(3)[labels]  # softmax(logits) - onehot(labels)
    np.testing.assert_allclose(grads["w"], error.T @ x / 3, atol=1e-7)  # type: ignore[arg-type]
    np.testing.assert_allclose(grads[2], error / 3, atol=1e-7)  # type: ignore[arg-type]  # the logits
    assert grads["x"] is None
    assert grads["labels"] is None


def test_gradient_descent_learns() -> None:
    w: Any = np.zeros((3, 2), np.float32)
    losses = []
    for _ in range(20):
        tape: Tape[Any] = Tape()
        loss = model(tape, w)
        losses.append(loss.item())
        g = tape.backward_dense(loss)["w"]
        assert g is not None
        w = w - np.float32(0.5) * g.numpy()
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.6


def test_the_same_bits_every_time() -> None:
    def gradient() -> bytes:
        tape: Tape[Any] = Tape()
        g = tape.backward_dense(model(tape, np.full((3, 2), 0.1, np.float32)))["w"]
        assert g is not None
        return g.numpy().tobytes()

    assert gradient() == gradient()


def test_operators_and_methods_are_the_ops() -> None:
    tape: Tape[Any] = Tape()
    a, b = tape.leaf([[1.0, 2.0], [3.0, 4.0]]), tape.leaf([1.0, -10.0])
    y = (a @ a.T + b).relu().sum()
    assert y.item() == 6 + 1 + 12 + 15
    assert [node.op_name for node in tape][2:] == [
        "transpose2d", "matmul", "broadcast_to", "add", "relu", "reduce_sum"
    ]  # fmt: skip


def test_second_derivatives() -> None:
    tape: Tape[Any] = Tape()
    a = tape.leaf(2.0)
    first = tape.backward_scalar(a**3, create_graph=True)[a]
    assert first is not None
    second = tape.backward_scalar(first)[a]
    assert second is not None
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_tables_to_look_at() -> None:
    tape: Tape[Any] = Tape()
    loss = model(tape, np.zeros((3, 2), np.float32))
    assert [row["op"] for row in tape.summary()] == ["leaf", "leaf", "linear", "leaf", "cross_entropy"]
    assert [row["name"] for row in tape.backward_dense(loss).table()] == ["w", None, None]
    assert "cross_entropy" in tape.to_dot()


def test_errors_say_what_to_do() -> None:
    tape: Tape[Any] = Tape()
    a, b = tape.leaf(np.ones((2, 3))), tape.leaf(np.ones((4, 5)))
    with pytest.raises(ShapeError, match=r"matmul: argument 'b': expected shape \(3, N\), got \(4, 5\)"):
        _ = a @ b
    with pytest.raises(DTypeError, match=r"add: argument 'a': expected float32, got float64; convert with ops.cast"):
        _ = a + np.ones((2, 3), np.float32)
    with pytest.raises(GradientError, match=r"expected a scalar, got shape .*; reduce it first, or give seed="):
        tape.backward_dense(a * a)
    tape.reset()
    with pytest.raises(TapeError, match="the tape was reset since; make its leaves again"):
        _ = a * a
