"""Compiling in forked processes: everything once, whatever fails, and nothing is left behind."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from dgrr.base import kernel_cache
from dgrr.tape.numerics.engine import compile_notice, side_by_side
from dgrr.tape.numerics.engine.side_by_side import Task, compile_side_by_side
from dgrr.tape.numerics.engine.threads import THREADS

FORKS = sys.platform.startswith("linux")


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with three cores."""
    monkeypatch.setattr(THREADS, "count", 3)


def note(folder: Path, name: str) -> None:
    """Leave the number of the process in a file that must not be there yet."""
    with (folder / name).open("x") as file:
        file.write(str(os.getpid()))


def noting(folder: Path, count: int) -> list[Task]:
    """Tasks that leave their process number."""
    return [Task(f"task {i}", partial(note, folder, str(i))) for i in range(count)]


def found(folder: Path) -> dict[str, int]:
    """The process number of every task that ran."""
    return {path.name: int(path.read_text()) for path in folder.iterdir()}


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are forked."""
    made, fork = list[int](), os.fork

    def noted() -> int:
        made.append(fork())
        return made[-1]

    monkeypatch.setattr(os, "fork", noted)
    return made


def have_ended(children: list[int]) -> bool:
    """Whether each was waited for, and so has ended."""
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    return bool(children) is FORKS


def test_every_task_runs_once_and_none_here(tmp_path: Path, children: list[int]) -> None:
    compile_side_by_side(noting(tmp_path, 40))
    assert len(found(tmp_path)) == 40
    assert (os.getpid() in found(tmp_path).values()) is not FORKS
    assert have_ended(children)


def test_forks_warn_of_nothing() -> None:
    """As JAX does beside any fork, once it is loaded."""
    program = """
import os, warnings
from dgrr.tape.numerics.engine.side_by_side import THREADS, Task, compile_side_by_side
os.register_at_fork(before=lambda: warnings.warn("os.fork() beside threads", RuntimeWarning))
THREADS.count = 2
compile_side_by_side([Task("task", int)] * 2)
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (made.stdout, made.stderr) == ("", "")


def test_nothing_to_do() -> None:
    compile_side_by_side([])


@pytest.mark.parametrize("reason", ["one thread", "one task", "no folder", "another system"])
def test_it_compiles_itself_where_it_must(reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason == "one thread":
        monkeypatch.setattr(THREADS, "count", 1)
    elif reason == "no folder":
        monkeypatch.setattr(kernel_cache, "can_be_written", lambda: False)
    elif reason == "another system":
        monkeypatch.setattr(sys, "platform", "darwin")
    compile_side_by_side(noting(tmp_path, 1 if reason == "one task" else 5))
    assert set(found(tmp_path).values()) == {os.getpid()}


def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("end", [fail, partial(os._exit, 1), lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_a_task_that_fails_stops_no_other(end: Callable[[], None], tmp_path: Path, children: list[int]) -> None:
    if not FORKS:
        return
    compile_side_by_side([Task("bad", end), *noting(tmp_path, 10)])
    assert len(found(tmp_path)) == 10
    assert have_ended(children)


def test_a_system_without_room_for_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    compile_side_by_side(noting(tmp_path, 4))
    assert found(tmp_path) == {} or not FORKS  # whoever needs the kernels compiles them


def test_an_interrupt_ends_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: list[int]) -> None:
    if not FORKS:
        return

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side.select, "select", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_side_by_side([Task("long", partial(signal.pause)), *noting(tmp_path, 2), Task("long", signal.pause)])
    assert have_ended(children)


def test_processes_that_hang_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: list[int]) -> None:
    if not FORKS:
        return
    monkeypatch.setattr(side_by_side, "PATIENCE", 0.5)
    compile_side_by_side([Task("long", signal.pause), *noting(tmp_path, 3)])
    assert len(found(tmp_path)) == 3
    assert have_ended(children)


def test_a_terminal_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(compile_notice, "Console", partial(Console, file=screen, force_terminal=True, width=100))
    compile_side_by_side(noting(tmp_path, 3))
    assert "dgrr: compiling 3 kernels, once" in screen.getvalue()
    assert "3/3" in screen.getvalue()


def test_a_notebook_without_widgets_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """rich would warn there, and warnings are errors here."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(compile_notice, "Console", partial(Console, force_jupyter=True))
    compile_side_by_side(noting(tmp_path, 3))
    assert capsys.readouterr() == ("", "dgrr: compiling 3 kernels, once\n")


def test_elsewhere_nothing_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    compile_side_by_side(noting(tmp_path, 3))
    assert capfd.readouterr() == ("", "")


PROGRAM = """
import numpy as np
from numba.core import compiler
from dgrr.runtime import SGD, capture

compiled = []
original = compiler.compile_extra
def noted(typing, target, function, *rest, **named):
    compiled.append(function.__qualname__)
    return original(typing, target, function, *rest, **named)
compiler.compile_extra = noted
step = capture(lambda p, batch: (p["w"] * batch).sum(), {"w": np.ones(3)}, SGD(0.5), np.ones(3))
step(np.ones(3))
print(compiled)
"""


@pytest.mark.long
def test_a_captured_step_compiles_nothing_in_its_own_process(tmp_path: Path) -> None:
    if not FORKS:
        return
    kept = os.environ | {"DGRR_CACHE_DIR": str(tmp_path), "DGRR_THREADS": "2"}
    first, second = (
        subprocess.run([sys.executable, "-c", PROGRAM], env=kept, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert (first.stdout, first.stderr) == ("[]\n", "")
    assert (second.stdout, second.stderr) == ("[]\n", "")
    assert any(path.name.startswith("mul-") for path in tmp_path.rglob("*.nbc"))
