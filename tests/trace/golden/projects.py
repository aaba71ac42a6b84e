"""What tests of the plugin do with a project: write its tests, run them, look at its golden files."""

from pathlib import Path

import pytest

GOLDEN = Path("tests/golden/test_toy")
ONE = "def test_fit(golden_trace): train(golden_trace())"
OTHER = "def test_fit(golden_trace): train(golden_trace(), lr=0.25)"


def write(project: pytest.Pytester, source: str, module: str = "tests/test_toy.py") -> None:
    """Write a test module that may train the toy."""
    path = project.path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"import pytest\nfrom toy import train\n\n{source}\n")


def setting(project: pytest.Pytester, line: str) -> None:
    """Add a line to the settings of the project."""
    with (project.path / "tox.ini").open("a") as ini:
        ini.write(f"\n{line}\n")


def run(project: pytest.Pytester, *args: str) -> tuple[pytest.RunResult, str]:
    """One run in this process, and the last line that the plugin printed."""
    return _counted(project.runpytest_inprocess("-p", "no:randomly", *args))


def run_apart(project: pytest.Pytester, *args: str) -> tuple[pytest.RunResult, str]:
    """The same in a process of its own: of tests that compile, since pytester unloads what its runs have loaded."""
    return _counted(project.runpytest_subprocess("-p", "no:randomly", *args))


def _counted(result: pytest.RunResult) -> tuple[pytest.RunResult, str]:
    return result, next((line for line in reversed(result.outlines) if line.startswith("dgrr: ")), "")


def line(project: pytest.Pytester, *args: str) -> str:
    """The last line that the plugin printed in one run."""
    return run(project, *args)[1]


def said(project: pytest.Pytester, *args: str) -> str:
    """All that one run printed."""
    return str(run(project, *args)[0].stdout)


def golden(project: pytest.Pytester, suffix: str = ".dgrr") -> Path:
    """A golden file of `ONE`."""
    return project.path / GOLDEN / f"test_fit{suffix}"


def files(project: pytest.Pytester) -> dict[str, tuple[bytes, int]]:
    """Every golden file and its sidecar: the bytes, and when they were written."""
    folder = project.path / "tests" / "golden"
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {p.relative_to(folder).as_posix(): (p.read_bytes(), p.stat().st_mtime_ns) for p in found}
