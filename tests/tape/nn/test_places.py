"""What goes wrong in a layer says where it stands in the model: in every kind of layer, eager and captured."""

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

from dgrr.runtime import SGD, EagerStep, capture
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import (
    AnyVar,
    BoundsError,
    Context,
    DgrrError,
    Dim,
    DomainError,
    DTypeError,
    NonFiniteError,
    ShapeError,
    Tape,
    TapeError,
    nn,
    ops,
)


@dataclass(frozen=True)
class Block(nn.Layer):
    """A layer of one's own with two parts and a parameter."""

    first: nn.Layer
    second: nn.Layer

    def own_parameters(self) -> dict[str, nn.Parameter]:
        return {"scale": nn.Parameter((), nn.init.ones())}

    def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        y = self.part("second", p, self.part("first", p, x, ctx), ctx)
        return ops.mul(y, ops.broadcast_to(p["scale"], y.shape))


MODELS: dict[str, tuple[nn.Layer, str]] = {
    "sequential": (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 2)), "2"),
    "residual": (nn.Residual(nn.Linear(4, 4)), "layer"),
    "a residual's own sum": (nn.Sequential(nn.Linear(3, 4), nn.Residual(nn.Linear(4, 1))), "1"),
    "one's own": (
        nn.Sequential(nn.ReLU(), Block(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(7, 1)))),
        "1.second.1",
    ),
    "one's own first part": (Block(nn.Linear(4, 4), nn.ReLU()), "first"),
    "deep": (nn.Residual(nn.Sequential(nn.Residual(nn.Residual(nn.Linear(2, 2))))), "layer.0.layer.layer"),
    "transformer": (nn.Sequential(nn.Linear(3, 6), nn.TransformerBlock(4, 2, 8)), "1.norm1"),
    "chained": (nn.Linear(3, 4) >> nn.ReLU() >> nn.Linear(5, 2) >> nn.ReLU(), "2"),
    "convolution": (nn.Sequential(nn.Unflatten(1, (3, 1, 1)), nn.Sequential(nn.Conv2d(1, 2, 1))), "1.0"),
}  # fmt: skip
X = np.ones((5, 3), np.float32)


def eager(model: nn.Layer) -> None:
    tape: Tape[Any] = Tape()
    model(tape.params(model.init(0)), tape.const(X))


def loss_of(model: nn.Layer) -> Callable[[Any, Any], Any]:
    return lambda p, x: model(p, x).mean()


