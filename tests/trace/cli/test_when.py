"""``dgrr when``: what is found, in words; what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.trace.cli import main

from .conftest import ModuleOf

MODULE = """
import numpy as np

BATCHES = [np.array([1.0, 2.0, 3.0])]


def loss_fn(p, x):
    h = p["w"] * x
    return h.sum(), {"top": h.max()}


def run():
    return loss_fn, BATCHES


def other():
    return (lambda p, x: (p["w"] * x * 2).sum()), BATCHES


def interrupted():
    def stops(p, x):
        raise KeyboardInterrupt
    return stops, BATCHES
"""
MODEL = ["--model", "model_of_when:run"]


@pytest.fixture
def model(module_of: ModuleOf) -> Any:
    """A module with a run of six steps, which is recorded beside it: w is 1 - step / 2 * (1, 2, 3)."""
    model = module_of("model_of_when", MODULE)
    keep = Keep("run.dgrr", record="digest", keyframe_every=2)
    run = Trainer(model.loss_fn, {"w": np.ones(3)}, SGD(0.5), trace=keep, mode="eager")
    run.fit(model.BATCHES, steps=6, progress=False)
    return model


@pytest.mark.usefixtures("model")
def test_a_node_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "run.dgrr", "min(h) < -10 and loss < 0", *MODEL]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "run.dgrr: min(h) < -10 and loss < 0: first at step 3",
        "  min(h)  -10.5",
        "  loss    -15",
        "  node    mul 'h', shape (3,)",
        '  line    model_of_when.py:8: h = p["w"] * x',
    ]


@pytest.mark.usefixtures("model")
def test_what_is_recorded_needs_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "run.dgrr", "top < -0.2"]) == 0
    assert capsys.readouterr().out == "run.dgrr: top < -0.2: first at step 3\n  top  -0.5\n"


@pytest.mark.usefixtures("model")
def test_never(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "run.dgrr", "loss > 100"]) == 4
    out, err = capsys.readouterr()
    assert (out, err) == ("run.dgrr: loss > 100: at none of steps 0 to 5\n", "")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("first", "last", "found"), [(0, 5, 3), (4, 5, 4), (0, 2, None), (5, 5, 5)])
def test_from_and_to(capsys: pytest.CaptureFixture[str], first: int, last: int, found: int | None) -> None:
    command = ["when", "run.dgrr", "min(h) < -10", *MODEL, "--from", str(first), "--to", str(last), "--json"]
    assert main(command) == (4 if found is None else 0)
    answer = json.loads(capsys.readouterr().out)
    shown = answer["result"]["watchpoint"]
    assert (shown["step"], shown["first"], answer["verdict"]) == (found, first, "never" if found is None else "ok")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("more", "code", "error"),
    [
        (["absmix(h) > 1"], 1, "dgrr: argument CONDITION: expected a function among absmax, max, "),
        (
            ["max(hh) > 1", *MODEL],
            1,
            "dgrr: argument CONDITION: a step has no 'hh': it has h, step, loss, top, w, lr, momentum, dampening, "
            "nesterov, weight_decay; did you mean 'h'?; at character 5 of 'max(hh) > 1'",
        ),
        (
            ["max(h) > 1"],
            1,
            "dgrr: argument CONDITION: run.dgrr records no 'h': it has step, loss, top, w, lr, "
            "momentum, dampening, nesterov, weight_decay; if it is a value of the tape, give the model: loss_fn and "
            "batches, or --model of the command; at character 5 of 'max(h) > 1'",
        ),
        (["min(w) < 0"], 1, "w is not recorded in record mode 'digest'; give the model"),
        (["max(grad(w)) < 0"], 1, "grad(w) is not recorded in record mode 'digest'; give the model"),
        (["max(grad(step)) < 0"], 1, "grad: 'step' is no parameter; expected w; at character 5 of"),
        (["max(update(h)) < 0"], 1, "update: expected a tensor of the run: w, step; at character 5 of"),
        (["max(w) > 1", "--from", "6"], 1, "argument --from: run.dgrr has no step 6: it has steps 0 to 5"),
        (["max(w) > 1", "--to", "6"], 1, "argument --to: run.dgrr has no step 6: it has steps 0 to 5"),
        (["max(w) > 1", "--to", "1", "--from", "2"], 1, "argument --to: expected a step from 2 on, got 1"),
        (["max(w) > 1", "--model", "model_of_when:nothing"], 1, "argument --model: model_of_when:nothing: "),
        (["max(w) > 1", "--model", "model_of_when:other"], 5, "dgrr: run.dgrr: gradient: step 0, 'loss': "),
        ([], 1, "the following arguments are required: CONDITION"),
        (["max(w) > 1", "--model", "model_of_when:interrupted"], 130, "dgrr: interrupted"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], more: list[str], code: int, error: str) -> None:
    before = Path("run.dgrr").read_bytes()
    assert main(["when", "run.dgrr", *more]) == code
    out, err = capsys.readouterr()
    assert out == "" and error in err and "Traceback" not in err
    assert Path("run.dgrr").read_bytes() == before


@pytest.mark.usefixtures("model")
def test_what_if_it_had_been_less(capsys: pytest.CaptureFixture[str]) -> None:
    """From step 3 on w goes on from (0, 0, 0): its gradient is the batch."""
    command = ["when", "run.dgrr", "min(h) < -10", *MODEL, "--edit", "w = w * 0"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[4:] == [
        "3 steps from step 3 on with w = w * 0:",
        "  loss edited       0 to -14  █▅▁",
        "  loss as recorded  -15 to -29  █▅▁",
    ]
    assert main([*command, "--steps", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["continued"] == {
        "first": 3,
        "steps": 2,
        "edits": ["w = w * 0"],
        "losses": [0.0, -7.0],
        "losses_before": [-15.0, -22.0],
        "ended": None,
    }


@pytest.mark.usefixtures("model")
def test_an_edit_that_ends_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "run.dgrr", "min(h) < -10", *MODEL, "--edit", "h = h / 0", "--steps", "9"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[4] == "9 steps from step 3 on with h = h / 0:"
    assert out[5].startswith("  loss as recorded  -15 to -29  ")
    assert out[6].startswith("  the edited run ended: the first non-finite value is node 2 (mul)")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["--edit", "w = 1"], "argument --edit: it requires --model, which trains on"),
        (["--steps", "3", *MODEL], "argument --steps: it requires --edit"),
        (["--edit", "w", *MODEL], "argument --edit: expected NAME = VALUE, such as 'h3 = h3 * 0.5', got 'w'"),
        (["--edit", "v = 1", *MODEL], "argument --edit: a step has no 'v': it has h, w, step"),
        (["--edit", "w = 1", "--steps", "0", *MODEL], "argument --steps: expected 1 to "),
    ],
)
def test_edits_that_are_refused(capsys: pytest.CaptureFixture[str], more: list[str], error: str) -> None:
    assert main(["when", "run.dgrr", "loss < -10", *more]) == 1
    out, err = capsys.readouterr()
    assert out == "" and error in err and "Traceback" not in err
