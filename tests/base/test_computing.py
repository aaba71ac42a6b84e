"""What a trace notes of the machine and of the sources that computed it."""

import shutil
from pathlib import Path

import pytest

from dgrr.base import computing
from dgrr.trace.v2.write.environment import describe_environment


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of some sources, which the digest is taken of."""
    for name in ("base", "tape", "runtime", "trace"):
        (tmp_path / name / "inside").mkdir(parents=True)
        (tmp_path / name / "inside" / "module.py").write_text(f"{name} = 1\n")
    (tmp_path / "base" / "shared.py").write_text("x = 1\n")
    monkeypatch.setattr(computing, "_ROOT", tmp_path)
    return tmp_path


def digest() -> str:
    return computing.sources_digest.__wrapped__()


@pytest.mark.parametrize("name", ["base/shared.py", "tape/inside/module.py", "runtime/inside/module.py"])
def test_any_source_that_computes_counts(root: Path, name: str) -> None:
    before = digest()
    assert digest() == before
    (root / name).write_text("x = 2\n")
    changed = digest()
    (root / name).unlink()
    assert len({before, changed, digest()}) == 3


def test_names_count(root: Path) -> None:
    before = digest()
    (root / "base" / "shared.py").rename(root / "base" / "other.py")
    assert digest() != before


def test_formats_and_other_files_do_not(root: Path) -> None:
    before = digest()
    (root / "trace" / "inside" / "module.py").write_text("x = 2\n")
    (root / "tests").mkdir()
    (root / "tests" / "test_x.py").write_text("x = 2\n")
    (root / "tape" / "notes.txt").write_text("x")
    assert digest() == before


def test_without_files_nothing_is_known(root: Path) -> None:
    for name in ("tape", "runtime"):
        shutil.rmtree(root / name)
    (root / "base" / "shared.py").unlink()
    assert digest() == "unknown"


def test_it_is_taken_once() -> None:
    assert computing.sources_digest() is computing.sources_digest()
    assert describe_environment()["sources"] == computing.sources_digest()
    assert len(computing.sources_digest()) == 32
