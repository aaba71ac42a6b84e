"""Differentiation of functions, held against closed forms, differences and numpy's linear algebra."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import (
    AnyTensor,
    DomainError,
    DTypeError,
    GradientError,
    ShapeError,
    Tape,
    TapeError,
    Var,
    grad,
    hvp,
    jacobian,
    jvp,
    ops,
    value_and_grad,
    vjp,
)

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
X, Y, V = RNG.standard_normal((3, 5))
A, B = RNG.standard_normal((2, 4, 5))


def total(x: Any) -> Any:
    return (ops.tanh(x) * x * x).sum()


def total_slope(x: Array) -> Array:
    t = np.tanh(x)
    return np.asarray((1 - t * t) * x * x + 2 * x * t)


def total_curvature(x: Array) -> Array:
    t = np.tanh(x)
    d = 1 - t * t
    return np.asarray(-2 * t * d * x * x + 4 * x * d + 2 * t)


def rosenbrock(x: Any) -> Any:
    a, b = x[:-1], x[1:]
    return (100.0 * (b - a * a).square() + (1.0 - a).square()).sum()


def mixed(x: Any, y: Any) -> Any:
    """One scalar of two vectors, with every second derivative."""
    return (ops.exp(x * y) + x * x * y).sum()


def close(got: Any, expected: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(got.value if isinstance(got, Var) else got), expected, rtol=rtol, atol=rtol)


def differences(f: Callable[[Array], Array], x: Array, h: float = 1e-5) -> Array:
    """The Jacobian of f by central differences, the axes of x last."""
    columns = []
    for at in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[at] = h
        columns.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * h))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


# ---------------------------------------------------------------------- grad


def test_grad_of_closed_forms() -> None:
    close(grad(total)(X), total_slope(X))
    close(grad(rosenbrock)(X), differences(lambda x: rosenbrock(Tape().leaf(x)).numpy(), X), rtol=1e-6)


def test_grad_returns_a_tensor_of_the_argument() -> None:
    for dtype in (np.float32, np.float64):
        g = grad(total)(X.astype(dtype))
        assert isinstance(g, AnyTensor)
        assert (g.sizes, g.dtype) == (X.shape, np.dtype(dtype))
    assert grad(total)(AnyTensor(X.copy())).numpy().tolist() == grad(total)(X).numpy().tolist()


def test_grad_is_backward_to_the_bit() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(X)
    g = tape.backward_dense(total(x))[x]
    assert g is not None
    assert grad(total)(X).numpy().tobytes() == g.numpy().tobytes()


def test_grad_by_several_arguments() -> None:
    dx, dy = grad(mixed, argnums=(0, 1))(X, Y)
    close(dx, Y * np.exp(X * Y) + 2 * X * Y)
    close(dy, X * np.exp(X * Y) + X * X)
    close(grad(mixed, argnums=1)(X, Y), dy)
    close(grad(mixed, argnums=-1)(X, Y), dy)
    close(grad(mixed, argnums=(1, 0))(X, Y)[0], dy)
    assert isinstance(grad(mixed, argnums=(1,))(X, Y), tuple)


def test_grad_of_nests_has_their_form() -> None:
    def f(p: Any, scale: Any) -> Any:
        (w, (b,)) = p["layers"]
        return (w * scale["by"][0] + b).sum() * p["gain"]

    params = {"gain": np.float64(3.0), "layers": [X, (Y,)], "unused": None}
    g = grad(f)(params, {"by": [V]})
    assert list(g) == ["gain", "layers", "unused"]
    assert isinstance(g["layers"], list) and isinstance(g["layers"][1], tuple)
    close(g["gain"], np.sum(X * V + Y))
    close(g["layers"][0], 3 * V)
    close(g["layers"][1][0], np.full(5, 3.0))
    assert g["unused"] is None


def test_what_f_does_not_depend_on_has_gradient_zero() -> None:
    g = grad(lambda x, y: (x * x).sum(), argnums=(0, 1))(X, Y)
    assert g[1].numpy().tolist() == [0.0] * 5
    assert grad(lambda x: x.tape.const(1.0))(X).numpy().tolist() == [0.0] * 5
    assert grad(grad(lambda x: 3.0 * x))(2.0).item() == 0.0


def test_integers_may_be_arguments_that_are_not_differentiated() -> None:
    g = grad(lambda x, i: ops.take(x, i).sum())(X, np.array([1, 1, 4]))
    assert g.numpy().tolist() == [0.0, 2.0, 0.0, 0.0, 1.0]


def test_value_and_grad() -> None:
    value, g = value_and_grad(total)(X)
    close(value, np.sum(np.tanh(X) * X * X))
    close(g, total_slope(X))


def test_value_and_grad_with_aux() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return y.sum(), {"square": y, "name": "aux"}

    (value, aux), g = value_and_grad(f, has_aux=True)(X)
    close(value, np.sum(X * X))
    assert isinstance(aux["square"], AnyTensor)
    assert aux["name"] == "aux"
    close(g, 2 * X)


# ---------------------------------------------------------------------- vjp, jvp


def test_vjp_of_a_linear_map_is_its_transpose() -> None:
    value, pullback = vjp(lambda x: ops.matmul(x.tape.const(A), x), X.reshape(5, 1))
    close(value, A @ X.reshape(5, 1))
    u = RNG.standard_normal((4, 1))
    for _ in range(2):
        close(pullback(u)[0], A.T @ u)


def test_vjp_of_nests() -> None:
    value, pullback = vjp(lambda x, i: {"a": x * x, "b": (ops.take(x, i), x)}, X, np.array([0, 0]))
    close(value["b"][0], X[[0, 0]])
    u, v, w = RNG.standard_normal(5), RNG.standard_normal(2), RNG.standard_normal(5)
    expected = 2 * X * u + w
    expected[0] += v.sum()
    dx, di = pullback({"b": (v, w), "a": u})
    close(dx, expected)
    assert di is None
    close(pullback({"a": u, "b": None})[0], 2 * X * u)
    close(pullback({"a": None, "b": None})[0], np.zeros(5))


def test_a_result_that_stands_twice_adds_its_cotangents() -> None:
    def twice(x: Any) -> Any:
        y = x * x
        return y, y

    pullback = vjp(twice, X)[1]
    close(pullback((V, 10 * V))[0], 22 * X * V)


def test_jvp_of_closed_forms() -> None:
    value, tangent = jvp(total, (X,), (V,))
    close(value, np.sum(np.tanh(X) * X * X))
    close(tangent, total_slope(X) @ V)
    close(jvp(lambda x: ops.matmul(A, x), (X.reshape(5, 1),), (V.reshape(5, 1),))[1], A @ V.reshape(5, 1))


def test_jvp_of_nests_and_of_what_does_not_move() -> None:
    def f(p: Any, x: Any) -> Any:
        return {"product": p["w"] * x, "same": x, "constant": x.tape.const(1), "label": ops.argmax(p["w"])}

    value, tangent = jvp(f, ({"w": X, "i": 3}, Y), ({"w": V, "i": None}, None))
    close(value["product"], X * Y)
    close(tangent["product"], V * Y)
    close(tangent["same"], np.zeros(5))
    assert tangent["constant"] is None
    assert tangent["label"] is None


def test_jvp_passes_by_what_has_no_gradient() -> None:
    def f(x: Any) -> Any:
        return x * ops.cast(ops.argmax(x), np.float64) + ops.cast(ops.cast(x, np.int64), np.float64)

    close(jvp(f, (X,), (V,))[1], V * np.argmax(X))


def test_adjoint_identity() -> None:
    def f(x: Any, y: Any) -> Any:
        return ops.softmax(ops.matmul(x, y.T)), ops.logsumexp(x * x, 0)

    xs, ts = (A, B), (RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5)))
    us = (RNG.standard_normal((4, 4)), RNG.standard_normal(5))
    pushed = jvp(f, xs, ts)[1]
    pulled = vjp(f, *xs)[1](us)
    left = sum(np.sum(p.numpy() * u) for p, u in zip(pushed, us, strict=True))
    right = sum(np.sum(p.numpy() * t) for p, t in zip(pulled, ts, strict=True))
    close(left, right)


# ---------------------------------------------------------------------- jacobian, hvp


@pytest.mark.parametrize(
    ("f", "matrix"),
    [
        (lambda x: ops.cumsum(x, 0), np.tril(np.ones((5, 5)))),
        (lambda x: ops.reduce_mean(x), np.full(5, 0.2)),
        (lambda x: ops.linear(x.reshape(1, 5), A).reshape(4), A),
        (lambda x: x[::-2], np.eye(5)[::-2]),
        (lambda x: ops.take(x, x.tape.const([3, 3, 0])), np.eye(5)[[3, 3, 0]]),
        (lambda x: ops.pad(x, ((1, 2),)), np.vstack([np.zeros((1, 5)), np.eye(5), np.zeros((2, 5))])),
        (lambda x: ops.broadcast_to(x, (3, 5)), np.broadcast_to(np.eye(5), (3, 5, 5))),
    ],
)
def test_jacobian_of_linear_maps(f: Callable[[Any], Any], matrix: Array) -> None:
    assert jacobian(f)(X).numpy().tolist() == matrix.tolist()


def test_jacobian_against_differences() -> None:
    def f(x: Any) -> Any:
        return ops.softmax(ops.matmul(x, x.T)) * 2.0

    got = jacobian(f)(A)
    assert got.sizes == (4, 4, 4, 5)
    close(got, differences(lambda x: f(Tape().leaf(x)).numpy(), A), rtol=1e-8)


def test_jacobian_of_nests() -> None:
    def f(p: Any, y: Any) -> Any:
        return {"a": p["x"] * y, "b": (p["x"] * y).sum()}

    made = jacobian(f, argnums=(0, 1))({"x": X}, Y)
    close(made["a"][0]["x"], np.diag(Y))
    close(made["a"][1], np.diag(X))
    close(made["b"][0]["x"], Y)


def test_jacobian_of_nothing() -> None:
    assert jacobian(lambda x: x[:0])(X).sizes == (0, 5)
    assert jacobian(lambda x: x * x)(X[:0]).sizes == (0, 0)
    assert jacobian(lambda x: x.tape.const(np.ones(3)))(X).numpy().tolist() == np.zeros((3, 5)).tolist()


def test_hessians() -> None:
    close(jacobian(grad(total))(X), np.diag(total_curvature(X)))
    close(jacobian(grad(rosenbrock))(X), differences(lambda x: grad(rosenbrock)(x).numpy(), X), rtol=1e-6)


def test_hvp_is_the_hessian_times_a_vector() -> None:
    (product,) = hvp(rosenbrock, (X,), (V,))
    close(product, jacobian(grad(rosenbrock))(X).numpy() @ V, rtol=1e-11)


def test_hvp_of_several_primals() -> None:
    hessian = jacobian(grad(mixed, argnums=(0, 1)), argnums=(0, 1))(X, Y)
    products = hvp(mixed, (X, Y), (V, None))
    for row, product in zip(hessian, products, strict=True):
        close(product, row[0].numpy() @ V)
    products = hvp(lambda p: mixed(p["x"], p["y"]), ({"x": X, "y": Y},), ({"x": None, "y": V},))
    for row, product in zip(hessian, products[0].values(), strict=True):
        close(product, row[1].numpy() @ V)


def test_hvp_leaves_integers_alone() -> None:
    products = hvp(lambda x, i: ops.take(x * x * x, i).sum(), (X, np.array([2])), (V, None))
    close(products[0], np.eye(5)[2] * 6 * X * V)
    assert products[1] is None


# ---------------------------------------------------------------------- nesting


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


# ---------------------------------------------------------------------- errors


def product(x: Any, i: Any = None) -> Any:
    return x * x


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: grad(product)(X), GradientError,
     "grad: function 'product': expected it to return a float scalar, got float64 of shape (5,); reduce it first, "
     "or use jacobian"),
    (lambda: value_and_grad(product)(X), GradientError, "value_and_grad: function 'product': expected it to return"),
    (lambda: grad(lambda x: ops.argmax(x))(X), GradientError, "return a float scalar, got int64 of shape ()"),
    (lambda: grad(lambda x: (x.sum(),))(X), GradientError, "expected it to return a float scalar, got a tuple"),
    (lambda: grad(lambda x: 1.0)(X), GradientError, "function '<lambda>': expected it to return a Var, got float"),
    (lambda: vjp(lambda x: {"a": [x, X]}, X), GradientError, "expected it to return a Var at ['a'][1], got ndarray"),
    (lambda: grad(grad(product))(X), GradientError, "grad: function 'product': expected it to return a float scalar"),
    (lambda: grad(product)(3), GradientError,
     "grad: argument 'args[0]': expected float32 or float64, got int64, which has no gradient; pass it as an "
     "argument that is not among argnums"),
    (lambda: grad(lambda p: p["x"].sum())({"x": X, "i": [True]}), GradientError,
     """grad: argument "args[0]['i'][0]": expected float32 or float64, got bool, which has no gradient"""),
    (lambda: jacobian(product, argnums=(0, -1))(X, [1, 2]), GradientError,
     "jacobian: argument 'args[1][0]': expected float32 or float64, got int64"),
    (lambda: grad(product, argnums=1)(X), DomainError,
     "grad: argument 'argnums': expected positions among 1 arguments, got 1"),
    (lambda: jacobian(product, argnums=(0, -2))(X), DomainError,
     "jacobian: argument 'argnums': expected positions among 1 arguments, got -2"),
    (lambda: grad(product)("x"), DTypeError,
     "grad: argument 'args[0]': expected a Var, a tensor, an array or a number, or a tuple, list or dict of them, "
     "got str"),
    (lambda: grad(product)(X.astype(np.complex128)), DTypeError,
     "grad: argument 'args[0]': expected float32, float64, an integer type or bool, got complex128"),
    (lambda: value_and_grad(product, has_aux=True)(X), GradientError,
     "value_and_grad: function 'product': expected it to return (value, aux), got Var"),
    (lambda: jacobian(lambda x: ops.argmax(x))(X), GradientError,
     "jacobian: function '<lambda>': expected it to return floats, got int64, which has no gradient"),
    (lambda: hvp(product, (X,), (V,)), GradientError,
     "hvp: function 'product': expected it to return a float scalar, got float64 of shape (5,)"),
    (lambda: jvp(product, (X,), (V[:2],)), ShapeError, "jvp: argument 'tangents[0]': expected shape (5,), got (2,)"),
    (lambda: jvp(product, (X,), (V.astype(np.float32),)), DTypeError,
     "jvp: argument 'tangents[0]': expected dtype float64, got float32"),
    (lambda: jvp(product, (X, 1), (V, 1.0)), GradientError,
     "jvp: argument 'tangents[1]': expected None for int64: no gradient exists"),
    (lambda: jvp(product, (X,), (V, V)), GradientError,
     "jvp: argument 'tangents': expected a tuple of 1, got a tuple of 2"),
    (lambda: jvp(lambda p: p["x"], ({"x": X},), ({"y": X},)), GradientError,
     "jvp: argument 'tangents[0]': expected a dict of 'x', got a dict of 'y'"),
    (lambda: jvp(lambda p: p[0], ([X],), (X,)), GradientError,
     "jvp: argument 'tangents[0]': expected a list of 1, got one value"),
    (lambda: jvp(product, (X, None), (V, V)), GradientError,
     "jvp: argument 'tangents[1]': expected None, got one value"),
    (lambda: hvp(total, (X,), ((V,),)), GradientError,
     "hvp: argument 'tangents[0]': expected one value, got a tuple of 1"),
    (lambda: vjp(product, X)[1](V[:2]), ShapeError,
     "pullback: argument 'cotangent': expected shape (5,), got (2,)"),
    (lambda: vjp(lambda x: {"a": x}, X)[1]({"a": 1.0}), ShapeError,
     """pullback: argument "cotangent['a']": expected shape (5,), got ()"""),
    (lambda: vjp(lambda x: ops.argmax(x), X)[1](1.0), GradientError,
     "pullback: argument 'cotangent': expected None for int64: no gradient exists"),
    (lambda: vjp(product, X)[1](Tape().leaf(V)), TapeError, "expected a Var of <Tape #"),
    (lambda: grad(lambda y: (Tape().leaf(X) * y).sum())(Y), TapeError, "expected a Var of <Tape #"),
    (lambda: grad(lambda y: Tape().leaf(1.0))(Y), TapeError, "expected a Var of <Tape #"),
    (lambda: grad(mixed)(Tape().leaf(X), Tape().leaf(Y)), TapeError, "expected a Var of <Tape #"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
