"""Documentation that runs: code blocks, docstring examples, the generated page, and what README promises."""

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dgrr.base
import dgrr.runtime
import dgrr.screen
import dgrr.tape
import dgrr.trace
from dgrr.trace.v2.format.fields import Document
from dgrr.trace.v2.format.frames import FRAMES

from .conftest import Run
from .unprompted import unprompted

ROOT = Path(__file__).parents[2]
RUN_PAGE = Path(__file__).with_name("run_page.py")
BLOCK = re.compile(runpy.run_path(str(RUN_PAGE))["BLOCK"])
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """The Python blocks of a page, each with the text behind it that shows what it prints, or None."""
    return [(code, shown or None) for code, shown in BLOCK.findall(page.read_text())]


def printed_by(page: Path, folder: Path, run_program: Run) -> list[str]:
    """What the blocks of a page print as one program, run in a folder with warnings as errors."""
    shutil.copy(page, folder)
    printed: list[str] = json.loads(run_program(folder, RUN_PAGE, page.name))
    return printed


SHOWS_ALL = ("debugging.md",)
"""Pages that show everything that they print."""


def check(page: Path, folder: Path, run_program: Run) -> None:
    """Run a page in a folder, and hold what it shows to what is printed."""
    for (code, shown), printed in zip(blocks(page), printed_by(page, folder, run_program), strict=True):
        assert shown or not printed or page.name not in SHOWS_ALL, f"{page.name} does not show:\n{printed}"
        if shown is not None:
            assert lines(printed) == lines(shown), f"{page.name} does not show what this prints:\n{code}\n{printed}"


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def need(text: str) -> None:
    """Skip where a program imports a framework that is not installed: it runs in a job of its own."""
    for package in ("torch", "jax", "onnx", "pandas", "pyarrow", "polars"):
        extra = {"pyarrow": "arrow"}.get(package, package)
        if re.search(rf"^ *(>>> )?(import|from) .*\b{package}\b", text, re.MULTILINE):
            pytest.importorskip(package, reason=f"this needs {package}: pip install -e '.[test,{extra}]'")


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_blocks_run_and_print_what_the_page_shows(page: Path, tmp_path: Path, run_program: Run) -> None:
    need(page.read_text())
    check(page, tmp_path, run_program)


