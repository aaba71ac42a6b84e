"""Golden files that no test uses, which a run says only if it can know."""

import shutil
from pathlib import Path

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


def test_an_update_deletes_what_no_test_of_a_whole_module_has_used(project: pytest.Pytester) -> None:
    write(project, A + B)
    write(project, ONE, "tests/test_more.py")
    run(project)
    write(project, A)
    kept = files(project)
    for part in (["tests/test_toy.py::test_a"], ["tests/test_more.py"], ["--collect-only"], ["-k", "fit"]):
        assert "deleted" not in line(project, "--dgrr-update", *part), part
    assert "deleted" not in line(project, "--dgrr-update=missing")
    assert files(project) == kept
    result, counted = run(project, "--dgrr-update", "tests/test_toy.py")
    assert counted == "dgrr: 1 verified, 1 deleted"
    assert "  deleted: tests/golden/test_toy/test_b.dgrr" in result.outlines
    left = {name: data for name, data in kept.items() if "test_b" not in name}
    assert len(left) == 4
    assert files(project) == left


def test_an_update_of_what_failed_last_deletes_nothing(project: pytest.Pytester) -> None:
    write(project, A + "def test_flaky():\n    import os\n    assert os.path.exists('repaired')\n")
    assert "dgrr: 1 written" in run(project, "-o", "addopts=")[0].outlines
    kept = files(project)
    (project.path / "repaired").touch()
    result, _ = run(project, "-o", "addopts=", "--lf", "--dgrr-update")
    result.assert_outcomes(passed=1)
    assert files(project) == kept


def test_an_update_deletes_the_last_file_of_a_module(project: pytest.Pytester) -> None:
    write(project, A)
    write(project, ONE, "tests/test_more.py")
    run(project)
    write(project, "def test_plain(): pass")
    assert line(project, "--dgrr-update") == "dgrr: 1 verified, 1 deleted"


@pytest.mark.long
def test_an_update_of_several_processes_deletes_likewise(project: pytest.Pytester) -> None:
    write(project, A + B + "def test_c(): pass\n" + "def test_d(): pass\n")
    run(project)
    write(project, A + "def test_c(): pass\n" + "def test_d(): pass\n")
    assert line(project, "--dgrr-update", "-n", "2") == "dgrr: 1 verified, 1 deleted"


@pytest.mark.parametrize(
    "not_run",
    [
        "@pytest.mark.skip\ndef test_plain(): pass",
        "def test_plain(): assert 0",
        "def test_plain(golden_trace): pass",
        "@pytest.mark.xfail(run=False)\ndef test_plain(): pass",
        "pytest.skip(allow_module_level=True)",
        "1 / 0",
    ],
)
def test_an_update_deletes_nothing_of_a_module_that_did_not_run_to_its_end(
    project: pytest.Pytester, not_run: str
) -> None:
    write(project, A + B)
    run(project)
    kept = files(project)
    write(project, A + not_run)
    assert "deleted" not in line(project, "--dgrr-update", "--continue-on-collection-errors")
    assert files(project) == kept


def test_an_update_deletes_nothing_where_two_modules_have_one_folder(project: pytest.Pytester) -> None:
    write(project, A + B)
    run(project)
    kept = files(project)
    write(project, A)
    write(project, "def test_other(): pass", "test_toy.py")
    assert "deleted" not in line(project, "--dgrr-update", "tests")
    assert files(project) == kept


def test_what_cannot_be_deleted_is_said(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, A + B)
    run(project)
    write(project, A)

    unlink = Path.unlink

    def refuses(path: Path, missing_ok: bool = False) -> None:
        if path.name == "test_b.dgrr":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuses)
    (text,) = [text for text in run(project, "--dgrr-update")[0].outlines if "cannot be deleted" in text]
    path = project.path / "tests" / "golden" / "test_toy" / "test_b.dgrr"
    assert text == f"golden trace tests/golden/test_toy/test_b.dgrr: it cannot be deleted: {path}: Permission denied"