WAYS: dict[str, Callable[[nn.Layer], object]] = {
    "eager": eager,
    "step": lambda model: EagerStep(loss_of(model), model.init(0), Recipe(SGD(0.1)))(X),
    "captured": lambda model: capture(loss_of(model), model.init(0), SGD(0.1), X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_size_says_where(name: str, way: str) -> None:
    model, place = MODELS[name]
    with pytest.raises(ShapeError) as caught:
        WAYS[way](model)
    assert str(caught.value).startswith(f"{place}: ")
    assert str(caught.value).split(": ")[1] in {
        "linear",
        "LayerNorm(size=4, eps=1e-05, affine=True, bias=True)",
        "conv",
        "add",
    }
    assert type(caught.value) is ShapeError
    assert str(caught.value) in traceback.format_exception(caught.value)[-1]


def test_the_whole_text() -> None:
    with pytest.raises(ShapeError) as caught:
        eager(MODELS["sequential"][0])
    assert str(caught.value) == (
        "2: linear: argument 'w': expected shape (N, 4), got (2, 5); the last axis of x is 4, and w takes 5"
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (ShapeError, str(caught.value))


def test_bytes_in_a_convolution() -> None:
    model, tape = nn.Sequential(nn.Conv2d(1, 2, 3)), Tape[Any]()
    with pytest.raises(DTypeError) as caught:
        model(tape.params(model.init(0)), tape.const(np.zeros((2, 1, 8, 8), np.uint8)))
    assert str(caught.value) == (
        "0: conv: argument 'x': expected float32 or float64, got int64; convert with ops.cast, "
        "images of whole numbers (uint8, int64 on a tape) with x.astype(np.float32) / 255"
    )


def test_a_layer_by_itself_has_no_place() -> None:
    with pytest.raises(ShapeError, match="^linear: argument 'w'"):
        eager(nn.Linear(4, 2))


def test_typed_layers_say_where() -> None:
    class In(Dim, size=3): ...

    class Hid(Dim, size=4): ...

    model = nn.Linear(In, Hid) >> nn.ReLU() >> nn.Linear(Hid, In)
    tape: Tape[Any] = Tape()
    with pytest.raises(ShapeError, match=r"^0: linear: argument 'w': expected shape \(N, 2\), got \(4, 3\)"):
        model(tape.params(model.init(0)), tape.const(X[:, :2]))


@dataclass(frozen=True)
class Doing(nn.Layer):
    """A layer that does what it is told."""

    function: Callable[[Any, Any], Any]

    def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        made: AnyVar = self.function(p, x)
        return made


FAULTS: list[tuple[Callable[[Any, Any], Any], type[DgrrError], str]] = [
    (lambda p, x: ops.add(x, ops.cast(x, np.float64)), DTypeError, "add: argument 'b': expected float32, got float64"),
    (lambda p, x: ops.dropout(x, x.tape.const(0), 2.0), DomainError, "dropout: argument 'p': expected a probability"),
    (lambda p, x: ops.take(x, np.array([7]), 0), BoundsError, "take: argument 'indices': expected -5 to 4, got 7"),
    (lambda p, x: x + Tape().const(X), TapeError, ""),
    (lambda p, x: p["gain"] * x, DomainError, "Doing(function=<function <lambda> at "),
]


@pytest.mark.parametrize(("function", "error", "text"), FAULTS)
def test_every_kind_of_error_keeps_its_type(function: Any, error: type[DgrrError], text: str) -> None:
    tape: Tape[Any] = Tape()
    model = nn.Sequential(nn.Residual(Doing(function)))
    with pytest.raises(error) as caught:
        model({"weight": tape.const(X)}, tape.const(X))
    assert str(caught.value).startswith(f"0.layer: {text}")
    assert str(caught.value).count("0.layer: ") == 1


def test_other_errors_are_left_alone() -> None:
    def failing(p: Any, x: Any) -> Any:
        raise ZeroDivisionError("mine")

    tape: Tape[Any] = Tape()
    with pytest.raises(ZeroDivisionError, match="^mine$"):
        nn.Sequential(Doing(failing))({}, tape.const(X))


def test_a_value_that_is_not_finite_says_where() -> None:
    tape: Tape[Any] = Tape(check="finite")
    with pytest.raises(NonFiniteError, match="^0: log"):
        nn.Sequential(Doing(lambda p, x: ops.log(x)))({}, tape.const(-X))


def test_a_value_that_is_asked_for_while_captured_says_where() -> None:
    model = nn.Sequential(nn.Linear(3, 2), Doing(lambda p, x: x * x.mean().item()))
    with pytest.raises(TapeError, match="^1: "):
        capture(loss_of(model), model.init(0), SGD(0.1), X)


# ------------------------------------------------------------------ parameters

NESTED = nn.Sequential(nn.Linear(3, 4), nn.TransformerBlock(4, 2, 8), Block(nn.ReLU(), nn.Linear(4, 2)))
LINEAR = "Linear(in_features=4, out_features=2, bias=True)"
BLOCK = repr(nn.MultiHeadAttention(4, 2))


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda p: {key: value for key, value in p.items() if key != name}


def renamed(old: str, new: str) -> Callable[[dict[str, Any]], Any]:
    return lambda p: {key.replace(old, new): value for key, value in p.items()}


PARAMETERS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (
        without("1.attention.wq"),
        f"1.attention: {BLOCK}: argument 'p': expected a parameter '1.attention.wq', got '1.attention.wk', "
        "'1.attention.wv', '1.attention.wo', '1.attention.bq', '1.attention.bk', '1.attention.bv', '1.attention.bo'",
    ),
    (
        renamed("2.second.weight", "2.second.wieght"),
        f"2.second: {LINEAR}: argument 'p': expected a parameter '2.second.weight', got '2.second.wieght', "
        "'2.second.bias'; did you mean '2.second.wieght'?",
    ),
    (
        without("2.scale"),
        f"2: Block(first=ReLU(), second={LINEAR}): argument 'p': expected a parameter '2.scale', "
        "got '2.second.weight', '2.second.bias'",
    ),
    (
        renamed("2.second.", "head."),
        f"2.second: {LINEAR}: argument 'p': expected a parameter '2.second.bias', got '0.weight', '0.bias', "
        "'1.norm1.weight', '1.norm1.bias', '1.attention.wq', '1.attention.wk', '1.attention.wv', '1.attention.wo' "
        "and 13 more; did you mean 'head.bias'?",
    ),
    (
        lambda p: {"fc.weight": p["0.weight"], "fc.bias": p["0.bias"]},
        "0: Linear(in_features=3, out_features=4, bias=True): argument 'p': expected a parameter '0.bias', "
        "got 'fc.weight', 'fc.bias'; did you mean 'fc.bias'?",
    ),
    (
        lambda p: {"0": {"weight": p["0.weight"], "bias": p["0.bias"]}},
        "0: Linear(in_features=3, out_features=4, bias=True): argument 'p': expected a parameter '0.bias', "
        "got a dict under '0'; parameters are one flat dict, {'0.bias': …}",
    ),
    (
        lambda p: None,
        "0: Linear(in_features=3, out_features=4, bias=True): argument 'p': expected a parameter '0.bias', "
        "got NoneType; give a dict of Vars by name, as tape.params makes it",
    ),
    (
        lambda p: [*p.values()],
        "0: Linear(in_features=3, out_features=4, bias=True): argument 'p': expected a parameter '0.bias', "
        "got list; give a dict of Vars by name, as tape.params makes it",
    ),
]


@pytest.mark.parametrize(("change", "text"), PARAMETERS)
def test_a_parameter_that_is_not_there(change: Callable[[Any], Any], text: str) -> None:
    tape: Tape[Any] = Tape()
    with pytest.raises(DomainError) as caught:
        NESTED(change(tape.params(NESTED.init(0))), tape.const(X))
    assert str(caught.value) == text
    assert isinstance(caught.value, KeyError)


def test_the_parameters_of_a_part_are_a_mapping() -> None:
    seen: list[Any] = []

    def look(p: Any, x: Any) -> Any:
        seen.append((list(p), len(p), "bias" in p, "gain" in p, p.get("gain"), p.get("bias"), p.get("gain", 3)))
        return x

    tape: Tape[Any] = Tape()
    bias = tape.const(X)
    nn.Sequential(nn.Residual(Doing(look)))({"0.layer.bias": bias, "0.gain": bias}, tape.const(X))
    assert seen == [(["bias"], 1, True, False, None, bias, 3)]


def test_nested_dicts_are_no_parameters_of_a_tape() -> None:
    with pytest.raises(DTypeError) as caught:
        Tape().params(cast(Any, {"0": {"weight": X, "bias": X}}))
    assert str(caught.value) == (
        "params: argument 'values': expected arrays by name, got a dict for '0'; name its parts '0.weight', '0.bias'"
    )


def test_a_model_is_not_its_parameters() -> None:
    with pytest.raises(DTypeError) as caught:
        Tape[Any]().params(NESTED)
    assert str(caught.value) == (
        "params: argument 'values': expected a dict of arrays by name, as model.init(seed) makes it, got Sequential"
    )


# ------------------------------------------------------------------ parts


@dataclass(frozen=True)
class Reading(nn.Layer):
    """Attention to a memory, by a mask."""

    attention: nn.MultiHeadAttention

    def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        mask = x.tape.const(np.array([[True, False]] * 5))
        return self.part("attention", p, x, ctx, mask=mask, context=x[:2])


def test_a_part_takes_what_else_it_takes_by_name() -> None:
    model, tape = Reading(nn.MultiHeadAttention(3, 1)), Tape[Any]()
    p, x = tape.params(model.init(0)), tape.const(X)
    inside = {name.partition(".")[2]: value for name, value in p.items()}
    direct = model.attention(inside, x, mask=tape.const(np.array([[True, False]] * 5)), context=x[:2])
    assert model(p, x).numpy().tobytes() == direct.numpy().tobytes()


class Assigned(nn.Layer):
    """Parts set one by one, as in a `torch.nn.Module`, beside what is no layer."""

    def __init__(self) -> None:
        self.second = nn.Linear(3, 4)
        self.width, self.names = 4, ("a", "b")
        self.scale = nn.Parameter((4,), nn.init.ones())
        self.first = nn.BatchNorm(4)

    def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        return self.part("first", p, self.part("second", p, x, ctx), ctx)


def test_the_attributes_that_are_layers_are_the_parts() -> None:
    model = Assigned()
    assert list(model.children()) == ["second", "first"]
    assert list(model.init(0)) == ["scale", "second.weight", "second.bias", "first.weight", "first.bias"]
    assert list(model.init_state()) == ["first.running_mean", "first.running_var"]
    assert list(Block(nn.ReLU(), nn.Linear(2, 2)).init(0)) == ["scale", "second.weight", "second.bias"]


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ([nn.Linear(3, 4), nn.ReLU()], ["layers.0", "layers.1"]),
        ((nn.Linear(3, 4), nn.ReLU()), ["layers.0", "layers.1"]),
        ({"left": nn.Linear(3, 4), "right": [nn.ReLU()]}, ["layers.left", "layers.right.0"]),
        ([1, nn.Linear(3, 4)], ["layers.1"]),
    ],
)
def test_layers_in_lists_and_dicts_are_parts(layers: Any, names: list[str]) -> None:
    class Several(Assigned):
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers

        def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
            for name in names:
                x = self.part(name, p, x, ctx)
            return x

    model = Several()
    linear = next(name for name, part in model.children().items() if part == nn.Linear(3, 4) and name != "second")
    assert list(model.children()) == ["second", "first", *names]
    assert [n for n in model.init(0) if n.startswith("layers")] == [f"{linear}.weight", f"{linear}.bias"]
    p, tape = model.init(0), Tape[Any]()
    y = model(tape.params(p), tape.const(X))
    assert tape.node(y).scope == names[-1]
    assert model(p, X).tobytes() == y.numpy().tobytes()  # type: ignore[call-overload]
    del p[f"{linear}.bias"]
    with pytest.raises(DomainError, match=f"^{linear}: Linear.*: expected a parameter '{linear}.bias', got"):
        model(tape.params(p), tape.const(X))


