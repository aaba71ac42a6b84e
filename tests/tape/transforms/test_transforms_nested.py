"""Transforms inside transforms and on a user's tape."""

from typing import Any

import numpy as np

from dgrr.tape import Tape, Var, grad, hvp, jacobian, jvp, ops, value_and_grad, vjp

from .functions import V, X, Y, close, rosenbrock, total, total_curvature, total_slope


def test_third_derivatives() -> None:
    f = grad(grad(grad(lambda x: x**4)))
    assert f(3.0).item() == 72.0
    assert f.__name__ == "grad(grad(grad(<lambda>)))"
    close(jvp(grad(grad(ops.exp)), (0.5,), (2.0,))[1], 2 * np.exp(0.5))


def test_reverse_over_forward_is_forward_over_reverse() -> None:
    product = grad(lambda x: jvp(rosenbrock, (x,), (V,))[1])(X)
    close(product, hvp(rosenbrock, (X,), (V,))[0], rtol=1e-11)
    close(jvp(lambda x: jvp(rosenbrock, (x,), (V,))[1], (X,), (V,))[1], V @ product.numpy(), rtol=1e-11)


def test_derivatives_by_tangents_and_cotangents() -> None:
    close(grad(lambda v: jvp(total, (X,), (v,))[1])(V), total_slope(X))
    close(grad(lambda u: (vjp(lambda x: x * x, u.tape.const(X))[1](u)[0] * V).sum())(Y), 2 * X * V)


def test_an_inner_argument_is_not_the_variable_around_it() -> None:
    """The examples of perturbation confusion: both inner derivatives are by y alone."""
    inner = grad(lambda x: x * grad(lambda y: x + y)(x.tape.const(1.0)))
    assert inner(5.0).item() == 1.0
    same = grad(lambda x: x * grad(lambda y: x * y)(x))
    assert same(5.0).item() == 10.0
    forward = jvp(lambda x: x * jvp(lambda y: x * y, (x,), (1.0,))[1], (5.0,), (1.0,))
    assert [t.item() for t in forward] == [25.0, 10.0]


def test_a_var_of_a_users_tape() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(X)
    value, g = value_and_grad(total)(x * 2.0)
    assert isinstance(g, Var) and g.tape is tape and value.tape is tape
    close(g, total_slope(2 * X))
    second = tape.backward_scalar(g.sum())[x]
    close(second, 2 * total_curvature(2 * X))
    close(grad(total)(tape.const(X)), total_slope(X))


def test_zeros_are_vars_on_a_users_tape(tape: Tape[Any]) -> None:
    x = tape.leaf(X)
    for made in (grad(lambda y: tape.const(1.0))(x), jvp(lambda y: tape.const(1.0), (x,), (V,))[1]):
        assert isinstance(made, Var) and not made.numpy().any()
    assert isinstance(jacobian(lambda y: y[:0])(x), Var)


def test_only_what_is_differentiated_requires_gradients() -> None:
    def f(x: Any, y: Any) -> Any:
        assert [v.tape.node(v).requires_grad for v in (x, y)] == [True, False]
        return (x * y).sum()

    close(grad(f)(X, Y), Y)


def test_a_step_of_a_step() -> None:
    """The gradient through unrolled gradient descent, whose nodes grow by the step and not by doubling."""
    sizes = []

    def trained(rate: Any, steps: int) -> Any:
        x = rate.tape.const(X)
        for _ in range(steps):
            x = x - rate * grad(total)(x)
            sizes.append(len(rate.tape))
        return total(x)

    g = grad(lambda rate: trained(rate, 8))(0.01)
    h = 1e-6
    up, down = (trained(Tape().leaf(0.01 + t), 8).item() for t in (h, -h))
    close(g, (up - down) / (2 * h), rtol=1e-7)
    assert len(set(np.diff(sizes[1:8]))) == 1


def test_only_what_the_arguments_reach_is_differentiated() -> None:
    tape: Tape[Any] = Tape()
    w, x = tape.param(X), tape.const(Y)
    before = len(tape)
    grad(lambda y: (ops.exp(w) * y).sum())(x)
    names = [node.op_name for node in list(tape)[before:]]
    assert names.count("exp") == 1
    assert names.count("mul") == 2, names


def test_hooks_run_inside_a_function() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda g: seen.append(g.numpy().tolist()))
        return (y * 3.0).sum()

    grad(f)(X)
    assert seen == [[3.0] * 5]
