"""Edits as texts: what they name in a past step, what they make of it, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Keep
from dgrr.trace import ConditionError, PastStep, at
from dgrr.trace.watching.edits import edits_of, read_edit

from .noted import BATCHES, Note, loss_fn, noting, trainer


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> tuple[PastStep, Note]:
    """A step of two micro-batches, and what the loss function notes of it."""
    path: Path = tmp_path_factory.mktemp("runs") / "run.dgrr"
    trainer("groups", Keep(path, record="digest")).fit(BATCHES, steps=4, progress=False)
    with noting(Note()) as notes:
        past = at(path, 0, loss_fn, BATCHES, mode="eager")
        return past, notes[0]


def edited(past: PastStep, *texts: str) -> Any:
    return edits_of([read_edit(text) for text in texts], past)


def test_tensors(steps: Any) -> None:
    past, _ = steps
    made = edited(past, '"0.weight" = "0.weight" * 2 - max("4.bias")', '"1.running_mean" = 1', "step = step + 3")
    w = past.params["0.weight"].astype(np.float64) * 2 - float(past.params["4.bias"].max())
    np.testing.assert_array_equal(made.values["0.weight"], w)
    assert made.values["1.running_mean"].tolist() == [1, 1, 1, 1]
    assert made.values["step"] == past.state["step"] + 3
    assert (made.grads, made.nodes) == ({}, {})


def test_gradients(steps: Any) -> None:
    past, _ = steps
    made = edited(past, 'grad("4.weight") = grad("4.weight") / norm(grad("4.weight")) + "4.weight"')
    g, w = past.consumed["4.weight"].astype(np.float64), past.params["4.weight"]
    np.testing.assert_allclose(made.grads["4.weight"], g / np.linalg.norm(g) + w, rtol=1e-12)
    assert made.names == ["grad(4.weight)"]


@pytest.mark.parametrize("name", ["h", '"4"', "node(h)"])
def test_nodes_of_every_micro_batch(steps: Any, name: str) -> None:
    past, note = steps
    made = edited(past, f"{name} = h * 0.5 + mean(wide)")
    assert [micro for micro, _ in made.nodes] == [0, 1]
    for (micro, id), array in made.nodes.items():
        h, wide = (note.values[n][micro].astype(np.float64) for n in ("h", "wide"))
        np.testing.assert_allclose(array, h * 0.5 + wide.mean(), rtol=1e-12)
        assert past.tapes[micro].value(id).numpy().tobytes() == note.values["h"][micro].tobytes()


def test_an_equals_sign_in_quotes_and_comparisons() -> None:
    assert read_edit('"a=b" = 1').changed.name == "a=b"
    with pytest.raises(ConditionError, match="edit: expected numbers, got what is true or false; at character 1 of"):
        read_edit("h = x == 1")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("h", "edit: expected NAME = VALUE, such as 'h3 = h3 * 0.5', got 'h'"),
        ("h == 1", "edit: expected NAME = VALUE, such as 'h3 = h3 * 0.5', got 'h == 1'"),
        ("= 1", "edit: expected one such as 'h3 = h3 * 0.5', got none"),
        ("h =", "edit: expected one such as 'h3 = h3 * 0.5', got none"),
        ("h * 2 = 1", "edit: expected a name, grad(…) or node(…) before the =, got 'h * 2'"),
        ("max(h) = 1", "edit: expected a name, grad(…) or node(…) before the =, got 'max(h)'"),
        ("0.weight = 1", "edit: invalid decimal literal; put names with dots in quotes"),
        ('update("0.weight") = 1', "edit: an update follows from the gradient: set grad(…); at character 1 of"),
        ("h = isnan(h)", "edit: expected numbers, got what is true or false; at character 1 of 'isnan(h)'"),
        ("hh = 1", "edit: a step has no 'hh': it has "),
        ("h = hh", "edit: a step has no 'hh': it has "),
        ('h = update("0.weight")', "edit: an update is not known before the step is done; at character 1 of"),
        ("grad(h) = 1", "edit: only gradients of parameters can be set: expected 0.weight, 1.weight"),
        ('grad("0.bias") = 1', "edit: only gradients of parameters can be set: expected 0.weight, 1.weight"),
        ('"0.weight" = h', "edit: step 0 has no 'h' here: it has 0.weight, "),
        ('"0.weight" = "4.bias"', "edit: expected shape (4, 3), or what fits it, got (2,); at character 1 of"),
        ("h = h + noisy", "edit: the shapes (6, 2) and (6, 3) do not fit each other; at character 1 of"),
    ],
)
def test_what_is_no_edit(steps: Any, text: str, error: str) -> None:
    past, _ = steps
    with pytest.raises(ConditionError) as raised:
        edited(past, text)
    assert str(raised.value).startswith(error)
