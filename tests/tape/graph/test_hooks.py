"""Hooks: when they are called, with what, in which order, what they may return."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, GradientError, Tape, TapeError, Var, ops
from dgrr.tape.transforms.symbolic_tape import SymbolicTape
from dgrr.tape.values.spec import Spec

from .reading import values

pytestmark = pytest.mark.quick


def test_a_hook_sees_the_complete_gradient(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    y = x * x
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.item()))
    assert values(tape, y * 2.0 + y * 5.0, x) == [42.0]
    assert seen == [7.0]


def test_a_replacement_takes_the_gradients_place_and_flows_on(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, -2.0])
    y = x * x
    y.register_hook(lambda g: ops.scale(g, 10.0))
    x.register_hook(lambda g: np.clip(g.numpy(), -15.0, 15.0))
    assert values(tape, y.sum(), y, x) == [[10.0, 10.0], [15.0, -15.0]]


def test_every_backward_call_runs_hooks(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    out = x * x
    tape.hook("x" if x.name else x.id, lambda g: ops.neg(g))
    grads = [
        tape.backward(out)[x.id],
        tape.backward_dense(out)[x],
        tape.backward_dense_all(out)[x],
        tape.backward_scalar(out)[x],
        tape.backward_dense_from([None, np.float64(1.0)])[x],
        tape.backward_dense(out, create_graph=True)[x],
    ]
    assert [g.item() for g in grads if g is not None] == [-6.0] * 6


def test_nodes_come_in_decreasing_id_and_hooks_in_the_order_they_were_added(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    y = x * 2.0
    out = y * 3.0
    order: list[Any] = []

    def noted(name: str, factor: float) -> Any:
        def hook(g: Any) -> Any:
            order.append((name, g.item()))
            return ops.scale(g, factor)

        return hook

    for var, name in ((x, "x"), (y, "y"), (out, "out")):
        tape.hook(var, noted(f"{name} first", 10.0))
        tape.hook(var, noted(f"{name} second", 0.5))
    tape.backward_scalar(out)
    assert order == [
        ("out first", 1.0), ("out second", 10.0),
        ("y first", 15.0), ("y second", 150.0),
        ("x first", 150.0), ("x second", 1500.0),
    ]  # fmt: skip


def test_a_hook_that_is_removed_is_not_called(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    out = x * 2.0
    first, second = x.register_hook(lambda g: ops.scale(g, 3.0)), x.register_hook(lambda g: ops.scale(g, 5.0))
    assert values(tape, out, x) == [30.0]
    first.remove()
    first.remove()
    assert values(tape, out, x) == [10.0]
    second.remove()
    assert values(tape, out, x) == [2.0]


def test_a_hook_may_remove_itself_and_add_another(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    out = x * 2.0
    handles: list[Any] = []

    def once(g: Any) -> Any:
        handles[0].remove()
        x.register_hook(lambda g: ops.scale(g, 7.0))
        return ops.scale(g, 100.0)

    handles.append(x.register_hook(once))
    assert values(tape, out, x) == [200.0]
    assert values(tape, out, x) == [14.0]


def test_no_hook_where_no_gradient_arrives(tape: Tape[Any]) -> None:
    x, unused = tape.leaf(1.0), tape.leaf(1.0)
    calls: list[Any] = []
    unused.register_hook(calls.append)
    tape.backward_dense_all(x * x)
    assert calls == []


def test_under_create_graph_hooks_get_vars_and_are_differentiated(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    seen: list[Any] = []

    def squared(g: Any) -> Any:
        seen.append(g)
        return g * g

    handle = x.register_hook(squared)
    first = tape.backward_dense(x * x, create_graph=True)[x]
    handle.remove()
    assert isinstance(seen[0], Var)
    assert isinstance(first, Var)
    assert first.item() == 36.0  # (2 x) ** 2, whose derivative is 8 x
    assert values(tape, first, x) == [24.0]


def test_under_create_graph_a_tensor_becomes_a_constant(tape: Tape[Any]) -> None:
    x = tape.leaf(3.0)
    x.register_hook(lambda g: np.array(4.0))
    gradient = tape.backward_dense(x * x, create_graph=True)[x]
    assert isinstance(gradient, Var)
    assert (gradient.item(), tape.node(gradient).requires_grad) == (4.0, False)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (np.ones(3), "expected None or a gradient of shape (2,) and float64, got shape (3,) and float64"),
        (np.ones(2, np.float32), "expected None or a gradient of shape (2,) and float64, got shape (2,) and float32"),
        (1.0, "expected None or a gradient of shape (2,) and float64, got shape () and float64"),
        ("text", "expected float32, float64, an integer type or bool, got <U4; convert with .astype first"),
    ],
)
def test_replacements_that_do_not_fit(tape: Tape[Any], wrong: Any, text: str) -> None:
    x = tape.leaf([1.0, 2.0], name="x")
    x.register_hook(lambda g: wrong)
    with pytest.raises(GradientError) as caught:
        tape.backward_dense(x.sum())
    assert str(caught.value) == f"hook of node 0 (leaf 'x'): {text}"


def test_a_var_of_another_tape_is_refused(tape: Tape[Any]) -> None:
    other, x = Tape[Any]().leaf(1.0), tape.leaf(1.0)
    x.register_hook(lambda g: other)
    with pytest.raises(TapeError, match="^expected a Var of"):
        tape.backward_dense(x * x, create_graph=True)


def test_nodes_that_cannot_be_hooked(tape: Tape[Any]) -> None:
    x, c = tape.leaf([1.0]), tape.const([1.0], name="c")
    text = r"^hook: node 1 \(leaf 'c'\) requires no gradient, so none arrives; hook a node that depends on a parameter$"
    with pytest.raises(GradientError, match=text):
        c.register_hook(lambda g: None)
    with pytest.raises(GradientError, match=r"^hook: node 2 \(less\) requires no gradient"):
        (x < c).register_hook(lambda g: None)
    with pytest.raises(TapeError, match=r"^node: expected an id from 0 to 2, got 9"):
        tape.hook(9, lambda g: None)


def test_reset_forgets_hooks(tape: Tape[Any]) -> None:
    handle = tape.leaf(1.0).register_hook(lambda g: ops.scale(g, 9.0))
    tape.reset()
    x = tape.leaf(1.0)
    assert values(tape, x * 2.0, x) == [2.0]
    handle.remove()


def test_a_step_that_is_recorded_has_no_hooks() -> None:
    tape = SymbolicTape()
    w = tape.symbol(Spec((2,), np.dtype(np.float64)), "w", requires_grad=True)
    with pytest.raises(TapeError) as caught:
        w.register_hook(lambda g: None)
    assert str(caught.value) == (
        "hook: node 0 (leaf 'w') was made while the step is being recorded: a captured step holds ops, not values, so "
        "it runs no Python and takes ops in the function instead; write the change of the gradient as ops, or run the "
        "step eagerly"
    )


def test_hooks_get_tensors_outside_create_graph(tape: Tape[Any]) -> None:
    x = tape.leaf(1.0)
    kinds: list[type] = []
    x.register_hook(lambda g: kinds.append(type(g)))
    tape.backward_dense(x * x, seed=tape.const(1.0))
    assert kinds == [AnyTensor]
