"""``dgrr cache warm``: what it compiles is there when it is first used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.tape.numerics.engine.side_by_side import Task
from dgrr.tape.numerics.engine.threads import THREADS
from dgrr.tape.ops import OPS
from dgrr.trace.cli import warm
from dgrr.trace.cli.main import main

STEP = """
import numpy as np
from dgrr.runtime import SGD, capture

def make():
    return capture(lambda p, batch: (p["w"] * batch).sum(), {"w": np.ones(3)}, SGD(0.5), np.ones(3))
"""


def dgrr(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder, with kernels kept below it."""
    kept = os.environ | {"DGRR_CACHE_DIR": str(folder / "kernels")} | variables
    command = [sys.executable, "-m", "dgrr", "cache", *arguments]
    return subprocess.run(command, env=kept, cwd=folder, capture_output=True, text=True)


def test_a_model_is_compiled_ahead(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(STEP)
    ended = dgrr(tmp_path, "warm", "mine:make")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert any(path.name.startswith("mul-") for path in (tmp_path / "kernels").rglob("*.nbc"))
    assert f"{tmp_path / 'kernels'}: " in ended.stdout
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").rglob("*.nbc")}
    assert dgrr(tmp_path, "warm", "mine:make").returncode == 0
    assert times.keys() == set((tmp_path / "kernels").rglob("*.nbc"))


def test_what_cannot_be_compiled_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In forked processes, whose errors nobody sees and of which one dies."""
    monkeypatch.setenv("DGRR_CACHE_DIR", str(tmp_path / "kernels"))
    parent = os.getpid()

    def dies() -> None:
        assert os.getpid() != parent, "it would end the tests"
        os._exit(0)

    def fails() -> None:
        raise ValueError("no\n  such kernel")

    given = [Task("relu", lambda: None), Task("fails", fails), Task("dies", dies)]
    monkeypatch.setattr(warm, "tasks", lambda: given)
    monkeypatch.setattr(THREADS, "count", 2)
    code = main(["cache", "warm"])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == f"{tmp_path / 'kernels'}: 0 files of compiled kernels, 0 bytes\n"
    assert err.splitlines()[0] == "dgrr: not everything was compiled:"
    assert "  fails: ValueError: no such kernel" in err
    assert "  dies: its process ended before it was compiled" in err
    assert "relu" not in err


def test_a_step_goes_with_warm_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "show", "mine:make"]) == 1
    assert "argument MODULE:FUNCTION: it goes with warm, not with show" in capsys.readouterr().err


def test_without_a_model_every_op_is_compiled_and_what_trains() -> None:
    tasks = {task.name: task for task in warm.tasks()}
    assert OPS.keys() < tasks.keys()
    assert tasks.keys() - OPS.keys() == {*warm.NETWORKS, "sgd@1", "adam@1", "adamw@1"}
    for name in ("a perceptron", "add", "where", "argmax", "sgd@1"):
        tasks[name].compile()
