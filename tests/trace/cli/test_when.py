"""``dgrr when``: what is found, in words; what is refused."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.trace.cli import main

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
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with a run of six steps, which is recorded beside it: w is 1 - step / 2 * (1, 2, 3)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "model_of_when.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "model_of_when", raising=False)
    model = importlib.import_module("model_of_when")
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
            "dgrr: argument CONDITION: 'h' is nothing that run.dgrr records: it has step, loss, top, w, lr, "
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
