"""Layers: frozen descriptions, their parameters and how they start, what they compute and refuse."""

import inspect
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import DomainError, DTypeError, ShapeError, Tape, gradcheck, nn, ops
from dgrr.tape.numerics.math.random import uniform

pytestmark = pytest.mark.quick

MODEL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4, bias=False), nn.Tanh(), nn.Linear(4, 2))
NESTED = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 5)))

# Descriptions.


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 4),
        lambda: nn.Linear(3, 4, bias=False),
        nn.ReLU,
        nn.Tanh,
        lambda: nn.ELU(0.5),
        lambda: nn.GELU("tanh"),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
        nn.Sequential,
    ],
)
def test_layers_made_alike_are_equal_and_hash_alike(make: Callable[[], nn.Layer]) -> None:
    one, other = make(), make()
    assert one is not other
    assert one == other
    assert len({one, other}) == 1
    assert repr(one) == repr(other)


def test_layers_that_differ_are_not_equal() -> None:
    linear, relu = nn.Linear(3, 4), nn.ReLU()
    layers: list[nn.Layer] = [
        linear,
        nn.Linear(3, 4, bias=False),
        nn.Linear(4, 3),
        relu,
        nn.Tanh(),
        nn.Sigmoid(),
        nn.Softplus(),
        nn.SiLU(),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.LeakyReLU(),
        nn.LeakyReLU(0.2),
        nn.ELU(),
        nn.ELU(0.5),
        nn.Sequential(linear),
        nn.Sequential(linear, relu),
        nn.Sequential(relu, linear),
        nn.Sequential(nn.Sequential(linear, relu)),
    ]
    assert len(set(layers)) == len(layers)
    assert all((a == b) == (a is b) for a in layers for b in layers)


@pytest.mark.parametrize(("layer", "name"), [(nn.Linear(3, 4), "bias"), (MODEL, "layers"), (nn.ReLU(), "slope")])
def test_layers_are_frozen(layer: nn.Layer, name: str) -> None:
    before = repr(layer)
    with pytest.raises(FrozenInstanceError):
        setattr(layer, name, ())
    assert repr(layer) == before


@pytest.mark.parametrize("name", ["in_features", "out_features"])
@pytest.mark.parametrize("size", [0, -1])
def test_sizes_of_a_linear_layer(name: str, size: int) -> None:
    sizes: dict[str, Any] = {"in_features": 2, "out_features": 2, name: size}
    with pytest.raises(DomainError) as caught:
        nn.Linear(**sizes)
    assert str(caught.value) == f"Linear: argument {name!r}: expected at least 1, got {size}"


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize(("layer", "name"), [(nn.LeakyReLU, "negative_slope"), (nn.ELU, "alpha")])
def test_numbers_of_activations(layer: Callable[[float], nn.Layer], name: str, value: float) -> None:
    with pytest.raises(DomainError, match=rf"^\w+LU: argument '{name}': expected a finite number, got {value}$"):
        layer(value)


def test_approximations_of_gelu() -> None:
    with pytest.raises(DomainError) as caught:
        nn.GELU("erf")
    assert str(caught.value) == "GELU: argument 'approximate': expected 'none' or 'tanh', got 'erf'"


# Parameters.

SHAPES: list[tuple[nn.Layer, dict[str, tuple[int, ...]]]] = [
    (nn.Linear(3, 4), {"weight": (4, 3), "bias": (4,)}),
    (nn.Linear(3, 4, bias=False), {"weight": (4, 3)}),
    (nn.ReLU(), {}),
    (nn.Tanh(), {}),
    (nn.Sequential(), {}),
    (
        MODEL,
        {"0.weight": (4, 3), "0.bias": (4,), "2.weight": (4, 4), "4.weight": (2, 4), "4.bias": (2,)},
    ),
    (NESTED, {"0.weight": (2, 3), "0.bias": (2,), "1.1.weight": (5, 2), "1.1.bias": (5,)}),
]


