"""The page on golden traces shows the failure that there is, and every mutation."""

import re
from pathlib import Path

import pytest

from .mutations import table
from .projects import run_apart
from .test_readme import ROOT, blocks

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "golden_traces.md"
TEMPORARY = re.compile(r"\S+(?=/dgrr/test_digits/)")
"""The folder in which pytest keeps the trace of a failed run: the page shows none of a machine."""


def failure(outlines: list[str]) -> str:
    """The text of a failure, as the page shows it."""
    start = next(i for i, text in enumerate(outlines) if text.startswith("step "))
    end = next(i for i, text in enumerate(outlines) if text.startswith("to accept it: "))
    return "\n".join(outlines[start : end + 1]) + "\n"


@pytest.mark.long
def test_the_failure_is_the_real_one(project: pytest.Pytester) -> None:
    module = project.path / "tests" / "test_digits.py"
    module.parent.mkdir()
    source = blocks(PAGE)[0]
    module.write_text(source)
    run_apart(project)
    module.write_text(source.replace("nn.ReLU()", "nn.GELU()"))
    said = failure(run_apart(project)[0].outlines)
    said = TEMPORARY.sub("…", said).replace(f"{project.path}/", "")
    (shown,) = re.findall(r"^```text\n(step 0: .*?)^```\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert shown == said


@pytest.mark.long
def test_the_other_examples_are_golden_tests(project: pytest.Pytester) -> None:
    module = project.path / "tests" / "test_digits.py"
    module.parent.mkdir()
    module.write_text("\n".join(blocks(PAGE)))
    result, _ = run_apart(project)
    result.assert_outcomes(passed=6)
    assert "dgrr: 6 written" in result.outlines


def test_the_table_is_that_of_the_mutations() -> None:
    assert table() in PAGE.read_text()


def test_the_sizes_are_those_of_the_kept_file() -> None:
    (golden,) = (Path(__file__).parent / "kept").rglob("*.dgrr")
    assert f"{round(golden.stat().st_size / 1000)} kB: digests of every step" in PAGE.read_text()
