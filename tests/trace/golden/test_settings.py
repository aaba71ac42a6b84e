"""Options, settings of the project, and the arguments of the marker."""

import shutil

import pytest

from .projects import ONE, OTHER, line, run, said, setting, write

pytest_plugins = ["pytester"]


def test_the_folder_is_that_of_the_option_else_of_the_project(project: pytest.Pytester) -> None:
    write(project, ONE)
    setting(project, "dgrr_dir = my golden files")
    run(project)
    assert (project.path / "my golden files" / "tests" / "test_toy" / "test_fit.dgrr").exists()
    run(project, "--dgrr-dir", "other files/golden")
    assert (project.path / "other files" / "golden" / "tests" / "test_toy" / "test_fit.dgrr").exists()
    write(project, OTHER)
    told = said(project, "--dgrr-dir", "other files/golden")
    accept = "pytest --dgrr-update '--dgrr-dir=other files/golden' tests/test_toy.py::test_fit"
    assert f"\nto accept it:  {accept}\n" in told
    assert "dgrr diff --proven 'other files/golden/tests/test_toy/test_fit.dgrr' " in told


def test_the_project_may_write_what_is_missing(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    write(project, ONE)
    setting(project, "dgrr_update = missing")
    assert run(project)[0].ret == 0
    assert line(project) == "dgrr: 1 verified"


def test_a_setting_that_there_is_not_is_a_usage_error(project: pytest.Pytester) -> None:
    setting(project, "dgrr_update = always")
    result, _ = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: dgrr_update: expected one of none, missing, all, got 'always'" in str(result.stderr)


def test_the_first_file_comes_with_what_git_should_know(project: pytest.Pytester) -> None:
    write(project, ONE)
    hint = "  *.dgrr.txt text eol=lf"
    assert hint in run(project)[0].outlines
    assert hint not in run(project)[0].outlines
    shutil.rmtree(project.path / "tests" / "golden")
    (project.path / ".gitattributes").write_text("*.dgrr binary\n*.dgrr.txt text eol=lf\n")
    assert hint not in run(project)[0].outlines


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("policy='close'", "marker golden: policy: expected 'bitwise', 'ulp=4' or 'rtol=1e-5,atol=1e-8'"),
        ("every='node'", "marker golden: argument 'every': expected 'op' or 'step', got 'node'"),
        ("at=3", "marker golden: argument 'at': expected a list of steps, such as [0, 1, 49], got 3"),
        ("at=[0, -1]", "marker golden: argument 'at': expected a list of steps, such as [0, 1, 49], got [0, -1]"),
        (
            "at=[0], every='step'",
            "marker golden: argument 'at': it names steps whose ops are recorded; leave out",
        ),
        ("'ulp=4', steps=3", "marker golden: expected policy=…, every=… and at=…, got 'ulp=4', steps"),
    ],
)
def test_wrong_arguments_of_the_marker_are_refused(project: pytest.Pytester, mark: str, text: str) -> None:
    write(project, f"@pytest.mark.golden({mark})\n{ONE}")
    result, _ = run(project)
    result.assert_outcomes(errors=1)
    assert text in str(result.stdout)
    assert "plugin.py" not in str(result.stdout)
