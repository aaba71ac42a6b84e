"""``dgrr fork``: a run that goes on from a past step, in words, as a trace, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.trace import open_trace, replay
from dgrr.trace.cli import main
from dgrr.trace.v2.write.recorder import TraceRecorder

from .conftest import ModuleOf

MODULE = """
import numpy as np
from dgrr.runtime import SGD, Adam

BATCHES = [np.arange(3.0), np.ones(3), np.array([2.0, 2.0, 4.0])]


def loss_fn(p, x):
    return (p["w"] * x).sum() + p["b"].sum()


def run():
    return loss_fn, BATCHES


def rest():
    return loss_fn, BATCHES[2:] + BATCHES[:2]


def slow():
    return SGD(0.25)


def nothing():
    return None


def huge():
    return SGD(1e308)

"""
FORK = ["fork", "run.dgrr", "--step", "2", "--steps", "3", "--model", "model_of_fork:run", "-o", "new.dgrr"]


@pytest.fixture(autouse=True)
def model(module_of: ModuleOf) -> Any:
    """A module with a run of two groups of parameters, which is recorded beside it."""
    model = module_of("model_of_fork", MODULE)
    groups = {"w": SGD(0.5), "b": SGD(0.125)}
    run = Trainer(model.loss_fn, {"w": np.ones(3), "b": np.ones(1)}, groups, mode="eager", trace="run.dgrr")
    run.fit(model.BATCHES, steps=4, progress=False)
    return model


def test_with_nothing_changed_it_is_the_run(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FORK[:5], "2", *FORK[6:]]) == 0
    with open_trace("run.dgrr") as run, open_trace("new.dgrr") as new:
        assert new.loss.tolist() == run.loss[2:].tolist()
        assert (new.header.parent_root[:16], new.header.parent_steps) == (run.root, 2)
        loss = run.loss[3]
    said = capsys.readouterr().out
    assert said == (
        f"new.dgrr: steps 2 to 3 of run.dgrr again, as steps 0 to 1; the last loss is {loss}; in run.dgrr it is "
        f"{loss}\n"
    )


@pytest.mark.parametrize(
    ("options", "hyper"),
    [
        (["--set", "lr=0.25"], {"lr": 0.25, "lr#1": 0.125}),
        (["--set", "lr#1=0.5", "--set", "lr=1"], {"lr": 1.0, "lr#1": 0.5}),
        (["--optimizer", "model_of_fork:slow", "--record", "digest"], {"lr": 0.25}),
    ],
)
def test_with_something_changed(
    model: Any, capsys: pytest.CaptureFixture[str], options: list[str], hyper: dict[str, float]
) -> None:
    assert main([*FORK, *options, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    with open_trace("new.dgrr") as new:
        assert {name: new[2].hyper[name] for name in hyper} == hyper
        assert ("lr#1" in new[0].hyper) is ("lr#1" in hyper)
        assert new.header.mode.name.lower() == ("digest" if "digest" in options else "grads")
        assert result["loss"] == new.loss[2]
    assert (result["first"], result["steps"], result["trace"], result["loss_before"]) == (2, 3, "new.dgrr", None)
    loss_fn, batches = model.rest()
    assert replay("new.dgrr", loss_fn=loss_fn, batches=batches).findings == []


@pytest.mark.parametrize(
    ("more", "code", "error"),
    [
        (["--set", "rate=1"], 1, "argument 'hyper': expected names among lr, "),
        (["--set", "lr"], 1, "argument --set: expected NAME=NUMBER, such as lr=0.01, got 'lr'"),
        (["--set", "lr=fast"], 1, "argument --set: expected NAME=NUMBER, such as lr=0.01, got 'lr=fast'"),
        (["--set", "lr=1", "--optimizer", "m:f"], 1, "argument --optimizer: not allowed with argument --set"),
        (["--optimizer", "model_of_fork:nothing"], 1, "argument --optimizer: model_of_fork:nothing(): "),
        (["--optimizer", "model_of_fork:huge"], 4, "dgrr: new.dgrr: "),
        (["-o", "run.dgrr"], 1, "argument --out: run.dgrr already exists"),
        (["-o", "missing/new.dgrr"], 2, "trace: cannot create missing/new.dgrr.partial: No such file or directory"),
        (["--step", "4"], 1, "argument --step: run.dgrr has no step 4: it has steps 0 to 3"),
        (["--steps", "0"], 1, "argument --steps: expected 1 to "),
        (["--model", "model_of_fork:rest"], 5, "run.dgrr: data: step 2: the batch is not the one that was recorded"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], more: list[str], code: int, error: str) -> None:
    before = Path("run.dgrr").read_bytes()
    assert main([*FORK, *more]) == code
    out, err = capsys.readouterr()
    assert error in err and out == ""
    assert Path("run.dgrr").read_bytes() == before


@pytest.mark.parametrize(("error", "code"), [(ValueError("no more"), 1), (KeyboardInterrupt(), 130)])
def test_a_fork_that_fails_leaves_no_file(
    model: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def steps_of(number: int) -> Any:
        seen = []

        def recorded(self: Any, done: Any) -> None:
            seen.append(done)
            if len(seen) > number:
                assert Path("new.dgrr.partial").exists()
                raise error
            step(self, done)

        return recorded

    step = TraceRecorder.step
    monkeypatch.setattr(TraceRecorder, "step", steps_of(1))
    before = sorted(Path().iterdir())
    assert main(FORK) == code
    assert sorted(Path().iterdir()) == before


def test_an_unfinished_run_of_the_name_stays(capsys: pytest.CaptureFixture[str]) -> None:
    Path("new.dgrr.partial").write_bytes(b"of another")
    assert main(FORK) == 1
    said = capsys.readouterr().err
    assert "argument --out: new.dgrr.partial already exists: its run is unfinished, or still going on" in said
    assert "choose another name, or remove it" in said
    assert Path("new.dgrr.partial").read_bytes() == b"of another"


def test_a_trace_of_version_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--steps", "2", "--out", "v1"]) == 0
    assert main(["fork", "v1", *FORK[2:]]) == 1
    assert "argument PATH: v1 is of version 1, whose model is fixed" in capsys.readouterr().err


def test_a_rollback_beside_an_unfinished_run_of_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("new.dgrr.partial").write_bytes(Path("run.dgrr").read_bytes())
    assert main(["rollback", "run.dgrr", "--step", "2", "--out", "new.dgrr"]) == 1
    assert capsys.readouterr().err == (
        "dgrr: argument --out: rollback: new.dgrr.partial exists; rollback writes only new files; choose another name\n"
    )


def test_an_edit(capsys: pytest.CaptureFixture[str]) -> None:
    with open_trace("run.dgrr") as run:
        w = run.keyframe(0)["w"]
    assert main(["fork", "run.dgrr", "--step", "0", *FORK[4:], "--edit", "w = w * 0", "-o", "edited"]) == 0
    with open_trace("edited") as child:
        assert (child.keyframe(0)["w"] == w * 0).all()
    assert main(["fork", "run.dgrr", "--step", "0", *FORK[4:], "--edit", "v = 0", "-o", "none"]) == 1
    assert "argument --edit: a step has no 'v': it has " in capsys.readouterr().err
    assert not Path("none").exists() and not Path("none.partial").exists()
