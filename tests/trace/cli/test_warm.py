"""``dgrr cache warm``, ``export``, ``import``: what one machine has compiled is there when another first uses it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgrr.base import kernel_archive, kernel_cache
from dgrr.tape.numerics.engine import code_for
from dgrr.tape.numerics.engine.code_for import levels, target
from dgrr.tape.numerics.engine.disk_cache import compiled_by
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


@pytest.mark.long
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


ELSEWHERE = """
import llvmlite.binding
from numba.core import compiler

llvmlite.binding.get_host_cpu_name = lambda: "another"
compiled, original = [], compiler.compile_extra
def noted(typing, target, function, *rest, **named):
    compiled.append(function.__qualname__)
    return original(typing, target, function, *rest, **named)
compiler.compile_extra = noted

import mine
from dgrr.tape import ops, Tape
print(mine.make()(mine.np.ones(3)), compiled)
ops.relu(Tape().leaf([1.0]))
print("relu" in compiled)
"""
"""What says, on a machine with another CPU, what it compiles."""


@pytest.mark.skipif(len(levels()) == 1, reason="one level alone")
@pytest.mark.long
def test_kernels_for_a_level_serve_another_machine(tmp_path: Path) -> None:
    other, file = tmp_path / "other", str(tmp_path / "kernels.tar")
    other.mkdir()
    (tmp_path / "mine.py").write_text(STEP)
    assert dgrr(tmp_path, "warm", "mine:make", "--level", "v2").stdout.splitlines()[1].startswith("  x86-64-v2: ")
    count = len(list((tmp_path / "kernels" / "x86-64-v2").glob("*.nbc")))
    assert dgrr(tmp_path, "export", file, "--level", "v2").stdout == f"{file}: {count} files of kernels for x86-64-v2\n"
    assert dgrr(other, "import", file).stdout == (
        f"{file}: {count} files of kernels for x86-64-v2, {count} of them new\n"
        f"{file}: this machine uses {target()[1]}; with NUMBA_CPU_NAME=x86-64-v2 a program uses these\n"
    )
    variables = {"DGRR_CACHE_DIR": str(other / "kernels"), "NUMBA_CPU_NAME": "x86-64-v2", "DGRR_THREADS": "1"}
    command = [sys.executable, "-c", ELSEWHERE]
    ran = subprocess.run(command, env=os.environ | variables, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "3.0 []\nTrue\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in a folder of kernels, which is for this machine's level."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DGRR_CACHE_DIR", "kernels")
    assert kernel_cache.keep(f"{target()[1]}/add-1.nbc", b"code")
    return tmp_path / "kernels" / target()[1] / "add-1.nbc"


def test_kernels_by_others_are_refused(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = compiled_by("x86-64-v3")
    for key, theirs in {"compiler": "numba 0.1", "machine": "riscv64-linux"}.items():
        kernel_archive.pack("kernels.tar", here | {key: theirs}, [f"{target()[1]}/add-1.nbc"])
        assert main(["cache", "import", "kernels.tar"]) == 2
        assert capsys.readouterr().err == (
            f"dgrr: kernels.tar: expected kernels of {', '.join(here.values())}, "
            f"got those of {', '.join((here | {key: theirs}).values())}; export them where the same is installed\n"
        )


def test_an_archive_that_is_none_is_refused(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kernels.tar").write_bytes(b"none")
    assert main(["cache", "import", "kernels.tar"]) == 2
    assert capsys.readouterr().err.startswith("dgrr: kernels.tar: expected what `dgrr cache export` wrote, whole, got ")
    assert main(["cache", "import", "missing.tar"]) == 2
    assert capsys.readouterr().err == "dgrr: missing.tar: No such file or directory\n"


@pytest.mark.skipif(len(levels()) == 1, reason="one level alone")
def test_a_level_that_cannot_be_had_is_refused(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(code: int, *words: str) -> str:
        assert main(["cache", *words]) == code
        return capsys.readouterr().err.splitlines()[-1].partition("error: ")[2] or "…"

    monkeypatch.setattr(code_for, "host_level", lambda: levels()[1])
    names = "x86-64, x86-64-v2, x86-64-v3, x86-64-v4"
    assert refused(1, "warm", "--level", "v9") == f"argument --level: expected one of {names}, got 'v9'"
    assert refused(1, "warm", "--level", "v3") == (
        "argument --level: this machine has x86-64-v2 at most, and what is compiled is run; "
        "warm x86-64-v3 where it can run, and export it there"
    )
    assert refused(1, "clear", "--level", "v3") == "argument --level: it goes with warm and export, not with clear"
    assert refused(1, "export") == "expected the file: dgrr cache export FILE"
    kernel_cache.clear()
    assert main(["cache", "export", "kernels.tar", "--level", "v2"]) == 2
    expected = "expected kernels for x86-64-v2, got none; `dgrr cache warm --level x86-64-v2` compiles them"
    assert capsys.readouterr().err == f"dgrr: {kept.parents[1]}: {expected}\n"
    assert not Path("kernels.tar").exists()


def test_a_process_that_dies_is_told(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm, "in_another_process", lambda level, function: {})
    monkeypatch.setattr(code_for, "target", lambda: ("", "another", ""))
    assert main(["cache", "warm", "--level", levels()[0].name]) == 2
    assert capsys.readouterr().err == (
        f"dgrr: the process that compiled for {levels()[0].name} ended before it was done\n"
    )


@pytest.mark.long
@pytest.mark.skipif(len(levels()) == 1 or sys.platform != "linux", reason="one level alone, or no forks")
def test_ctrl_c_ends_all_that_compiles(tmp_path: Path) -> None:
    """Sent to the command alone, as `kill` does, and not to the process that compiles, and those that it has forked."""
    variables = os.environ | {"DGRR_CACHE_DIR": str(tmp_path), "DGRR_THREADS": "2"}
    command = [sys.executable, "-m", "dgrr", "cache", "warm", "--level", "v2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=variables, text=True, start_new_session=True, **pipes) as process:
        while not list(tmp_path.rglob("*.nbc")):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.communicate()[0] == ""  # which also waits for all that hold the pipe
        assert process.returncode == 130
    listed = subprocess.run(["ps", "-o", "stat=", "-s", str(process.pid)], capture_output=True, text=True)
    assert [state for state in listed.stdout.split() if state[0] != "Z"] == []  # zombies are nobody


def test_a_step_goes_with_warm_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "show", "mine:make"]) == 1
    assert "argument MODULE:FUNCTION: it goes with warm, not with show" in capsys.readouterr().err


def test_without_a_model_every_op_is_compiled_and_what_trains() -> None:
    tasks = {task.name: task for task in warm.tasks()}
    assert OPS.keys() < tasks.keys()
    assert tasks.keys() - OPS.keys() == {*warm.NETWORKS, "sgd@1", "adam@1", "adamw@1"}
    for name in ("a perceptron", "add", "where", "argmax", "sgd@1"):
        tasks[name].compile()
