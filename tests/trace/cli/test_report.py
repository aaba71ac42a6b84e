"""``dgrr report``: what it answers, what it refuses, and that it follows a run that goes on."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import NUMERICS
from dgrr.trace import CompletedStep
from dgrr.trace.cli import main
from dgrr.trace.cli.commands.looking import report

from ...keeping import recorder_of
from .conftest import ModuleOf

MODULE = """
import numpy as np

BATCHES = [np.arange(3.0), np.ones(3), np.array([2.0, 2.0, 4.0])]


def loss_fn(p, x):
    return (p["w"] * x).sum()


def run():
    return loss_fn, iter(BATCHES)  # an iterator: each use of the model asks for a new one
"""


@pytest.fixture
def model(module_of: ModuleOf) -> Any:
    """A module with a run, which is recorded beside it, twice."""
    model = module_of("model_of_report", MODULE)
    for path, rate in (("run.dgrr", 0.5), ("other.dgrr", 0.25)):
        Trainer(model.loss_fn, {"w": np.ones(3)}, SGD(rate), trace=path).fit(model.BATCHES, steps=3)
    return model


def test_what_it_answers(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "run.dgrr"]) == 0
    found = re.fullmatch(
        r"report\.html: [\d,]+ bytes, open it in a browser\n  run\.dgrr: ok, 3 steps\n", capsys.readouterr().out
    )
    assert found and Path("report.html").read_text().startswith("<!doctype html>")


def test_two_runs_and_rebuilt_steps(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = "report run.dgrr other.dgrr -o both.html --model model_of_report:run --rebuild 2 --rebuild 0"
    assert main(command.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        "  run.dgrr: ok, 3 steps",
        "  other.dgrr: ok, 3 steps",
        "  other.dgrr: step 0 is the first that differs: it has another lr: 0.5 -> 0.25",
        "  steps rebuilt: 2, 0",
    ]
    assert '"gradient":"proven"' in Path("both.html").read_text()


def test_without_bokeh_one_line_says_what_to_install(
    model: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    assert main(["report", "run.dgrr"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == "dgrr: expected bokeh to be installed: pip install 'dgrr[report]'"


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("report", 1, "the following arguments are required: TRACE"),
        ("report run.dgrr -o run.dgrr", 1, "argument --out: run.dgrr is one of the traces: give the page another name"),
        (
            "report run.dgrr --rebuild 1",
            1,
            "argument --rebuild: a trace holds no tape: it requires --model, which recomputes",
        ),
        (
            "report run.dgrr --model model_of_report:run --rebuild 3",
            1,
            "argument --rebuild: run.dgrr has no step 3: expected 0 to 2",
        ),
        ("report run.dgrr --model model_of_report:none", 1, "argument --model: model_of_report:none: "),
        (
            "report run.dgrr --rule model_of_report:run",
            1,
            "argument --rule: model_of_report:run: expected a class of rules",
        ),
        ("report none.dgrr", 2, "cannot open none.dgrr"),
        ("report run.dgrr -o none/page.html", 2, "none"),
        ("report run.dgrr -o .", 2, "it exists and is not a regular file"),
        ("report old.dgrr", 1, "argument TRACE: old.dgrr is of version 1, whose steps dgrr inspect shows"),
        ("report run.dgrr --watch 0", 1, "argument --watch: expected 1 to 86400, got 0"),
    ],
)
def test_what_is_refused(model: Any, capsys: pytest.CaptureFixture[str], command: str, code: int, text: str) -> None:
    assert main(["train", "--steps", "2", "--out", "old.dgrr"]) == 0
    assert main(command.split()) == code
    assert text in capsys.readouterr().err
    assert not list(Path().glob("*.html*"))


def test_a_model_that_raises_is_a_finding(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model.loss_fn = lambda p, x: p["nothing"]
    assert main(["report", "run.dgrr", "--model", "model_of_report:run", "--rebuild", "1"]) == 0
    assert "  run.dgrr: gradient, 3 steps" in capsys.readouterr().out
    assert "step 1 cannot be rebuilt" in Path("report.html").read_text()


# ------------------------------------------------------------------ a run that goes on


def begin() -> tuple[Any, Callable[[int], None]]:
    """A recorder, and what records a step."""
    params = {"w": np.ones(2, np.float32)}
    options: dict[str, Any] = {"record": "grads", "numerics": NUMERICS, "rule": "mine@1", "hyperparameters": ["lr"]}
    recorder = recorder_of("new.dgrr", params=params, state={}, **options)

    def step(number: int) -> None:
        said: dict[str, Any] = {"loss": np.array(1.0, np.float32), "hyper": {"lr": 1.0}, "grads": params, "state": {}}
        recorder.step(CompletedStep(step=number, params=params, batch=[np.ones(1)], **said))
        recorder.commit()

    return recorder, step


def test_watching_follows_the_run_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    recorder, record = begin()
    record(0)
    pages, waits = list[str](), list[float]()

    def meanwhile(seconds: float) -> None:
        """What happens while the command sleeps: nothing at first, then a step, then the end."""
        pages.append(Path("report.html").read_text())
        waits.append(seconds)
        if len(pages) == 2:
            record(1)
        if len(pages) == 3:
            recorder.seal()

    monkeypatch.setattr(report.time, "sleep", meanwhile)
    assert main(["report", "new.dgrr", "--watch", "3"]) == 0
    assert "new.dgrr: unproven, 2 steps" in capsys.readouterr().out
    assert pages[0] == pages[1] and '"steps":1' in pages[1] and '"steps":2' in pages[2]
    assert all('"refresh":3.0' in page and '"sealed":false' in page for page in pages) and min(waits) >= 3
    assert '"refresh":null' in Path("report.html").read_text()


def test_watching_ends_by_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    recorder, record = begin()
    record(0)
    monkeypatch.setattr(report.time, "sleep", interrupt)
    assert main(["report", "new.dgrr", "--watch"]) == 130
    assert capsys.readouterr().err == "dgrr: interrupted\n"
    assert '"refresh":10.0' in Path("report.html").read_text()
    recorder.close()


def test_watching_a_file_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "new.dgrr", "--watch"]) == 2
    assert "cannot open new.dgrr" in capsys.readouterr().err
