"""Documentation that runs: code blocks, docstring examples, the generated page, and what README promises."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dgrr.runtime
import dgrr.tape
import dgrr.trace

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_blocks_run(page: Path, tmp_path: Path) -> None:
    """All blocks of a page are one program, run in an empty folder with warnings as errors."""
    program = "\n".join(blocks(page))
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def modules() -> list[str]:
    wings = (dgrr.tape, dgrr.runtime, dgrr.trace)
    return [m.name for wing in wings for m in pkgutil.walk_packages(wing.__path__, f"{wing.__name__}.")]


@pytest.mark.parametrize("module_name", [*modules(), "dgrr.tape", "dgrr.runtime", "dgrr.trace"])
def test_docstring_examples(module_name: str) -> None:
    module: ModuleType = importlib.import_module(module_name)
    results = doctest.testmod(module, extraglobs={"np": np})
    assert results.failed == 0


def test_there_are_docstring_examples() -> None:
    finder = doctest.DocTestFinder()
    found = [t for m in modules() for t in finder.find(importlib.import_module(m)) if t.examples]
    assert len(found) >= 15


def test_the_ops_page_is_fresh() -> None:
    program = "import runpy; print(runpy.run_path('docs/generate_ops.py')['page'](), end='')"
    page = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert page == (ROOT / "docs" / "ops.md").read_text(), "run: python docs/generate_ops.py"


def test_readme_gives_the_digest_that_the_demo_holds() -> None:
    from dgrr.trace.demo import STATE_DIGEST

    assert re.findall(r"^    ([0-9a-f]{64})$", (ROOT / "README.md").read_text(), re.MULTILINE) == [STATE_DIGEST]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("module_name", ["dgrr.trace", "dgrr.trace.cli"])
def test_reading_traces_needs_no_numba(module_name: str) -> None:
    program = f"import sys, {module_name}; assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
