"""What layers are made with: plain values of the types that their fields say, or a dgrr error."""

import inspect
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, DgrrError, DomainError, GradientError, Tape, nn
from dgrr.tape.record.described import types_of

from .made import MADE

LEARNED = Tape[Any]().leaf(0.5)

NONSENSE: list[Any] = [
    "qq", None, 1.5, 1j, object(), [], (), {}, float("nan"), float("inf"), True, 10**30, 10**400, -(10**30), ["a"],
    (0.5,), b"x", np.zeros(2), LEARNED, AnyTensor.leaf(1.0), np.complex64(1), (True,), [[1], [1, 2]],
]  # fmt: skip

FIELDS = [(name, field) for name, layer in MADE.items() for field in types_of(type(layer))]


def test_every_layer_is_here_and_says_what_it_takes() -> None:
    layers = {
        name for name, found in vars(nn).items()
        if inspect.isclass(found) and issubclass(found, nn.Layer) and name in nn.__all__
    }  # fmt: skip
    assert layers - set(MADE) == {"Layer", "SameShape"}
    untyped = {
        (name, field.name)
        for name, layer in MADE.items()
        for field in fields(layer)  # type: ignore[arg-type]
        if field.name not in types_of(type(layer))
    }
    assert untyped == {
        ("Residual", "layer"),
        ("Sequential", "layers"),
        ("TransformerBlock", "activation"),
        ("TransformerBlock", "rotary"),
        ("TransformerDecoderBlock", "activation"),
        ("TransformerDecoderBlock", "rotary"),
        ("MultiHeadAttention", "rotary"),
        ("Tied", "model"),
    }


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_field_is_converted_or_refused(name: str, field: str) -> None:
    layer: Any = MADE[name]
    given = {f.name: getattr(layer, f.name) for f in fields(layer) if f.init}
    kind = types_of(type(layer))[field]
    for value in NONSENSE:
        try:
            made = type(layer)(**{**given, field: value})
        except DgrrError as error:
            if f"{name}: argument" not in str(error) and "Transformer" not in name:  # whose parts may refuse
                pytest.fail(str(error))
        else:
            found = getattr(made, field)
            assert type(found) in (int, float, bool, str, tuple, type(None)), (value, found)
            assert kind("", found) == found or found != found
            assert not isinstance(value, np.ndarray)


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, field in FIELDS if types_of(type(MADE[name]))[field].number]
)
def test_a_var_is_no_number_of_a_layer(name: str, field: str) -> None:
    """Its gradient would be lost."""
    with pytest.raises(
        GradientError, match=f"^{name}: argument '{field}': expected a number( or None)?, got a Var, whose"
    ):
        replace(MADE[name], **{field: LEARNED})  # type: ignore[type-var]


def test_numpys_numbers_are_taken_as_pythons() -> None:
    assert nn.Linear(np.int64(3), np.uint8(2)) == nn.Linear(3, 2)  # type: ignore[arg-type]
    assert nn.Conv(np.int32(3), 2, [np.int64(3), 1]) == nn.Conv(3, 2, (3, 1))  # type: ignore[arg-type]
    assert repr(nn.Dropout(np.float64(0.5))) == "Dropout(p=0.5)"
    assert nn.LayerNorm(np.int64(4), np.float32(0.5)) == nn.LayerNorm(4, 0.5)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Shifted(nn.Layer):
    by: float
    names: dict[str, int]
    times: int = 1

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        return x + self.by * self.times


def test_a_layer_of_ones_own_is_held_to_its_fields() -> None:
    x = Tape[Any]().leaf([1.0])
    assert Shifted(np.float32(0.5), {"a": 1}, np.int64(2))({}, x).numpy().tolist() == [2.0]  # type: ignore[arg-type]
    with pytest.raises(DomainError, match=r"^Shifted: argument 'times': expected a whole number, got 0.5$"):
        Shifted(0.5, {}, 0.5)  # type: ignore[arg-type]
    with pytest.raises(GradientError, match="^Shifted: argument 'by': expected a number, got a Var"):
        Shifted(x, {})  # type: ignore[arg-type]