FACES = r"dgrr(\.(tape|tape\.(nn|ops|ops\.losses|record)|runtime|runtime\.(data|onnx|optim(\.laws)?)|trace))?"
"""What users and authors of ops import from."""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_import_from_faces_alone(page: Path) -> None:
    imported = re.findall(r"^(?:>>> )?(?:from|import) (dgrr[\w.]*)", page.read_text(), re.MULTILINE)
    assert [module for module in imported if not re.fullmatch(FACES, module)] == []


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ("print(y)\n```\n\n```text\n3\n", "page.md does not show what this prints:"),
        ("x.z\n", 'File "page.md", line 7, in <module>'),
        ("print(y)\n", "page.md does not show:"),
    ],
)
def test_a_page_that_is_wrong_is_found(
    tmp_path: Path, last: str, error: str, monkeypatch: pytest.MonkeyPatch, run_program: Run
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SHOWS_ALL", ("page.md",))
    (tmp_path / "run").mkdir()
    page = tmp_path / "page.md"
    page.write_text(f"```python\nx = 2\ny = x + x\n```\n\n```python\n{last}```\n")
    with pytest.raises(AssertionError) as caught:
        check(page, tmp_path / "run", run_program)
    assert error in str(caught.value)


def modules() -> list[str]:
    wings = (dgrr.base, dgrr.screen, dgrr.tape, dgrr.runtime, dgrr.trace)
    return [m.name for wing in wings for m in pkgutil.walk_packages(wing.__path__, f"{wing.__name__}.")]


@pytest.mark.parametrize("module_name", [*modules(), "dgrr.tape", "dgrr.runtime", "dgrr.trace"])
def test_docstring_examples(module_name: str) -> None:
    module: ModuleType = importlib.import_module(module_name)
    need(inspect.getsource(module))
    results = doctest.testmod(module, extraglobs={"np": np})
    assert results.failed == 0


def docstrings() -> Iterator[doctest.DocTest]:
    """Every docstring, with the examples that doctest finds in it."""
    finder = doctest.DocTestFinder(exclude_empty=False)
    return (test for m in modules() for test in finder.find(importlib.import_module(m)) if test.docstring)


def test_there_are_docstring_examples() -> None:
    assert sum(bool(test.examples) for test in docstrings()) >= 250


def test_no_line_of_a_docstring_is_code_that_nobody_runs() -> None:
    found = {test.name: lines for test in docstrings() if (lines := unprompted(test.docstring or ""))}
    assert found == {}, "these lines are code: begin them with >>>"


def test_a_line_that_loses_its_prompt_is_found() -> None:
    """Each line of each example, and those behind it, without its prompt: run as what is printed, or found as code."""
    for test in docstrings():
        doc = inspect.cleandoc(test.docstring or "")
        for start in re.finditer(r"^ *(>>> )", doc, re.MULTILINE):
            lost = re.sub(r"^( *)(?:>>>|\.\.\.) ", r"\1", doc[start.start() :], flags=re.MULTILINE)
            left = doctest.DocTestParser().get_examples(doc[: start.start()] + lost)
            shown = left[-1].want if left else ""
            first = lost.split("\n", 1)[0].strip()
            assert first in shown or unprompted(doc[: start.start()] + lost), f"{test.name}: {first}"


@pytest.mark.parametrize(("generator", "page"), [("generate_ops", "ops"), ("generate_names", "from_pytorch_names")])
def test_a_generated_page_is_fresh(generator: str, page: str) -> None:
    program = f"import runpy; print(runpy.run_path('docs/{generator}.py')['page'](), end='')"
    made = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "docs" / f"{page}.md").read_text(), f"run: python docs/{generator}.py"


def test_the_tables_of_the_trace_format_are_fresh() -> None:
    """Each frame type has a row, and each with fields of its own a table."""
    text = (ROOT / "docs" / "trace_format.md").read_text()
    made: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate_trace_format.py"))
    assert made["page"](text) == text, "run: python docs/generate_trace_format.py"
    tables = set(re.findall(r"<!-- fields of (\w+) -->", text))
    assert tables == {t.name for t in FRAMES.values() if not isinstance(t.fields[0], Document)}


def test_readme_gives_the_digest_that_the_demo_holds() -> None:
    from dgrr.trace.cli.demo import STATE_DIGEST

    assert re.findall(r"^    ([0-9a-f]{64})$", (ROOT / "README.md").read_text(), re.MULTILINE) == [STATE_DIGEST]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\](?:\(|: )([^)#\s]+)[^)\s]*(?:\)|$)", prose, re.MULTILINE):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_readme_names_all_that_it_links_to_in_one_place() -> None:
    """On a package index a path leads nowhere: once there is a home, its address goes before each in that place."""
    readme = (ROOT / "README.md").read_text()
    prose = re.sub(r"^```.*?^```$", "", readme, flags=re.MULTILINE | re.DOTALL)
    text, _, targets = re.sub(r"^    .*$|`.*?`", "", prose, flags=re.MULTILINE).partition("\n\n[")
    named = re.findall(r"^\[(.+)\]: \S+$", f"[{targets}", re.MULTILINE)
    assert "](" not in prose
    assert sorted({*re.findall(r"\[([^\]\n]+)\]", text)}) == sorted(named)


@pytest.mark.parametrize("module_name", ["dgrr.trace", "dgrr.trace.cli", "dgrr.trace.cli.commands.looking.export"])
def test_reading_traces_needs_no_numba(module_name: str) -> None:
    program = f"import sys, {module_name}; assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
