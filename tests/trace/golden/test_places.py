"""Golden files lie where the test does, from wherever it is started, and never in two places."""

import shutil
from pathlib import Path

import pytest

from dgrr.trace.golden.places import golden_folder

from .projects import ONE, line, run, write

pytest_plugins = ["pytester"]

WAYS = (
    (".", ()),
    (".", ("tests",)),
    (".", ("tests/part/test_deep.py",)),
    ("tests", ()),
    ("tests/part", ()),
    ("tests/part", ("-c", "/dev/null")),
    ("tests/part", ("--rootdir=.",)),
    ("..", ("PROJECT",)),
    ("../aside", ("--rootdir=.", "PROJECT/tests/part/test_deep.py")),
)
"""Where pytest is started, and with what."""


def sets(project: pytest.Pytester) -> list[str]:
    """Every golden file in the project; there are none above it and beside it."""
    assert not (project.path.parent / "tests").exists()
    assert not (project.path.parent / "aside" / "tests").exists()
    return sorted(path.relative_to(project.path).as_posix() for path in project.path.rglob("*.dgrr"))


@pytest.fixture
def bare(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project without settings, with one test in a folder of a folder."""
    (project.path / "tox.ini").unlink()
    monkeypatch.syspath_prepend(project.path)
    (project.path.parent / "aside").mkdir(exist_ok=True)
    write(project, ONE, "tests/part/test_deep.py")
    return project


def started(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, where: str, words: tuple[str, ...]) -> str:
    """What a run says that is started in a folder."""
    monkeypatch.chdir(project.path / where)
    given = [word.replace("PROJECT", str(project.path)) for word in words]
    temporary = project.path.parent / "aside" / "dgrr"
    result, _ = run(project, "-p", "no:cacheprovider", f"--basetemp={temporary}", *given)
    return next(line for line in result.outlines if line.startswith("dgrr: "))


@pytest.mark.parametrize(("where", "words"), WAYS)
def test_the_first_run_writes_where_the_test_is(
    bare: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, where: str, words: tuple[str, ...]
) -> None:
    assert started(bare, monkeypatch, where, words) == "dgrr: 1 written"
    assert sets(bare) == ["tests/golden/part/test_deep/test_fit.dgrr"]


@pytest.mark.parametrize("settings", ["", "pytest.ini", "pyproject.toml"])
def test_a_run_from_elsewhere_uses_the_set_that_there_is(
    bare: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    if settings:
        (bare.path / settings).write_text("[pytest]\n" if settings.endswith("ini") else "[project]\nname = 'toy'\n")
    assert started(bare, monkeypatch, ".", ()) == "dgrr: 1 written"
    for where, words in WAYS[3:]:
        assert started(bare, monkeypatch, where, words) == "dgrr: 1 verified", (where, words)
    assert len(sets(bare)) == 1


def test_two_sets_are_refused(bare: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    started(bare, monkeypatch, ".", ())
    deep = bare.path / "tests/part"
    shutil.copytree(bare.path / "tests/golden/part/test_deep", deep / "tests/golden/test_deep")
    monkeypatch.chdir(bare.path)
    result, _ = run(bare)
    result.assert_outcomes(errors=1)
    said = str(result.stdout)
    assert f"golden files of {deep}/test_deep.py lie in {deep}/tests/golden and in {bare.path}/tests/golden" in said
    assert "delete those that are not to count, or name their folder with --dgrr-dir" in said
    assert line(bare, "--dgrr-dir=tests/golden") == "dgrr: 1 verified"


def test_settings_that_name_another_folder_than_that_of_the_files_are_refused(
    bare: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(bare, monkeypatch, ".", ())
    (bare.path / "pytest.ini").write_text("[pytest]\ndgrr_dir = golden\n")
    result, _ = run(bare)
    result.assert_outcomes(errors=1)
    said = str(result.stdout)
    assert f"and a second set would begin in {bare.path}/golden, which dgrr_dir names: move them there" in said
    shutil.move(bare.path / "tests/golden", bare.path / "golden")
    shutil.move(bare.path / "golden/part", bare.path / "golden/tests/part")
    assert line(bare) == "dgrr: 1 verified"


def test_two_projects_of_one_run_may_have_tests_of_one_name(
    bare: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(bare.path / "tests")
    for name in ("one", "other"):
        write(bare, ONE, f"{name}/tests/test_{name}.py")
        (bare.path / name / "pyproject.toml").touch()
    assert started(bare, monkeypatch, ".", ()) == "dgrr: 2 written"
    assert started(bare, monkeypatch, "one", ()) == "dgrr: 1 verified"


def test_a_module_that_stands_alone_has_them_beside_it(tmp_path: Path) -> None:
    module = tmp_path / "test_alone.py"
    assert golden_folder(module, None) == tmp_path / "tests" / "golden"
    (tmp_path.parent / "elsewhere").mkdir(exist_ok=True)
    assert golden_folder(module, tmp_path.parent / "elsewhere") == tmp_path / "tests" / "golden"
