"""Batches that do not fit what the loss function does with them: what is said, eager and captured alike."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep, EagerStep, capture
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DgrrError, DTypeError, ShapeError, nn, ops

pytestmark = pytest.mark.quick

MODEL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
X, Y = np.ones((5, 3), np.float32), np.zeros(5, np.int64)


def pair(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def named(p: Any, batch: Any) -> Any:
    return ops.cross_entropy(MODEL(p, batch["x"]), batch["y"])


STEPS: dict[str, Callable[[Any, Any], object]] = {
    "eager": lambda loss_fn, batch: EagerStep(loss_fn, MODEL.init(0), Recipe(SGD(0.1)))(batch),
    "captured": lambda loss_fn, batch: capture(loss_fn, MODEL.init(0), SGD(0.1), batch),
}

LISTS = (
    "0: linear: argument 'x': expected a Var or an array, got a tuple of Vars; join Vars with ops.stack, and give a "
    "batch as arrays: a list in it is not one array but several"
)
BYTES = (
    "0: linear: argument 'x': expected float32 or float64, got int64; convert with ops.cast, "
    "images of whole numbers (uint8, int64 on a tape) with x.astype(np.float32) / 255"
)
HELD = "expected float32, float64, an integer type or bool, got"
REFUSED: list[tuple[Any, Any, type[DgrrError], str]] = [
    (pair, (X.tolist(), Y), DTypeError, LISTS),
    (pair, (X.tolist(), Y.tolist()), DTypeError, LISTS),
    (named, {"x": X.tolist(), "y": Y}, DTypeError, LISTS),
    (
        pair,
        {"x": X, "y": Y},
        DTypeError,
        "0: linear: argument 'x': expected a Var, a tensor, an array or a number, got str; "
        "a dict that is unpacked gives its names: take each part by name",
    ),
    (pair, (X.astype(np.uint8), Y), DTypeError, BYTES),
    (
        pair,
        (X, np.eye(2, dtype=np.float32)[Y]),
        DTypeError,
        "cross_entropy: argument 'labels': expected int64, got float32; "
        "give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)",
    ),
    (pair, (X.astype(np.float16), Y), DTypeError, f"batch[0]: {HELD} float16; convert with .astype first"),
    (named, {"x": X, "y": None}, DTypeError, f"batch['y']: {HELD} what is no number"),
    (
        pair,
        (X[:, :2], Y),
        ShapeError,
        "0: linear: argument 'w': expected shape (N, 2), got (4, 3); the last axis of x is 2, and w takes 3",
    ),
    (pair, (X, Y[:3]), ShapeError, "cross_entropy: argument 'labels': expected shape (5,), got (3,)"),
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("loss_fn", "batch", "error", "text"), REFUSED)
def test_a_batch_that_does_not_fit(step: str, loss_fn: Any, batch: Any, error: type[DgrrError], text: str) -> None:
    with pytest.raises(error) as caught:
        STEPS[step](loss_fn, batch)
    assert str(caught.value) == text


@pytest.mark.parametrize("step", STEPS)
def test_what_is_unpacked_wrongly_is_pythons_own(step: str) -> None:
    with pytest.raises(ValueError, match="too many values to unpack"):
        STEPS[step](pair, (X, Y, Y))
    with pytest.raises(KeyError, match="^'x'$"):
        STEPS[step](named, {"inputs": X, "y": Y})


@pytest.mark.parametrize("step", [EagerStep, CapturedStep])
def test_parameters_that_are_no_arrays_by_name(step: Any) -> None:
    for given, text in (
        (
            {"0": {"weight": X, "bias": X}, "2": {}},
            "params: expected arrays by name, got a dict for '0'; name its parts '0.weight', '0.bias'",
        ),
        (MODEL, "params: expected a dict of arrays by name, as model.init(seed) makes it, got Sequential"),
        ({"0.weight": None}, f"params '0.weight': {HELD} what is no number"),
    ):
        with pytest.raises(DTypeError) as caught:
            step(pair, given, Recipe(SGD(0.1)))
        assert str(caught.value) == text
    state = {"0": {"mean": X}}
    with pytest.raises(
        DTypeError, match="^model_state: expected arrays by name, got a dict for '0'; name its parts '0.mean'$"
    ):
        step(lambda p, batch, ctx: pair(p, batch), MODEL.init(0), Recipe(SGD(0.1)), model_state=state)


def test_bytes_that_are_cast_are_inputs() -> None:
    images = X.astype(np.uint8)
    for loss_fn, batch in (
        (pair, (images.astype(np.float32) / 255, Y)),
        (lambda p, batch: pair(p, (ops.cast(batch[0], np.float32), batch[1])), (images, Y)),
    ):
        EagerStep(loss_fn, MODEL.init(0), Recipe(SGD(0.1)))(batch)
