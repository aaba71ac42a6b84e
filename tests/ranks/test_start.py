"""How a program of ranks begins and ends: what is said where MPI is missing, and when one rank fails."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dgrr.runtime.ranks import init
from dgrr.runtime.ranks.mpi import ending
from dgrr.runtime.ranks.mpi.launch import launch
from dgrr.tape import DomainError


def test_without_mpi4py_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    text = r"^ranks.init: expected mpi4py to be installed: pip install 'dgrr\[mpi\]', and pip install mpich "
    with pytest.raises(ModuleNotFoundError, match=text):
        init()
    with pytest.raises(ModuleNotFoundError, match=r"^dgrr.runtime.ranks: expected mpi4py to be installed"):
        launch(["train.py"])


def test_without_a_library_of_mpi_it_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> Any:
        raise RuntimeError("cannot load MPI library\nlibmpi.so: cannot open shared object file")

    monkeypatch.setattr("dgrr.base.packages.import_module", fails)
    text = "^ranks.init: expected a library of MPI that mpi4py can load, got: cannot load MPI library; pip "
    with pytest.raises(ImportError, match=text):
        init()


@pytest.mark.parametrize("every", [0, 1.5])
def test_parameters_are_compared_after_whole_numbers_of_steps(every: Any) -> None:
    expected = f"^ranks.init: argument 'check_every': expected a whole number of at least 1, got {every}$"
    with pytest.raises(DomainError, match=expected):
        init(check_every=every)


def test_a_launch_of_nothing_says_how_it_is_used() -> None:
    for arguments in ([], ["-m"]):
        with pytest.raises(SystemExit, match=r"^usage: mpiexec -n N python -m dgrr.runtime.ranks PROGRAM.py"):
            launch(arguments)


class Aborted(Exception):  # noqa: N818
    """In place of the end of the process."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The second of so many ranks, which does not end."""

    def abort(code: int) -> None:
        raise Aborted(code)

    world = SimpleNamespace(size=2, Get_rank=lambda: 1, Abort=abort)
    world.Get_size = lambda: world.size
    monkeypatch.setattr(ending, "HEARD", 0)
    monkeypatch.setattr(ending, "mpi", lambda call: SimpleNamespace(COMM_WORLD=world))
    return world


ENDS: list[tuple[BaseException, int, str]] = [
    (ValueError("what went wrong"), 1, "rank 1 of 2 failed, so all stop\nValueError: what went wrong\n"),
    (SystemExit("enough"), 1, "enough\n"),
    (SystemExit(3), 3, ""),
    (KeyboardInterrupt(), 130, "rank 1 of 2 failed, so all stop\nKeyboardInterrupt\n"),
]


@pytest.mark.parametrize(("error", "code", "text"), ENDS, ids=lambda value: repr(value)[:20])
def test_one_rank_that_fails_says_why_and_ends_all(
    world: Any, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, text: str
) -> None:
    with pytest.raises(Aborted, match=f"^{code}$"):
        ending.end_all(error)
    assert capsys.readouterr().err == text


def test_nobody_is_ended_by_an_exit_without_a_fault_or_where_nobody_waits(world: Any) -> None:
    ending.end_all(SystemExit())
    ending.end_all(SystemExit(0))
    world.size = 1
    ending.end_all(ValueError())


def test_an_exception_that_nobody_catches_ends_all(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    ending.end_all_on_errors()
    with pytest.raises(Aborted):
        sys.excepthook(ValueError, ValueError("text"), None)


def test_a_program_runs_as_python_runs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, world: Any) -> None:
    """Its folder comes first on the path, its arguments are its own, and what it raises ends all."""
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", SimpleNamespace())
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "argv", ["launcher"])
    (tmp_path / "beside.py").write_text("text = 'from beside'")
    program = tmp_path / "train.py"
    program.write_text("import sys, beside\nsys.exit(' '.join([__name__, beside.text, *sys.argv[1:]]))")
    told: list[BaseException] = []
    monkeypatch.setattr("dgrr.runtime.ranks.mpi.launch.end_all", told.append)
    with pytest.raises(SystemExit, match=r"^__main__ from beside --epochs 3$"):
        launch([str(program), "--epochs", "3"])
    assert [str(error) for error in told] == ["__main__ from beside --epochs 3"]