@pytest.mark.parametrize("name", ["table", "part", "init"])
def test_a_field_with_the_name_of_a_method(name: str) -> None:
    with pytest.raises(DomainError) as caught:
        type("Tied", (nn.Layer,), {"__annotations__": {"width": int, name: nn.Layer}})
    assert str(caught.value) == f"Tied: a layer has a method {name!r}; choose another name for the field"


def test_a_part_that_is_not_there() -> None:
    with pytest.raises(DomainError) as caught:
        Assigned().part("third", {}, Tape[Any]().const(X), None)
    assert str(caught.value) == "Assigned: part: argument 'name': expected one of 'second', 'first', got 'third'"
    with pytest.raises(DomainError) as caught:
        nn.ReLU().part("0", {}, Tape[Any]().const(X), None)
    text = "expected one of none; parts are attributes that are layers, got '0'"
    assert str(caught.value) == f"ReLU: part: argument 'name': {text}"


def test_a_part_that_is_called_by_itself_looks_among_the_names_of_the_whole() -> None:
    class Direct(Assigned):
        def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
            return self.second(p, x)

    with pytest.raises(DomainError) as caught:
        eager(nn.Sequential(Direct()))
    assert str(caught.value) == (
        "0: Linear(in_features=3, out_features=4, bias=True): argument 'p': expected a parameter '0.bias', got "
        "'0.scale', '0.second.weight', '0.second.bias', '0.first.weight', '0.first.bias'; a layer's part is applied by "
        "self.part(name, p, x, ctx), which finds the part's own"
    )
