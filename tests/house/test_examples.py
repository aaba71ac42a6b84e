"""The example programs, from the command line to the proof of their traces."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import Verdict, open_trace, replay

from .conftest import Run

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
PROVEN = "\n".join(f"  {part:<10} proven" for part in ("structure", "chain", "update", "gradient", "data"))


REACHED = {
    "ACCURACY": ("test accuracy", np.greater_equal),
    "LOSS": ("mean loss of the last epoch", np.less),
    "SHARE": ("share of [a-z ]+", np.greater_equal),
    "ERROR": ("largest error", np.less),
}
"""The constants in which examples state what they reach: the words before what they print, and how these compare."""


def number(before: str, printed: str) -> float:
    """The one number behind some words."""
    (found,) = re.findall(rf"{before} ([0-9.]+)$", printed, re.MULTILINE)
    return float(found)


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_reaches_what_it_says_and_proves_its_trace(program: Path, tmp_path: Path, run_program: Run) -> None:
    trace, names = tmp_path / "run.dgrr", runpy.run_path(str(program))
    printed = run_program(tmp_path, program, "--trace", str(trace))
    (stated,) = REACHED.keys() & names.keys()
    words, compare = REACHED[stated]
    assert compare(number(words, printed), names[stated])
    with open_trace(trace) as recorded:
        steps = len(recorded)
    assert f"\n{trace}: ok (version 2, {steps} steps)\n{PROVEN}\n" in printed  # notes may follow, as of a tree
    assert f"\n{steps} steps in " in printed
    assert replay(trace).verdict is Verdict.UNPROVEN  # without the model: the file holds digests, no gradients


def test_both_players_of_a_game_are_proven(tmp_path: Path, run_program: Run) -> None:
    traces = [tmp_path / "first.dgrr", tmp_path / "second.dgrr"]
    program = DOCS / "examples" / "mixture_gan.py"
    printed = run_program(tmp_path, program, "--steps", "3", "--opponent", str(traces[0]), "--trace", str(traces[1]))
    assert printed.endswith("".join(f"{trace}: ok (version 2, 3 steps)\n{PROVEN}\n" for trace in traces))
    with open_trace(traces[0]) as first, open_trace(traces[1]) as second:
        assert [t.name for t in first.schema.tensors] == [t.name for t in second.schema.tensors]
        assert first.loss.tolist() != second.loss.tolist()


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_explains_itself(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [program.name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(program), run_name="__main__")
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert runpy.run_path(str(program))["__doc__"].strip() in printed
    assert "--epochs" in printed or "--steps" in printed


def test_the_index_lists_every_example() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]\(examples/\1\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [program.name for program in EXAMPLES]
