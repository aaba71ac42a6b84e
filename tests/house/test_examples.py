"""The example programs, from the command line to the proof of their traces."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.trace import Verdict, open_trace, replay

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
PROVEN = "\n".join(f"  {part:<10} proven" for part in ("structure", "chain", "update", "gradient", "data"))


def run(program: Path, *arguments: str) -> str:
    """What a program prints."""
    command = [sys.executable, "-W", "error", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(before: str, printed: str) -> float:
    """The one number behind some words."""
    (found,) = re.findall(rf"{before} ([0-9.]+)$", printed, re.MULTILINE)
    return float(found)


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_reaches_what_it_says_and_proves_its_trace(program: Path, tmp_path: Path) -> None:
    trace, names = tmp_path / "run.dgrr", runpy.run_path(str(program))
    printed = run(program, "--trace", str(trace))
    if "ACCURACY" in names:
        assert number("test accuracy", printed) >= names["ACCURACY"]
    else:
        assert number("mean loss of the last epoch", printed) < names["LOSS"]
    with open_trace(trace) as recorded:
        steps = len(recorded)
    assert printed.endswith(f"{trace}: ok (version 2, {steps} steps)\n{PROVEN}\n")
    assert f"\n{steps} steps in " in printed
    assert replay(trace).verdict is Verdict.UNPROVEN  # without the model: the file holds digests, no gradients


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_explains_itself(program: Path) -> None:
    printed = run(program, "--help")
    assert runpy.run_path(str(program))["__doc__"].strip() in printed
    assert "--epochs" in printed


def test_the_index_lists_every_example() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]\(examples/\1\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [program.name for program in EXAMPLES]
