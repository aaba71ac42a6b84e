"""The README's golden test, run against a golden file that this repository keeps; its size and its sidecar."""

import re
from pathlib import Path

import pytest

from .projects import run_apart

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
KEPT = Path(__file__).parent / "kept"


@pytest.fixture
def readme(project: pytest.Pytester) -> pytest.Pytester:
    """A project with the README's golden test as its only one."""
    (example,) = [block for block in blocks(ROOT / "README.md") if "golden_trace" in block]
    (project.path / "tests").mkdir()
    (project.path / "tests" / "test_readme.py").write_text(example)
    return project


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```\n", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_example_has_the_bits_that_it_always_had(readme: pytest.Pytester) -> None:
    before = {path: path.read_bytes() for path in KEPT.rglob("*") if path.is_file()}
    assert run_apart(readme, f"--dgrr-dir={KEPT}")[1] == "dgrr: 1 verified"
    assert {path: path.read_bytes() for path in KEPT.rglob("*") if path.is_file()} == before


@pytest.mark.long
def test_another_example_fails(readme: pytest.Pytester) -> None:
    module = readme.path / "tests" / "test_readme.py"
    module.write_text(module.read_text().replace("train.batches(64, seed=0)", "train.batches(64, seed=1)"))
    result, _ = run_apart(readme, f"--dgrr-dir={KEPT}")
    result.assert_outcomes(failed=1)
    assert "diverged (data): step 0 is the first that differs: it was given another batch" in str(result.stdout)


def test_fifty_steps_are_small() -> None:
    (golden,) = KEPT.rglob("*.dgrr")
    assert golden.stat().st_size <= 100_000
    assert golden.with_suffix(".dgrr.txt").read_text().startswith("golden trace of 50 steps\n")
