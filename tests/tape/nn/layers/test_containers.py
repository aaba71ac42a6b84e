"""Layers about shapes and paths, the embedding, and the softmax layers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import BoundsError, DTypeError, ShapeError, gradcheck, nn, ops
from dgrr.tape.nn import init

X = np.random.default_rng(0).standard_normal((2, 3, 4, 5))


@pytest.mark.parametrize(("start", "shape"), [(1, (2, 60)), (0, (120,)), (2, (2, 3, 20)), (-2, (2, 3, 20))])
def test_flatten(run: Any, start: int, shape: tuple[int, ...]) -> None:
    y = run(nn.Flatten(start), {}, X)
    assert y.shape == shape
    assert y.tobytes() == X.tobytes()
    assert nn.Flatten() == nn.Flatten(1)


@pytest.mark.parametrize(
    ("axis", "sizes", "shape"),
    [(1, (3, 1), (2, 3, 1, 4, 5)), (-1, (5, 1), (*X.shape, 1)), (0, (-1, 2), (1, 2, 3, 4, 5))],
)
def test_unflatten(run: Any, axis: int, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    y = run(nn.Unflatten(axis, sizes), {}, X)
    assert y.shape == shape
    assert y.tobytes() == X.tobytes()


def test_unflatten_refuses_what_does_not_fit(run: Any) -> None:
    with pytest.raises(ShapeError, match=r"^Unflatten: argument 'axis': expected .*, got 4$"):
        run(nn.Unflatten(4, (1, 1)), {}, X)
    with pytest.raises(ShapeError, match="^reshape: "):
        run(nn.Unflatten(3, (2, 2)), {}, X)


def test_residual(run: Any) -> None:
    layer = nn.Residual(nn.Sequential(nn.Linear(5, 5), nn.Tanh()))
    p = layer.init(0, np.float64)
    assert list(p) == ["layer.0.weight", "layer.0.bias"]
    expected = X + np.tanh(X @ p["layer.0.weight"].T + p["layer.0.bias"])
    assert run(layer, p, X) == pytest.approx(expected, rel=1e-12)


def test_residual_keeps_the_shape(run: Any) -> None:
    layer = nn.Residual(nn.Linear(5, 4))
    with pytest.raises(ShapeError, match=r"^add: argument 'b': expected shape \(2, 3, 4, 5\), got \(2, 3, 4, 4\)$"):
        run(layer, layer.init(0, np.float64), X)


# Functions where containers take layers.


def twice(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(5, 4), ops.relu, twice),
        nn.Sequential([nn.Linear(5, 4), ops.relu, twice]),
        nn.Sequential((nn.Linear(5, 4), ops.relu, twice)),
        nn.Linear(5, 4) >> ops.relu >> twice,
    ],
)
def test_functions_are_layers(run: Any, model: nn.Layer) -> None:
    p = model.init(0, np.float64)
    assert list(p) == ["0.weight", "0.bias"]
    expected = 2 * np.maximum(X @ p["0.weight"].T + p["0.bias"], 0)
    assert run(model, p, X) == pytest.approx(expected, rel=1e-12)
    assert repr(model) == "Sequential(Linear(in_features=5, out_features=4, bias=True), relu, twice)"
    assert [row["description"] for row in model.table()][1:3] == ["relu", "twice"]
    assert model == nn.Sequential(nn.Linear(5, 4), ops.relu, twice)


def test_a_function_stands_first_and_alone(run: Any) -> None:
    assert run(twice >> nn.ReLU(), {}, X).tobytes() == np.maximum(2 * X, 0).tobytes()
    assert run(nn.Residual(lambda x: x), {}, X).tobytes() == (X + X).tobytes()
    assert repr(nn.Residual(twice)) == "Residual(layer=twice)"
    assert nn.Sequential([]) == nn.Sequential()
    block = nn.TransformerBlock(4, 2, 8, activation=ops.relu)
    with_layer = nn.TransformerBlock(4, 2, 8, activation=nn.ReLU())
    p, x = block.init(0), X[..., :4].astype(np.float32)
    assert run(block, p, x).tobytes() == run(with_layer, p, x).tobytes()


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda given: nn.Sequential(nn.ReLU(), given), "Sequential: layer 1"),
    (lambda given: nn.Sequential([given, nn.ReLU()]), "Sequential: layer 0"),
    (lambda given: nn.ReLU() >> given, ">>"),
    (lambda given: given >> nn.ReLU(), ">>"),
    (nn.Residual, "Residual: argument 'layer'"),
    (lambda given: nn.Tied(given, {}), "Tied: argument 'model'"),
    (lambda given: nn.TransformerBlock(4, 2, 8, activation=given), "TransformerBlock: argument 'activation'"),
]


@pytest.mark.parametrize(("make", "where"), REFUSED)
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("relu", "expected a layer or a function of x, got str"),
        ([nn.ReLU()], "expected a layer or a function of x, got list"),
        (nn.ReLU, "expected a layer or a function of x, got the class ReLU; write ReLU(…)"),
        (float, "expected a layer or a function of x, got the class float"),
        (
            ops.add,
            "expected a function of x alone, got add: missing a required argument: 'b'; write lambda x: add(x, …)",
        ),
    ],
)
def test_what_is_neither_is_refused_when_made(make: Callable[[Any], Any], where: str, given: Any, text: str) -> None:
    with pytest.raises(DTypeError) as caught:
        make(given)
    assert str(caught.value) == f"{where}: {text}"


@pytest.mark.parametrize("axis", [-1, 0, 2])
def test_softmax_and_its_logarithm(run: Any, axis: int) -> None:
    e = np.exp(X)
    expected = e / e.sum(axis, keepdims=True)
    assert run(nn.Softmax(axis), {}, X) == pytest.approx(expected, rel=1e-13)
    assert run(nn.LogSoftmax(axis), {}, X) == pytest.approx(np.log(expected), rel=1e-12, abs=1e-14)
    assert (nn.Softmax(), nn.LogSoftmax()) == (nn.Softmax(-1), nn.LogSoftmax(-1))


# The embedding.

TABLE = nn.Embedding(7, 3)
INDICES = np.array([[1, 1], [6, 0]])


def test_embedding_picks_rows(run: Any) -> None:
    p = TABLE.init(0)
    assert run(TABLE, p, INDICES).tobytes() == p["weight"][INDICES].tobytes()


def test_embedding_starts_as_a_standard_normal() -> None:
    """torch.nn.Embedding's documented default."""
    weight = nn.Embedding(500, 40).init(9, np.float64)["weight"]
    assert weight.tobytes() == init.normal()((500, 40), np.dtype(np.float64), 9, 0).tobytes()
    assert abs(weight.mean()) < 5 / weight.size**0.5
    assert weight.std() == pytest.approx(1, abs=0.03)


def test_gradients_of_rows_that_are_used_twice_add() -> None:
    check = gradcheck(lambda w: TABLE({"weight": w}, w.tape.const(INDICES)), TABLE.init(0, np.float64)["weight"])
    assert check.ok, str(check)


def test_indices_may_count_from_the_end(run: Any) -> None:
    p = TABLE.init(0)
    assert run(TABLE, p, np.array([-1, -7])).tobytes() == p["weight"][[6, 0]].tobytes()


@pytest.mark.parametrize("index", [-8, 7])
def test_indices_outside_the_table(run: Any, index: int) -> None:
    with pytest.raises(BoundsError, match=f"^embedding: .*{index}"):
        run(TABLE, TABLE.init(0), np.array([0, index]))


def test_indices_are_integers(run: Any) -> None:
    with pytest.raises(DTypeError, match="^embedding: argument 'indices': expected int64, got float64;"):
        run(TABLE, TABLE.init(0), X)
