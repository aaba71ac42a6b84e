"""The kinds of fields: what they call wrong every layer refuses, in their words, and its docstring says so."""

from typing import Any

import pytest

from dgrr.tape import DomainError, nn
from dgrr.tape.nn.kinds import SIZE, Both, MultipleOf, either
from dgrr.tape.nn.layers.spatial.spatial import EachAxis
from dgrr.tape.record.kinds.values import ValueKind

from ...described import called_wrong, require_refused, without_kind
from .made import MADE, MAKERS

LAYERS = [make() for make in MAKERS]


FREE = {
    "Flatten": {"start_axis"},
    "GLU": {"axis"},
    "LogSoftmax": {"axis"},
    "PReLU": {"start"},
    "Pad": {"value", "mode"},
    "Softmax": {"axis"},
    "Tied": {"names"},
    "TransformerBlock": {"embed_dim", "num_heads", "dropout", "num_kv_heads", "softcap", "window"},
    "TransformerDecoderBlock": {"embed_dim", "num_heads", "dropout", "num_kv_heads", "softcap", "window"},
    "Unflatten": {"axis", "sizes"},
    "Upsample": {"mode"},
    "Linear": {"in_features", "out_features"},
}
"""Fields without a kind: those of which x or a part says whether they fit, and sizes that may be Dims."""


def test_there_are_many() -> None:
    assert sum(len(called_wrong(layer)) for layer in LAYERS) > 500


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_what_a_kind_calls_wrong_is_refused_in_its_words(layer: Any) -> None:
    require_refused(layer)


@pytest.mark.parametrize("name", MADE)
def test_every_number_and_word_of_a_layer_has_a_kind(name: str) -> None:
    assert without_kind(MADE[name]) == FREE.get(name, set())


@pytest.mark.parametrize("name", MADE)
def test_a_docstring_names_the_fields_that_are_refused(name: str) -> None:
    doc, kinds = type(MADE[name]).__doc__ or "", type(MADE[name]).kinds
    line = next((line for line in doc.splitlines() if line.startswith("    DomainError: ")), "")
    assert all(field in line or field in doc.split(line)[1] for field in kinds) and (line or not kinds)


# ------------------------------------------------------------------ the kinds themselves


def refused(kind: ValueKind, value: Any, **others: Any) -> str:
    with pytest.raises(DomainError) as caught:
        kind.require("Made", "n", {"n": value, **others})
    return str(caught.value).removeprefix("Made: argument 'n': ")


def test_a_multiple() -> None:
    kind = MultipleOf("of")
    for right, of in ((6, 3), (0, 3), (5, None), (5, 0), (5, -2)):
        kind.require("Made", "n", {"n": right, "of": of})
    assert refused(kind, 7, of=3) == "expected a multiple of of 3, got 7"
    assert [wrong.value for wrong in kind.wrong({"of": 3})] == [4, 16]
    assert kind.wrong({"of": None}) == kind.wrong({"of": 1}) == []
    assert kind.example().text("n") == "argument 'n': expected a multiple of of 2, got 3"


def test_both() -> None:
    kind = Both(SIZE, MultipleOf("of"))
    kind.require("Made", "n", {"n": 6, "of": 3})
    assert refused(kind, 0, of=3) == "expected an int of at least 1, got 0"
    assert refused(kind, 4, of=3) == "expected a multiple of of 3, got 4"
    assert kind.example().text("n") == "argument 'n': expected an int of at least 1, got 0"


def test_one_of_two_words() -> None:
    kind = either("up", "down")
    kind.require("Made", "n", {"n": "up"})
    assert [refused(kind, word) for word in ("UP", "")] == [f"expected 'up' or 'down', got {x}" for x in ("'UP'", "''")]


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (EachAxis(1), [(1,), (2, 3)], [(), (0,), 2, (1, 0)]),
        (EachAxis(1, "like"), [2, (1, 2)], [0, (1,), (1, 2, 3), (0, 1), ()]),
        (EachAxis(1, axes=3), [2, (1, 2, 3)], [0, (1, 2), (1, 2, 0)]),
        (EachAxis(0, "like", sides=True), [0, (0, 1), ((0, 1), (2, 0))], [-1, (0,), ((0, 1),), ((0, -1), (0, 0))]),
    ],
)
def test_a_number_for_each_axis(kind: EachAxis, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        kind.require("Made", "n", {"n": value, "like": (5, 5)})
    assert all(refused(kind, value, like=(5, 5)).endswith(f", got {value!r}") for value in wrong)


def test_the_axes_of_a_class_are_in_its_kinds_and_in_the_shapes_that_it_does_not_write() -> None:
    kinds: Any = {name: nn.MaxPool2d.kinds[name] for name in ("kernel_size", "stride", "padding", "dilation")}
    assert {kind.axes for kind in kinds.values()} == {2} and nn.MaxPool.kinds["stride"] != kinds["stride"]
    assert "\nShapes: x (*Bs, H, W) -> (*Bs, Ho, Wo); sizes as in `ops.max_pool`\n" in (nn.MaxPool2d.__doc__ or "")
    assert "\nShapes: x (*Bs, in_channels, length) -> (*Bs, out_channels, windows); sizes as in `ops.conv`\n" in (
        nn.Conv1d.__doc__ or ""
    )
