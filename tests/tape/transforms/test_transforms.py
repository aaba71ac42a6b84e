"""Differentiation of functions, held against closed forms, differences and numpy's linear algebra."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, Tape, grad, hvp, jacobian, jvp, ops, value_and_grad, vjp

from .functions import (
    RNG,
    A,
    Array,
    B,
    V,
    X,
    Y,
    close,
    differences,
    mixed,
    rosenbrock,
    total,
    total_curvature,
    total_slope,
)

pytestmark = pytest.mark.quick

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


def test_jvp_does_not_compute_with_the_zeros_of_what_does_not_move() -> None:
    close(jvp(lambda x, y: x + (y * y).relu(), (X, np.full(5, -np.inf)), (V, None))[1], V)


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
