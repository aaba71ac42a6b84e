"""With pytest-xdist, pytest-randomly and without the plugin; and what a run without golden traces pays."""

import pytest

from .projects import GOLDEN, ONE, golden, line, run, said, write

pytest_plugins = ["pytester"]

SEVERAL = """
import time
@pytest.mark.parametrize("lr", [0.5, 0.25, 0.125])
def test_fit(golden_trace, lr): time.sleep(0.1); train(golden_trace(NAME), lr)
"""


@pytest.mark.long
def test_workers_are_counted_together(project: pytest.Pytester) -> None:
    write(project, SEVERAL.replace("NAME", ""))
    assert "dgrr: 3 written" in run(project, "-n2")[0].outlines
    (project.path / GOLDEN / "test_fit-1.dgrr").write_bytes(golden(project, "-0.5.dgrr").read_bytes())
    assert line(project, "-n2") == "dgrr: 3 verified, 1 unused"


@pytest.mark.long
def test_workers_do_not_race_for_a_file(project: pytest.Pytester) -> None:
    write(project, SEVERAL.replace("NAME", "'one'"))
    result, _ = run(project, "-n2", "--dgrr-update")
    result.assert_outcomes(passed=1, failed=2)
    assert "'test_toy/one' is one golden file, and tests/test_toy.py::test_fit[" in str(result.stdout)


SHUFFLED = """
import random
def pytest_collection_modifyitems(items): random.Random(SEED).shuffle(items)
"""


def test_the_order_of_tests_is_of_no_account(project: pytest.Pytester) -> None:
    write(project, SEVERAL.replace("NAME", "").replace("0.1)", "0)"))
    run(project)
    for seed in range(2):
        (project.path / "conftest.py").write_text(SHUFFLED.replace("SEED", str(seed)))
        assert line(project) == "dgrr: 3 verified"


def test_it_can_be_switched_off(project: pytest.Pytester) -> None:
    write(project, "def test_plain(): pass")
    result, counted = run(project, "-p", "no:dgrr")
    result.assert_outcomes(passed=1)
    assert counted == ""
    write(project, ONE)
    assert "fixture 'golden_trace' not found" in said(project, "-p", "no:dgrr")


def test_failed_tests_are_run_again(project: pytest.Pytester) -> None:
    (project.path / "tox.ini").write_text("[pytest]\ntestpaths = tests\npythonpath = .")
    write(project, f"{ONE}\n{ONE.replace('fit', 'two')}")
    run(project)
    write(project, f"{ONE}\n{ONE.replace('fit', 'two').replace('trace()', 'trace(), lr=0.1')}")
    assert line(project) == "dgrr: 1 verified, 1 failed"
    assert line(project, "--lf") == "dgrr: 1 failed"
    assert line(project, "--lf", "--dgrr-update") == "dgrr: 1 updated"


CONFTEST = """
import sys
HEAVY = ("numpy", "numba", "xxhash", "dgrr.runtime", "dgrr.tape", "dgrr.trace.v2")
def loaded(): return [name for name in HEAVY if name in sys.modules]
def pytest_collection_finish(): print("collected with", loaded())
def pytest_unconfigure(): print("ended with", loaded())
"""


@pytest.mark.long
def test_a_run_without_golden_traces_pays_for_none(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins load what they like
    (project.path / "conftest.py").write_text(CONFTEST)
    (project.path / "tests").mkdir()
    module = project.path / "tests" / "test_plain.py"
    module.write_text("def test_plain(): pass")
    told = project.runpytest_subprocess("-s", "-p", "dgrr").outlines
    assert ("collected with []" in told, "ended with []" in told) == (True, True)
    module.write_text("def test_golden(golden_trace): pass")
    assert "collected with []" in project.runpytest_subprocess("-s", "-p", "dgrr").outlines
