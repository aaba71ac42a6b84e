"""Files that are none, names that no system takes, readers that stop, Ctrl-C: an exit code and a line, no traceback."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dgrr.trace.cli import commands, main
from dgrr.trace.cli.answer import Fact, done

RecordRun = Callable[..., Path]
Said = tuple[int, str, str]
LONG = "x" * 300

READERS = [
    "validate {}",
    "replay {}",
    "replay --trace {} --step 0",
    "inspect {}",
    "rollback {} --step 0",
    "recover {} -o new",
    "compare {} run.dgrr",
    "compare run.dgrr {}",
    "diff {} --model m:f",
    "audit {} --model m:f",
    "audit run.dgrr --check {}",
]
WRITERS = [
    "train --steps 1 --out {}",
    "rollback run.dgrr --step 1 --out {}",
    "rollback v1 --step 0 --out {}",
    "recover run.dgrr -o {}",
    "demo --epochs 1 --out {}",
    "test record {} --train my_training:train",
]
"""Commands that are refused before they train."""

TRAINING = """
import numpy as np
from dgrr.runtime import SGD, Trainer

def train(trace):
    Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(3)}, SGD(0.1), trace=trace).fit([np.ones(3)], steps=2)
"""


@pytest.fixture
def dgrr(
    record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Said]:
    """Run in this process, in a folder with what there may be under a name."""
    record_run()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "my_training.py").write_text(TRAINING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert main(["train", "--steps", "1", "--out", "v1"]) == 0
    capsys.readouterr()

    def run(command: str) -> Said:
        code = main(command.split())
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("folder", 2, "it is a folder"),
        ("fifo", 2, "it is not a regular file"),
        ("/dev/null", 2, "it is not a regular file"),
        ("loop", 2, "Too many levels of symbolic links"),
        ("run.dgrr/more", 2, "Not a directory"),
        (LONG, 2, "File name too long"),
        ("empty", 3, "empty"),
    ],
)
def test_what_cannot_be_read(dgrr: Callable[[str], Said], command: str, name: str, code: int, text: str) -> None:
    found, out, err = dgrr(command.format(name))
    assert (found, out) == (code, "")
    assert text in err
    assert err.startswith("dgrr: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("name", ["folder", "fifo", "loop", "run.dgrr/more", LONG])
def test_what_cannot_be_written(dgrr: Callable[[str], Said], tmp_path: Path, command: str, name: str) -> None:
    before = sorted(os.listdir(tmp_path))
    code, out, err = dgrr(command.format(name))
    only_new = {"rollback run": ("folder", "fifo"), "recover": ("folder", "fifo", "loop")}
    exists = any(command.startswith(c) and name in names for c, names in only_new.items())
    assert code == (1 if exists else 2)  # where it exists the command line is wrong
    assert "[OK]" not in out
    assert name in err
    assert err.startswith("dgrr: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "fifo").is_fifo()


def test_a_file_that_may_not_be_read(dgrr: Callable[[str], Said], monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: the superuser may read everything."""
    real = os.open

    def refusing(path: str, *rest: int) -> int:
        if path == "run.dgrr":
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest)

    monkeypatch.setattr(os, "open", refusing)
    assert dgrr("validate run.dgrr") == (2, "", "dgrr: cannot open run.dgrr: Permission denied\n")


def test_a_folder_that_is_gone(dgrr: Callable[[str], Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert dgrr(f"replay {tmp_path}/run.dgrr --model m:f")[0] == 2


@pytest.mark.parametrize("command", [command.name for command in commands.commands()])
def test_help_has_examples_that_can_be_parsed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 110
    lines = [shlex.split(line.split("   ")[0]) for line in text.split("examples:\n")[1].splitlines()]
    assert all(words[0] == "dgrr" for words in lines)
    answered = [known._replace(run=lambda args: done(Fact("parsed", True, "parsed"))) for known in commands.commands()]
    monkeypatch.setattr(commands, "commands", lambda argv: answered)
    for words in lines:
        assert main(words[1:]) == 0, words
        assert capsys.readouterr().out == "parsed\n"


def test_a_reader_that_is_gone(dgrr: Callable[[str], Said], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    line = [sys.executable, "-m", "dgrr", *["inspect", "run.dgrr", "--step", "0", "--json"]]
    ended = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=60)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (2, "")


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    """Of the demo's first line; what comes next, the progress of the training, is not written by us."""
    line = [sys.executable, "-m", "dgrr", "demo", "--epochs", "300"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, text=True, cwd=tmp_path, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "digits to train on" in process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=60) == 2
    assert err == ""


SLOW = """
import time

def run():
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.long
def test_ctrl_c_in_a_function_of_ones_own(dgrr: Callable[[str], Said], tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    line = [sys.executable, "-m", "dgrr", "replay", "run.dgrr", "--model", "slow:run"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, text=True, cwd=tmp_path, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "dgrr: interrupted\n")
