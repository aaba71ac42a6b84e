"""A parameter that is not there: every layer names itself, the parameter and those that there are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Context, DomainError, Random, Tape, nn

from .made import MAKERS

ROWS, IMAGES, INDICES = np.ones((2, 4)), np.ones((3, 4, 5, 5)), np.ones((2, 3), np.int64)
SEQUENCES = np.ones((5, 3, 4))
EMBEDDED = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))
CASES: list[tuple[nn.Layer, Any]] = [
    (nn.Linear(4, 3), ROWS),
    (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), ROWS),
    (nn.Residual(nn.Linear(4, 4)), ROWS),
    (nn.Embedding(10, 4), INDICES),
    (nn.Tied(EMBEDDED, {"1.weight": "0.weight"}), INDICES),
    (nn.Conv(4, 6, (3, 2)), IMAGES),
    (nn.Conv1d(4, 6, 3), IMAGES[:, :, 0]),
    (nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), IMAGES),
    (nn.ConvTranspose(4, 6, (3, 2)), IMAGES),
    (nn.ConvTranspose1d(4, 6, 3), IMAGES[:, :, 0]),
    (nn.ConvTranspose2d(4, 6, 3), IMAGES),
    (nn.LayerNorm(4), ROWS),
    (nn.RMSNorm(4), ROWS),
    (nn.GroupNorm(2, 4), IMAGES),
    (nn.InstanceNorm(4, affine=True), IMAGES),
    (nn.BatchNorm(4), IMAGES),
    (nn.MultiHeadAttention(4, 2), SEQUENCES),
    (nn.TransformerBlock(4, 2, 8), SEQUENCES),
    (nn.TransformerDecoderBlock(4, 2, 8), SEQUENCES),
    (nn.LearnedPositions(10, 4), SEQUENCES),
    (nn.RNNCell(4, 3), ROWS),
    (nn.LSTMCell(4, 3), ROWS),
    (nn.GRUCell(4, 3), ROWS),
    (nn.RNN(4, 3, 2, bidirectional=True), SEQUENCES),
    (nn.LSTM(4, 3), SEQUENCES),
    (nn.GRU(4, 3), SEQUENCES),
    (nn.PReLU(4), IMAGES),
    (nn.SwiGLU(4, 6, bias=True), ROWS),
    (nn.Bilinear(4, 4, 2), ROWS),
]
DROPPED = [(layer, x, name) for layer, x in CASES for name in layer.parameters()]


def call(layer: Any, params: dict[str, Any], x: Any) -> Any:
    tape: Tape[Any] = Tape()
    state = {name: tape.const(value) for name, value in layer.init_state(np.float64).items()}
    ctx = Context(True, Random(tape.const(np.array(0)), seed=0), state)
    second = {nn.Bilinear: "other", nn.TransformerDecoderBlock: "context"}.get(type(layer))
    more = {} if second is None else {second: tape.const(x)}
    return layer(tape.params(params), tape.const(x), ctx, **more)


def refused(layer: Any, params: dict[str, Any], x: Any) -> str:
    with pytest.raises(DomainError) as caught:
        call(layer, params, x)
    return str(caught.value)


def test_every_layer_with_parameters_is_among_them() -> None:
    layers = {type(layer) for make in MAKERS if (layer := make()).parameters()}
    assert layers == {type(layer) for layer, _ in CASES}


def owner(layer: nn.Layer, name: str) -> tuple[str, nn.Layer]:
    """The place of the part whose own parameter this is, and the part."""
    *places, _ = name.split(".")
    for place in places:
        layer = layer.children()[place]
    return "".join(f"{place}." for place in places), layer


@pytest.mark.parametrize(("layer", "x", "name"), DROPPED, ids=lambda each: each if isinstance(each, str) else "")
def test_it_is_named_with_the_layer_and_what_there_is(layer: nn.Layer, x: Any, name: str) -> None:
    params = layer.init(0, np.float64)
    call(layer, params, x)
    del params[name]
    place, part = owner(layer, name)
    where = f"{place[:-1]}: " if place else ""
    shared = dict(layer.names) if isinstance(layer, nn.Tied) else {}
    have = [*params, *(each for each, source in shared.items() if source in params)]
    beside = [each for each in have if each.startswith(place)] or have
    text = refused(layer, params, x)
    listed = ", ".join(map(repr, beside[:8])) + (f" and {len(beside) - 8} more" if beside[8:] else "")
    assert text == f"{where}{part!r}: argument 'p': expected a parameter {name!r}, got {listed or 'none'}"


def test_a_shared_name_is_not_said_to_be_there_without_what_it_stands_for() -> None:
    model = nn.Tied(nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4)), {"1.weight": "0.weight"})
    assert refused(model, {"1.bias": np.ones(4)}, ROWS).endswith("expected a parameter '0.weight', got '1.bias'")


@dataclass(frozen=True)
class Scaled(nn.Layer):
    """A layer that reads its parameters from the mapping itself."""

    size: int

    def own_parameters(self) -> dict[str, nn.Parameter]:
        return {name: nn.Parameter((self.size,), nn.init.ones()) for name in ("scale", "shift")}

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        return x * p["scale"] + p["shift"]


@dataclass(frozen=True)
class Around(nn.Layer):
    """A layer that hands its parameters on as they are."""

    inner: nn.Layer

    def own_parameters(self) -> Any:
        return self.inner.own_parameters()

    def children(self) -> Any:
        return {}

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        return self.inner(p, x, ctx)


@pytest.mark.parametrize(
    ("layer", "place"),
    [(Scaled(4), ""), (nn.Sequential(Scaled(4)), "0"), (nn.Residual(nn.Residual(Scaled(4))), "layer.layer"),
     (Around(Scaled(4)), ""), (nn.Tied(Scaled(4), {}), "")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["scale", "shift"])
def test_a_layer_that_reads_the_mapping_says_it_too(layer: nn.Layer, place: str, name: str) -> None:
    prefix, where = (f"{place}.", f"{place}: ") if place else ("", "")
    other = {"scale": "shift", "shift": "scale"}[name]
    params = {f"{prefix}{other}": np.ones(4)}
    expected = f"{where}Scaled(size=4): argument 'p': expected a parameter '{prefix}{name}', got '{prefix}{other}'"
    assert refused(layer, params, ROWS) == expected
    evaluated: Any = layer
    with pytest.raises(DomainError) as caught:
        evaluated(params, ROWS)
    assert str(caught.value) == expected


def test_without_any_and_without_a_mapping() -> None:
    assert refused(Scaled(4), {}, ROWS) == "Scaled(size=4): argument 'p': expected a parameter 'scale', got none"
    layer: Any = Scaled(4)
    with pytest.raises(DomainError, match="expected a parameter 'scale', got NoneType; give a dict of Vars by name"):
        layer(None, Tape().const(ROWS))


def test_it_is_a_key_error_too_and_others_are_left_alone() -> None:
    class Odd(nn.Layer):
        def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
            return x * {"mine": 1.0}["yours"] if "scale" in p else p.get("scale", x) * p["scale"]

    odd: Any = Odd()
    with pytest.raises(KeyError, match="expected a parameter 'scale', got none"):
        odd({}, Tape().const(ROWS))
    tape: Tape[Any] = Tape()
    with pytest.raises(KeyError, match="^'yours'$"):
        odd(tape.params({"scale": ROWS}), tape.const(ROWS))
