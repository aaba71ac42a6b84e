"""``vmap``: many examples at once, each with the bits that it has alone, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import (
    DTypeError,
    GradientError,
    ShapeError,
    Tape,
    TapeError,
    grad,
    jacobian,
    jvp,
    nn,
    ops,
    vmap,
)

RNG = np.random.default_rng(0)
W, B, X = RNG.standard_normal((3, 4)), RNG.standard_normal(3), RNG.standard_normal((5, 4))
Y = np.array([0, 2, 1, 1, 0])


def loss(p: Any, x: Any, y: Any) -> Any:
    return ops.cross_entropy(ops.reshape(ops.linear(x, p["w"], p["b"]).relu(), (1, 3)), ops.reshape(y, (1,)))


PARAMS = {"w": W, "b": B}


def test_a_gradient_for_every_example() -> None:
    found = vmap(grad(loss), (None, 0, 0))(PARAMS, X, Y)
    for k in range(5):
        alone = grad(loss)(PARAMS, X[k], Y[k])
        for name in PARAMS:
            assert found[name].numpy()[k].tobytes() == alone[name].numpy().tobytes()


def test_the_gradient_of_all_of_them() -> None:
    tape = Tape()
    p = tape.params(PARAMS)
    total = vmap(loss, (None, 0, 0))(p, X, Y).sum()
    alone = sum(grad(loss)(PARAMS, X[k], Y[k])["w"].numpy() for k in range(5))
    np.testing.assert_allclose(tape.backward_dense(total)["w"].numpy(), alone, rtol=1e-12)


def test_an_axis_in_any_place() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"sum": x + y, "all": (x * y).sum()}

    x, y = RNG.standard_normal((2, 5, 3)), RNG.standard_normal((5, 2, 3))
    found = vmap(f, (1, 0), out_axes=-1)(x, y)
    expected = np.stack([x[:, k] + y[k] for k in range(5)], -1)
    assert found["sum"].numpy().tobytes() == expected.tobytes()
    assert found["all"].shape == (5,)


def test_axes_as_nests_like_the_arguments() -> None:
    found = vmap(loss, ({"w": None, "b": 0}, None, None))({"w": W, "b": np.stack([B, -B])}, X[0], Y[0])
    for k, b in enumerate((B, -B)):
        assert found.numpy()[k] == loss_alone({"w": W, "b": b})


def loss_alone(p: Any) -> Any:
    tape = Tape()
    return loss(tape.params(p), tape.const(X[0]), tape.const(Y[0])).numpy()


def test_maps_nest_and_go_with_other_transforms() -> None:
    def product(a: Any, b: Any) -> Any:
        return (a * b).sum()

    table = vmap(vmap(product, (None, 0)), (0, None))(W, X)
    alone = [[product(Tape().leaf(a), b).item() for b in X] for a in W]
    assert table.numpy().tobytes() == np.array(alone).tobytes()
    rows = vmap(jacobian(ops.sin))(X)
    assert rows.numpy().tobytes() == np.stack([jacobian(ops.sin)(x).numpy() for x in X]).tobytes()
    value, moved = jvp(vmap(ops.exp), (X,), (X,))
    assert moved.numpy().tobytes() == (value.numpy() * X).tobytes()


def test_what_does_not_depend_on_the_members_is_repeated() -> None:
    found = vmap(lambda a, x: a * 2.0, (None, 0))(B, X)
    assert found.numpy().tobytes() == np.broadcast_to(B * 2.0, (5, 3)).tobytes()


def test_a_layer_and_an_ensemble_of_its_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    members = [model.init(seed) for seed in range(3)]
    stacked = {name: np.stack([p[name] for p in members]) for name in members[0]}
    x = X.astype(np.float32)
    found = vmap(model, (0, None))(stacked, x)
    for k, p in enumerate(members):
        assert found.numpy()[k].tobytes() == np.asarray(model(p, x)).tobytes()


def test_ops_that_go_for_all_members_at_once_are_one_node() -> None:
    tape = Tape()
    vmap(lambda x: x.relu())(tape.leaf(X))
    assert [node.op_name for node in tape] == ["leaf", "relu"]


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: vmap(ops.relu)(np.float32(1)),
        ShapeError,
        "vmap: argument 'in_axes for args[0]': expected no axis of a scalar, got 0",
    ),
    (
        lambda: vmap(ops.relu, 2)(X),
        ShapeError,
        "vmap: argument 'in_axes for args[0]': expected an axis from -2 to 1, got 2",
    ),
    (lambda: vmap(ops.add)(X, W), ShapeError, "vmap: argument 'args[1]': expected 5 members as in args[0], got 3"),
    (lambda: vmap(ops.relu)(X[:0]), ShapeError, "vmap: argument 'args[0]': expected at least one member, got none"),
    (
        lambda: vmap(ops.add, (None, None))(X, X),
        ShapeError,
        "vmap: argument 'in_axes': expected an axis for at least one argument, got None for all",
    ),
    (
        lambda: vmap(ops.add, (0,))(X, X),
        DTypeError,
        "vmap: argument 'in_axes': expected one for each of 2 arguments, got 1",
    ),
    (lambda: vmap(loss, ([0], 0, 0))(PARAMS, X, Y), GradientError, "vmap: argument 'in_axes': expected"),
    (
        lambda: vmap(ops.relu, out_axes=3)(X),
        ShapeError,
        "vmap: argument 'out_axes': expected an axis from -2 to 1, got 3",
    ),
    (lambda: vmap(lambda x: (x, 1.0))(X), GradientError, "expected it to return a Var at [1], got float"),
    (
        lambda: vmap(lambda x: x if x.sum() > 0 else -x)(X),
        TapeError,
        "vmap: the value of a bool tensor of shape () was read while the function is being recorded: it is recorded "
        "once for all members, so Python cannot branch on them; use ops (ops.where, comparisons, slicing), or call it "
        "for each member in turn",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text[:40] for *_, text in ERRORS])
def test_what_it_refuses(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_a_var_from_around_is_refused_with_what_to_do() -> None:
    around = Tape().leaf(B)
    with pytest.raises(TapeError, match="<tape of vmap, whose Vars are made of the function's arguments>"):
        vmap(lambda x: x * around)(np.ones((2, 3)))
