"""Golden files that no test uses, which a run says only if it can know."""

import shutil

import pytest

from .projects import ONE, files, golden, line, run, write

pytest_plugins = ["pytester"]

A = "def test_a(golden_trace): train(golden_trace())\n"
B = "def test_b(golden_trace): train(golden_trace())\n"


def test_unused_files_are_reported_after_whole_runs(project: pytest.Pytester) -> None:
    write(project, A + B)
    write(project, ONE, "tests/test_more.py")
    run(project)
    write(project, A)
    parts = (["-k", "a"], ["tests/test_toy.py"], ["--deselect", "tests/test_toy.py::test_a"], ["-m", "not slow"])
    for part in parts:
        assert "unused" not in line(project, *part), part
    result, counted = run(project)
    assert counted == "dgrr: 2 verified, 1 unused"
    assert "  unused: tests/golden/test_toy/test_b.dgrr" in result.outlines
    (project.path / "tests" / "test_more.py").unlink()
    assert line(project) == "dgrr: 1 verified, 2 unused"
    assert len(files(project)) == 6


def test_where_a_plugin_leaves_tests_out_nothing_is_unused(project: pytest.Pytester) -> None:
    write(project, A + B)
    run(project)
    write(project, A)
    drop = "    config.hook.pytest_deselected(items=items[1:]); del items[1:]"
    (project.path / "conftest.py").write_text(f"def pytest_collection_modifyitems(config, items):\n{drop}\n")
    write(project, ONE, "tests/test_more.py")
    assert "dgrr: 1 written" in run(project)[0].outlines


@pytest.mark.parametrize(
    "not_run",
    [
        A + "@pytest.mark.skip\n" + B,
        A + B.replace(": train", ": assert 0, train"),
        A + "pytest.skip(allow_module_level=True)",
        A + "1 / 0",
    ],
)
def test_files_of_tests_that_did_not_run_are_not_unused(project: pytest.Pytester, not_run: str) -> None:
    write(project, A + B)
    write(project, ONE, "tests/test_more.py")
    run(project)
    write(project, not_run)
    assert "unused" not in line(project, "--continue-on-collection-errors")


def test_files_beside_the_folders_of_modules_are_none_of_ours(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    shutil.copy(golden(project), project.path / "tests" / "golden" / "handmade.dgrr")
    assert line(project) == "dgrr: 1 verified"
