"""``dgrr --print-completion``: shells take what it prints, and complete by it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dgrr.trace.cli import main

SHELLS = ("bash", "zsh", "fish")

COMPLETED = [
    ("sho", {"show"}),
    ("show --fo", {"--follow"}),
    ("export --format ", {"json", "csv", "parquet", "tensorboard", "safetensors"}),
    ("cache w", {"warm"}),
    ("diff ru", {"run.dgrr"}),
    ("rollback run.dgrr --out ru", {"run.dgrr"}),
]
"""What is on the command line, and what may be completed from there."""


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


@pytest.fixture
def script(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    """What is printed for a shell, as a file."""
    assert main(["--print-completion", request.param]) == 0
    file = tmp_path / f"dgrr.{request.param}"
    file.write_text(capsys.readouterr().out)
    return file


def said(*command: str, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("script", "shell"), [(s, s) for s in SHELLS], indirect=["script"], ids=SHELLS)
def test_shells_accept_it(script: Path, shell: str) -> None:
    run = subprocess.run([need(shell), "-n", str(script)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


BASH = """
source "$1"
read -ra COMP_WORDS <<< "$2"
[[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE=$2 COMP_POINT=${#2}
completes=$(complete -p dgrr)
function=${completes#*-F }
${function%% *} dgrr "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(("line", "expected"), COMPLETED)
def test_bash_completes(script: Path, tmp_path: Path, line: str, expected: set[str]) -> None:
    (tmp_path / "run.dgrr").touch()
    (tmp_path / "other").touch()
    lines = said(need("bash"), "-c", BASH, "bash", str(script), f"dgrr {line}", cwd=tmp_path)
    assert {word.strip() for word in lines.splitlines()} == expected


@pytest.mark.parametrize("script", ["fish"], indirect=True)
@pytest.mark.parametrize(("line", "expected"), COMPLETED)
def test_fish_completes(script: Path, tmp_path: Path, line: str, expected: set[str]) -> None:
    (tmp_path / "run.dgrr").touch()
    (tmp_path / "other").touch()
    program = 'source $argv[1]; complete -C "dgrr $argv[2]"'
    lines = said(need("fish"), "--no-config", "-c", program, str(script), line, cwd=tmp_path)
    assert {word.split("\t")[0] for word in lines.splitlines()} == expected


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-completion", "tcsh"]) == 1
    assert "argument --print-completion: invalid choice: 'tcsh'" in capsys.readouterr().err
