"""Where compiled kernels are kept; where no folder can hold them, everything works, slower, and says so once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dgrr
from dgrr.base import kernel_cache
from dgrr.trace.cli import main

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("compiled programs")]  # they share what one process compiled

FOLDERS = ("DGRR_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
TAPE = "from dgrr.tape import Tape; print((Tape().leaf([1.0, 2.0]) * 3).numpy())"
VERSION_1 = "from dgrr.trace.cli import main; main(['train', '--steps', '3', '--out', 't'])"


def run(program: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    kept = {k: v for k, v in os.environ.items() if k not in FOLDERS}
    return subprocess.run(command, env={**kept, **variables}, cwd=folder, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of a program; ``kernels``, in which it finds the folder for what it compiles, is below it."""
    folder = tmp_path_factory.mktemp("compiled")
    run(f"{TAPE}; {VERSION_1}", folder, NUMBA_CACHE_DIR=str(folder / "kernels"))
    return folder


def copy_kernels(compiled: Path, folder: Path) -> None:
    """The kernels of ops that were compiled, in a folder of their own."""
    shutil.copytree(compiled / "kernels" / "dgrr", folder, ignore=shutil.ignore_patterns("v1-*"))


def no_folder(tmp_path: Path) -> str:
    """A path below a file, where not even root can make a folder."""
    (tmp_path / "file").touch()
    return str(tmp_path / "file" / "kernels")


def test_ops_and_version_1_run_without_a_cache_folder_and_say_so_once(tmp_path: Path) -> None:
    nowhere = no_folder(tmp_path)
    done = run(f"{TAPE}; {VERSION_1}", tmp_path, DGRR_CACHE_DIR=nowhere)
    assert done.stdout.startswith("[3. 6.]\n")
    assert "3 steps" in done.stdout
    expected = (
        f"dgrr: kernels are compiled again in every process, because {nowhere} cannot be written; "
        "set DGRR_CACHE_DIR to a folder that can"
    )
    assert done.stderr.count("cannot be written") == 1
    assert expected in done.stderr


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"DGRR_CACHE_DIR": "ours", "NUMBA_CACHE_DIR": "numbas"}, "ours"),
        ({"NUMBA_CACHE_DIR": "numbas"}, "numbas/dgrr"),
        ({"XDG_CACHE_HOME": "users"}, "users/dgrr"),  # what platformdirs reads on Linux
    ],
)
def test_the_folder_is_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str
) -> None:
    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)
    for name, path in variables.items():
        monkeypatch.setenv(name, str(tmp_path / path))
    assert kernel_cache.folder() == tmp_path / folder


def test_kernels_are_kept_in_the_folder_and_nowhere_else(compiled: Path) -> None:
    package = Path(dgrr.__file__).parent
    kept = [p for p in compiled.rglob("*") if p.suffix in kernel_cache.SUFFIXES]
    assert {p.name.split("-")[0].split(".")[0] for p in kept} >= {"mul", "compiled"}  # compiled.py of version 1
    assert all(p.is_relative_to(compiled / "kernels" / "dgrr") for p in kept)
    assert not [p for p in package.rglob("*") if p.suffix in kernel_cache.SUFFIXES]


def test_a_file_that_is_cut_is_compiled_anew(compiled: Path, tmp_path: Path) -> None:
    copy_kernels(compiled, tmp_path / "kernels")
    (file,) = (tmp_path / "kernels").rglob("mul-*.nbc")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    done = run(TAPE, tmp_path, DGRR_CACHE_DIR=str(tmp_path / "kernels"))
    assert (done.stdout, done.stderr) == ("[3. 6.]\n", "")
    assert file.stat().st_size > len(whole) // 2


def test_the_command_shows_and_clears_the_folder(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*words: str) -> str:
        assert main(["cache", *words]) == 0
        return capsys.readouterr().out

    copy_kernels(compiled, tmp_path / "kernels")
    monkeypatch.setenv("DGRR_CACHE_DIR", str(tmp_path / "kernels"))
    (tmp_path / "kernels" / "mine.txt").touch()
    count = len(list((tmp_path / "kernels").rglob("*.nbc")))
    assert count >= 2
    assert command().startswith(f"{tmp_path / 'kernels'}: {count} files of compiled kernels, ")
    assert command("clear").startswith(f"{tmp_path / 'kernels'}: removed {count} files of compiled kernels, ")
    assert command("show") == f"{tmp_path / 'kernels'}: 0 files of compiled kernels, 0 bytes\n"
    assert [p.name for p in (tmp_path / "kernels").rglob("*.*")] == ["mine.txt"]


def test_a_folder_of_the_same_name_beside_a_script_does_not_hide_the_package(tmp_path: Path) -> None:
    installed, beside = tmp_path / "installed" / "dgrr", tmp_path / "beside" / "dgrr"
    installed.mkdir(parents=True)
    beside.mkdir(parents=True)
    shutil.copy(Path(dgrr.__file__), installed)
    program = "import sys; sys.path[:0] = sys.argv[1:]; import dgrr; print(dgrr.__file__)"
    command = [sys.executable, "-c", program, str(beside.parent), str(installed.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{installed / '__init__.py'}\n"


def test_python_m_is_the_command_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "dgrr", "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("dgrr ")
