"""``dgrr bisect``: what it ends with, and git bisect run by it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dgrr
from dgrr.trace.cli import main

from .conftest import ModuleOf

RecordRun = Callable[..., Path]
Bisect = Callable[[str], tuple[int, str, str]]

MODEL = """\
import numpy as np

from dgrr.runtime import SGD, Trainer

SCALE = {scale}  # {note}
BATCHES = [np.arange(3.0), np.full(3, 0.5)]


def loss_fn(p, x):
    return ((p["w"] * x) ** 2).sum() * SCALE


def run():
    return loss_fn, BATCHES


def train(path):
    trainer = Trainer(loss_fn, {{"w": np.full(3, 0.1)}}, SGD(0.01), trace=path, mode="eager")
    trainer.fit(BATCHES, steps=9, progress=False)
"""


@pytest.fixture
def bisect(module_of: ModuleOf, capsys: pytest.CaptureFixture[str]) -> Bisect:
    """Runs the command in a folder with a model, `bisected_model`, and its trace, `t`."""
    model = MODEL.format(scale="1.0", note="") + "\n\ndef gone():\n    raise OSError\n"
    module_of("bisected_model", model).train("t")

    def run(command: str) -> tuple[int, str, str]:
        code = main(["bisect", *command.split()])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("t t", 0, "ok: equal to the bit: 9 steps"),
        ("t t --proven", 0, "both files are proven"),
        ("t --model bisected_model:run", 0, "every step was computed, in parts from 1 recorded states"),
        ("t --model bisected_model:run --proven --git", 0, "ok: "),
        ("t", 1, "expected two traces, PATH_A and PATH_B, got 1"),
        ("t t --model bisected_model:run", 1, "expected one trace with --model, got 2"),
        ("t t --rule m:R", 1, "argument --rule: it requires --model"),
        ("t --model bisected_model:gone", 1, "bisected_model:gone(): raised OSError"),
        ("t --model bisected_model:gone --git", 125, "bisected_model:gone(): raised OSError"),
        ("t --model nowhere:run --git", 125, "there is no module 'nowhere'"),
        ("missing t", 2, "cannot open missing"),
        ("missing t --git", 125, "cannot open missing"),
        ("t --git --modle m:f", 125, "unrecognized arguments: --modle"),
        ("t t --policy ulp=4", 1, "--policy"),
    ],
)
def test_answers(bisect: Bisect, command: str, code: int, text: str) -> None:
    found, out, err = bisect(command)
    assert (found, text in (err if code else out)) == (code, True), (out, err)
    assert "Traceback" not in err


def test_two_traces_are_answered_as_compare_answers(
    record_run: RecordRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record_run()
    record_run("other.dgrr", diverge=2)
    monkeypatch.chdir(tmp_path)
    said = [(main([name, "run.dgrr", "other.dgrr"]), capsys.readouterr().out) for name in ("compare", "bisect")]
    assert said[0] == said[1]
    assert said[0][0] == 4


def git(folder: Path, *args: str) -> str:
    who = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": "someone", f"GIT_{role}_EMAIL": "someone@example.org"}
    path = os.pathsep.join(filter(None, [str(Path(dgrr.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, **who, "PYTHONPATH": path}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):  # as for a user: the command itself must see to it
        env.pop(name, None)
    ended = subprocess.run(["git", *args], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.long
def test_git_bisect_run_finds_the_commit_that_changed_the_numbers(tmp_path: Path) -> None:
    """Eight commits of one size within seconds: one cannot be imported, the sixth changes a number by one ULP."""
    folder, trace = tmp_path / "project", tmp_path / "golden.dgrr"
    folder.mkdir()
    git(folder, "init", "--quiet")
    hashes: list[str] = []
    for i in range(8):
        scale = "1.0000000000000002" if i >= 5 else "1.0000000000000000" if i != 3 else "1.000000000000000 0"
        (folder / "model.py").write_text(MODEL.format(scale=scale, note=f"commit {i}"))
        git(folder, "add", "model.py")
        git(folder, "commit", "--quiet", "--message", f"commit {i}")
        hashes.append(git(folder, "rev-parse", "HEAD").strip())
    git(folder, "checkout", "--quiet", hashes[0])
    program = f"import model; model.train({str(trace)!r})"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(dgrr.__file__).parents[1]), str(folder)])}
    subprocess.run([sys.executable, "-B", "-c", program], env=env, check=True, timeout=300)
    git(folder, "bisect", "start", hashes[-1], hashes[0])
    command = [sys.executable, "-m", "dgrr", "bisect", "--git", str(trace), "--model", "model:run"]
    out = git(folder, "bisect", "run", *command)
    assert f"{hashes[5]} is the first bad commit" in out
    log = git(folder, "bisect", "log")
    assert f"# skip: [{hashes[3]}]" in log
    assert not list(folder.rglob("*.pyc"))
