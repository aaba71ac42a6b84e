"""`dgrr demo`: what it proves, prints and answers, and how it ends when something goes wrong."""

import io
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import SGD
from dgrr.trace import open_trace
from dgrr.trace.cli import demo, main
from dgrr.trace.cli.misread import drawn_digits, misread

pytestmark = pytest.mark.long

DGRR = Path(sys.executable).parent / "dgrr"
Ended = subprocess.CompletedProcess[str]


def shell(*arguments: str | Path, folder: Path) -> Ended:
    ended = subprocess.run([DGRR, "demo", *arguments], capture_output=True, text=True, cwd=folder, timeout=60)
    assert "Traceback" not in ended.stderr
    return ended


ROW = re.compile(r"^\[OK\]   (.*?)  +(\S+) +\d+\.\d\d s$", re.MULTILINE)


def checks(ended: Ended) -> list[tuple[str, str]]:
    """What was checked and what was found, from the lines that begin with a mark; every check must have held."""
    assert "[FAIL]" not in ended.stdout
    assert "\nverdict        every check held\n" in ended.stdout
    assert re.search(r"dgrr report \S.* -o report\.html\n$", ended.stdout)
    return ROW.findall(ended.stdout)


def test_the_default_run(tmp_path: Path) -> None:
    ended = shell(folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    size = (tmp_path / "demo.dgrr").stat().st_size
    found = dict(checks(ended))
    assert float(found.pop("accuracy at least 0.97")) >= 0.97
    assert found == {
        "state digest as published": "equal",
        "trace is valid": "ok",
        "every update recomputed from its gradient": "ok",
        "every gradient re-executed": "ok",
        f"bit 3 of byte {size // 2} flipped": "corrupt",
        "gradient of 2.weight altered at step 230": "update",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["demo.dgrr"]
    accuracy = re.search(r"^test accuracy  (0\.\d{4})$", ended.stdout, re.MULTILINE)
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.97
    assert f"\nstate digest   {demo.STATE_DIGEST}\n" in ended.stdout
    epochs = re.findall(r"^epoch (\d+)/20: step (\d+), loss \d+\.\d{4}, .* steps/s$", ended.stdout, re.MULTILINE)
    assert epochs == [(str(k), str(23 * k)) for k in range(1, 21)]
    assert "\x1b" not in ended.stdout
    assert "\r" not in ended.stdout
    assert "\nloss\n" in ended.stdout
    assert all(len(line) <= 80 for line in ended.stdout.splitlines())
    wrong = re.search(
        r"^(\d+) of 355 digits misread, most confident first\n\n(\d read as \d, \d+%)", ended.stdout, re.MULTILINE
    )
    assert wrong is not None
    assert int(wrong[1]) == round(355 * (1 - float(accuracy[1])))


def test_digests_alone_are_proven_by_model_and_data(tmp_path: Path) -> None:
    ended = shell("--record", "digest", folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    _, digest, valid, update, gradient, flipped, forged = checks(ended)
    assert digest == ("state digest as published", "equal")
    assert valid == ("trace is valid", "ok")
    assert update == ("digests alone prove no update", "unproven")
    assert gradient == ("every gradient re-executed", "ok")
    assert flipped[1] == "corrupt"
    assert forged == ("gradient of 2.weight altered at step 230", "gradient")


def test_other_arguments_and_a_path_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    out = folder / "digits [1] of mine.dgrr"
    options = ["--optimizer", "sgd", "--epochs", "2", "--batch", "50", "--seed", "7"]
    ended = shell(*options, "--out", out, folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    names = [what for what, _ in checks(ended)]
    proofs = ["trace is valid", "every update recomputed from its gradient", "every gradient re-executed"]
    assert [*names[:3], names[4]] == [*proofs, "gradient of 2.weight altered at step 29"]
    assert "SGD(lr=0.05, momentum=0.9" in ended.stdout
    assert f"\ntrace          {out} (" in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["a folder"]
    assert list(folder.iterdir()) == [out]
    with open_trace(out) as trace:
        assert (len(trace), trace.header.seed, trace.schema.groups[0].rule) == (58, 7, "sgd@1")


def test_misread_digits_stand_beside_each_other_the_surest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    outputs = np.array([[0.0, 1.0], [3.0, 0.0], [0.0, 9.0], [0.0, 800.0]], np.float32)
    found = misread(outputs, np.array([1, 1, 0, 0]))
    assert [(digit.index, digit.label, digit.read) for digit in found] == [(3, 0, 1), (2, 0, 1), (1, 1, 0)]
    assert [str(digit) for digit in found] == ["0 read as 1, 100%", "0 read as 1, 100%", "1 read as 0, 95%"]
    images = np.zeros((4, 64), np.float32)
    images[2, :8] = np.arange(8) / 7
    lines = drawn_digits(found, images)
    assert lines[:2] == ["0 read as 1, 100%   0 read as 1, 100%   1 read as 0, 95%", " " * 20 + "  ░░░░▒▒▒▒▓▓▓▓██"]
    assert lines[2:] == [""] * 7


# Ctrl-C.


def interrupted(folder: Path, epochs: str, line: str) -> Ended:
    """Send a SIGINT as soon as a line that begins with ``line`` is printed."""
    command = [str(DGRR), "demo", "--epochs", epochs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        assert any(text.startswith(line) for text in process.stdout)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def test_an_interrupted_run_says_how_many_steps_are_good(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, "100000", "epoch 2/")
    assert ended.returncode == 130
    said = re.fullmatch(
        r"dgrr: interrupted; demo\.dgrr\.partial is readable and holds (\d+) whole steps\n", ended.stderr
    )
    assert said is not None
    assert [path.name for path in tmp_path.iterdir()] == ["demo.dgrr.partial"]
    with open_trace(tmp_path / "demo.dgrr.partial", mode="tolerate_tail") as trace:
        assert len(trace) == int(said[1]) >= 46
        assert trace.damage is None
        assert trace.gradients(len(trace) - 1)["2.weight"].shape == (128, 128)


def test_an_interrupt_during_the_proofs_leaves_the_trace_complete(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, "10", "[OK]   trace is valid")
    assert (ended.returncode, ended.stderr) == (130, "dgrr: interrupted; demo.dgrr is complete\n")
    with open_trace(tmp_path / "demo.dgrr") as trace:
        assert (len(trace), trace.sealed) == (230, True)


# Refusals and failures.


def test_an_unfinished_trace_is_not_overwritten(tmp_path: Path) -> None:
    partial = tmp_path / "demo.dgrr.partial"
    partial.write_bytes(b"someone's run")
    ended = shell(folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("dgrr: ")
    assert "demo.dgrr.partial" in ended.stderr
    assert "epoch" not in ended.stdout
    assert partial.read_bytes() == b"someone's run"
    assert list(tmp_path.iterdir()) == [partial]


@pytest.mark.parametrize("out", ["missing/demo.dgrr", "file/demo.dgrr", "folder"])
def test_a_trace_that_cannot_be_written(tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    ended = shell("--epochs", "1", "--out", out, folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("dgrr: ")
    assert out in ended.stderr
    assert "[OK]" not in ended.stdout
    assert (tmp_path / "folder").is_dir()
    assert (tmp_path / "file").read_bytes() == b""


Demo = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    """Run the demo in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        return main(["demo", *arguments]), *capsys.readouterr()

    return run


def test_a_forgery_that_is_none_fails_the_demo(run_here: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "forge_gradient", lambda src, dst, step, name: shutil.copy(src, dst))
    code, out, err = run_here("--epochs", "1")
    assert (code, err) == (5, "")
    assert re.search(r"^\[FAIL\] gradient of 2\.weight altered at step 11 +ok +\d", out, re.MULTILINE)
    assert "\nverdict        a check FAILED\n" in out


def test_damage_that_is_none_fails_the_demo(run_here: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "flip_bit", lambda src, dst, offset, bit: shutil.copy(src, dst))
    code, out, _ = run_here("--epochs", "1")
    assert code == 5
    assert out.count("[FAIL]") == 1
    assert re.search(r"^\[FAIL\] bit 3 of byte \d+ flipped +ok +\d", out, re.MULTILINE)


def test_published_values_that_are_missed_fail_the_demo(run_here: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.Demo, "is_default", True)  # one epoch is not enough for them
    code, out, _ = run_here("--epochs", "1")
    assert code == 5
    assert re.search(r"^\[FAIL\] accuracy at least 0\.97 +0\.[0-8]\d{3} +\d", out, re.MULTILINE)
    assert f"       expected {demo.STATE_DIGEST}\n" in out
    assert out.count("[FAIL]") == 2


def test_a_run_that_diverges(run_here: Demo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(demo.OPTIMIZERS, "sgd", SGD(lr=1e30))
    code, _, err = run_here("--optimizer", "sgd")
    assert code == 4
    assert re.match(r"dgrr: fit: step [12]: the first non-finite value is node \d+", err)
    assert [path.name for path in tmp_path.iterdir()] == ["demo.dgrr"]


# A second run.


def test_the_demo_makes_its_own_trace_anew(run_here: Demo, tmp_path: Path) -> None:
    for epochs in ("2", "1"):
        assert run_here("--epochs", epochs)[0] == 0
    with open_trace(tmp_path / "demo.dgrr") as trace:
        assert len(trace) == 23
    assert [path.name for path in tmp_path.iterdir()] == ["demo.dgrr"]


def test_an_unfinished_trace_is_replaced_only_where_asked(run_here: Demo, tmp_path: Path) -> None:
    (tmp_path / "mine.dgrr.partial").write_bytes(b"mine")
    assert run_here("--epochs", "1", "--out", "mine.dgrr") == (
        2, "", "dgrr: mine.dgrr.partial already exists: choose another --out, or pass --overwrite to replace it\n"
    )  # fmt: skip


def test_a_trace_of_ones_own_is_replaced_only_where_asked(run_here: Demo, tmp_path: Path) -> None:
    mine = tmp_path / "mine.dgrr"
    mine.write_bytes(b"mine")
    assert run_here("--epochs", "1", "--out", "mine.dgrr") == (
        2, "", "dgrr: mine.dgrr already exists: choose another --out, or pass --overwrite to replace it\n"
    )  # fmt: skip
    assert mine.read_bytes() == b"mine"
    assert run_here("--epochs", "1", "--out", "mine.dgrr", "--overwrite")[0] == 0
    with open_trace(mine) as trace:
        assert len(trace) == 23


# A terminal.


def test_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    with subprocess.Popen(
        [DGRR, "demo", "--epochs", "2"], stdout=end, stderr=end, cwd=tmp_path, env=environment
    ) as process:
        os.close(end)
        text = everything(terminal)
    os.close(terminal)
    assert process.returncode == 0
    bar = text.split("[OK]")[0].split("epoch 2/2")[-1]
    assert "46/46" in bar
    assert "━" in bar
    assert "loss " in bar
    assert "step 46" not in text
    assert text.count("[OK]") == 5
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def everything(terminal: int) -> str:
    """What a pseudo-terminal shows until its other end is closed."""
    shown = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            read = b""
        if not read:
            return shown.decode()
        shown += read