@pytest.mark.parametrize(("layer", "shapes"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_names_shapes_and_order_of_parameters(
    layer: nn.Layer, shapes: dict[str, tuple[int, ...]], dtype: npt.DTypeLike
) -> None:
    params = layer.init(seed=0, dtype=dtype)
    assert list(layer.parameters()) == list(params) == list(shapes)
    assert {name: value.shape for name, value in params.items()} == shapes
    assert {value.dtype for value in params.values()} <= {np.dtype(dtype)}


def test_parameters_are_float32_by_default() -> None:
    assert {value.dtype for value in MODEL.init(0).values()} == {np.dtype(np.float32)}


def test_only_floats_can_be_initialised() -> None:
    with pytest.raises(DTypeError) as caught:
        MODEL.init(0, np.int64)
    assert str(caught.value) == "init: argument 'dtype': expected float32 or float64, got int64"


def test_the_seed_decides() -> None:
    one, same, other = MODEL.init(5), MODEL.init(5), MODEL.init(6)
    for name, value in one.items():
        assert value.tobytes() == same[name].tobytes()
        assert np.all(value != other[name])
        assert not np.shares_memory(value, same[name])


def test_a_layer_added_after_changes_nothing_before() -> None:
    longer = nn.Sequential(*MODEL.layers, nn.ReLU(), nn.Linear(2, 7))
    short, long = MODEL.init(0), longer.init(0)
    assert all(value.tobytes() == long[name].tobytes() for name, value in short.items())
    assert len(long) == len(short) + 2


def test_equal_shapes_at_two_places_start_differently() -> None:
    params = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).init(0)
    assert np.all(params["0.weight"] != params["1.weight"])
    assert np.all(params["0.bias"] != params["0.weight"][0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fan_in", [1, 3, 64])
def test_weight_and_bias_start_as_in_pytorch(fan_in: int, dtype: type[np.floating[Any]]) -> None:
    """Uniform on [-b, b), b = 1 / sqrt(in_features): torch.nn.Linear's documented default."""
    params = nn.Linear(fan_in, 4096 // fan_in).init(seed=3, dtype=dtype)
    bound = 1 / fan_in**0.5
    for ordinal, name in enumerate(("weight", "bias")):
        value = params[name]
        unit = uniform(value.shape, dtype, seed=3, step=2**32 - 1, ordinal=ordinal)
        assert value == pytest.approx((2 * unit - 1) * bound, rel=4 * float(np.finfo(dtype).eps), abs=0)
        assert -bound * (1 + 1e-7) <= value.min() < value.max() <= bound
    assert params["weight"].min() < -0.99 * bound
    assert params["weight"].max() > 0.99 * bound
    assert abs(params["weight"].mean()) < 0.05 * bound


# What layers compute.

X = np.random.default_rng(0).standard_normal((2, 5, 3))


def outputs(layer: nn.Layer, params: dict[str, npt.NDArray[Any]], x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    tape: Tape[Any] = Tape()
    return layer(tape.params(params), tape.const(x)).numpy()


@pytest.mark.parametrize("x", [X, X[0]], ids=["two leading axes", "one leading axis"])
def test_a_model_computes_what_numpy_does(x: npt.NDArray[Any]) -> None:
    p = MODEL.init(1, np.float64)
    hidden = np.tanh(np.maximum(x @ p["0.weight"].T + p["0.bias"], 0) @ p["2.weight"].T)
    expected = hidden @ p["4.weight"].T + p["4.bias"]
    assert outputs(MODEL, p, x) == pytest.approx(expected, rel=1e-12)


def gaussian(x: float) -> float:
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


def gaussian_by_tanh(x: float) -> float:
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: list[tuple[nn.Layer, Callable[[float], float]]] = [
    (nn.ReLU(), lambda x: max(x, 0.0)),
    (nn.Tanh(), math.tanh),
    (nn.Sigmoid(), lambda x: 1 / (1 + math.exp(-x))),
    (nn.Softplus(), lambda x: math.log1p(math.exp(x))),
    (nn.SiLU(), lambda x: x / (1 + math.exp(-x))),
    (nn.GELU(), gaussian),
    (nn.GELU("tanh"), gaussian_by_tanh),
    (nn.LeakyReLU(), lambda x: x if x > 0 else 0.01 * x),
    (nn.LeakyReLU(0.2), lambda x: x if x > 0 else 0.2 * x),
    (nn.ELU(), lambda x: x if x > 0 else math.expm1(x)),
    (nn.ELU(0.5), lambda x: x if x > 0 else 0.5 * math.expm1(x)),
]


@pytest.mark.parametrize(("layer", "function"), ACTIVATIONS, ids=[repr(layer) for layer, _ in ACTIVATIONS])
def test_activations_compute_what_libm_does(layer: nn.Layer, function: Callable[[float], float]) -> None:
    assert layer.init(0) == {}
    expected = [function(x) for x in X[0].ravel().tolist()]
    assert outputs(layer, {}, X[0]).ravel().tolist() == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_nested_models_find_their_parameters() -> None:
    p = NESTED.init(1, np.float64)
    expected = np.maximum(X @ p["0.weight"].T + p["0.bias"], 0) @ p["1.1.weight"].T + p["1.1.bias"]
    assert outputs(NESTED, p, X) == pytest.approx(expected, rel=1e-12)


def test_a_model_without_layers_is_the_identity() -> None:
    assert outputs(nn.Sequential(), {}, X).tobytes() == X.tobytes()


def test_more_parameters_than_needed_do_no_harm() -> None:
    p = NESTED.init(1, np.float64)
    assert outputs(NESTED, {"other": np.ones(2), **p}, X).tobytes() == outputs(NESTED, p, X).tobytes()


def test_gradients_through_a_model() -> None:
    p = NESTED.init(1, np.float64)
    check = gradcheck(lambda x, *values: NESTED(dict(zip(p, values, strict=True)), x), X[0], *p.values())
    assert check.ok, str(check)
    assert len(check.elements) == X[0].size + sum(value.size for value in p.values())


def test_a_missing_parameter_names_the_layer_and_what_there_is() -> None:
    tape: Tape[Any] = Tape()
    x, p = tape.const(X.astype(np.float32)), tape.params(MODEL.init(0))
    del p["4.bias"]
    with pytest.raises(DomainError) as caught:
        MODEL(p, x)
    assert str(caught.value) == (
        "4: Linear(in_features=4, out_features=2, bias=True): argument 'p': "
        "expected a parameter '4.bias', got '4.weight'"
    )
    with pytest.raises(DomainError) as caught:
        nn.Linear(3, 4)({"bias": p["0.bias"], "gain": p["0.bias"]}, x)
    assert str(caught.value).endswith("expected a parameter 'weight', got 'bias', 'gain'")
    with pytest.raises(DomainError, match="expected a parameter 'weight', got none$"):
        nn.Linear(3, 4, bias=False)({}, x)


def test_wrong_sizes_name_the_op_and_the_argument() -> None:
    tape: Tape[Any] = Tape()
    p = tape.params(nn.Linear(3, 4).init(0))
    with pytest.raises(ShapeError) as caught:
        nn.Linear(3, 4)(p, tape.const(np.zeros((5, 2), np.float32)))
    assert str(caught.value) == (
        "linear: argument 'w': expected shape (N, 2), got (4, 3); the last axis of x is 2, and w takes 3"
    )
    with pytest.raises(ShapeError) as caught:
        nn.Linear(3, 4)({**p, "bias": ops.reduce_sum(p["weight"], axis=0)}, tape.const(X[0].astype(np.float32)))
    assert str(caught.value) == "linear: argument 'b': expected shape (4,), got (3,)"


def test_nothing_is_converted() -> None:
    with pytest.raises(DTypeError, match="linear: argument 'x': expected float32, got float64"):
        outputs(NESTED, NESTED.init(0, np.float32), X)


# Printing.


def test_printing_a_model() -> None:
    rows = list(NESTED.table())
    assert [(row["layer"], row["parameters"], row["count"]) for row in rows] == [
        ("0", "weight (2, 3), bias (2,)", 8),
        ("1.0", "-", 0),
        ("1.1", "weight (5, 2), bias (5,)", 15),
        ("", "total", 23),
    ]
    text = str(NESTED)
    assert [row["description"] in text for row in rows] == [True] * 4
    assert repr(NESTED) == (
        "Sequential(Linear(in_features=3, out_features=2, bias=True), "
        "Sequential(ReLU(), Linear(in_features=2, out_features=5, bias=True)))"
    )


def test_printing_one_layer() -> None:
    (row,) = nn.Linear(3, 4).table()
    assert row == {
        "layer": "-",
        "description": "Linear(in_features=3, out_features=4, bias=True)",
        "parameters": "weight (4, 3), bias (4,)",
        "count": 16,
    }
    assert "weight (4, 3), bias (4,)" in str(nn.Linear(3, 4))


@pytest.mark.parametrize("name", [name for name in nn.__all__ if isinstance(getattr(nn, name), type)])
def test_booleans_are_given_by_name(name: str) -> None:
    """Nobody can say what ``True`` means in ``TransformerBlock(8, 2, 16, 0.1, True)``."""
    parameters = inspect.signature(getattr(nn, name)).parameters.values()
    flags = [p for p in parameters if isinstance(p.default, bool)]
    assert all(flag.kind is inspect.Parameter.KEYWORD_ONLY for flag in flags)


# Names that two would have.


class Holding(nn.Layer):
    """Whatever it is given, as attributes."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        return x


class Counting(Holding):
    def own_state(self) -> Any:
        return {"scale": nn.Parameter((), nn.init.zeros())}


SCALE = nn.Parameter((), nn.init.ones())


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Holding(heads={1: nn.ReLU(), "1": nn.Linear(2, 2)}), "parts with unique names, got 'heads.1' twice"),
        (
            Holding(**{"a.weight": SCALE, "a": nn.Linear(2, 2)}),
            "parameters and state with unique names, got 'a.weight' twice",
        ),
    ],
)
def test_names_of_two_are_refused(model: nn.Layer, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        model.init(0)
    assert str(caught.value) == f"Holding: expected {text}"


def test_a_name_of_a_parameter_is_none_of_the_state() -> None:
    with pytest.raises(DomainError) as caught:
        Counting(scale=SCALE).init_state()
    assert str(caught.value) == "Counting: expected parameters and state with unique names, got 'scale' twice"
