"""Written, verified, updated, refused: what becomes of a golden file."""

import shutil

import pytest

from dgrr.trace import open_trace

from .projects import ONE, OTHER, files, golden, line, run, said, write

pytest_plugins = ["pytester"]


def test_a_run_is_written_then_verified_and_left_as_it_is(project: pytest.Pytester) -> None:
    write(project, ONE)
    result, _ = run(project)
    result.assert_outcomes(passed=1)
    assert "dgrr: 1 written" in result.outlines
    written = files(project)
    assert list(written) == ["test_toy/test_fit.dgrr", "test_toy/test_fit.dgrr.txt"]
    assert line(project) == "dgrr: 1 verified"
    assert line(project, "--dgrr-update") == "dgrr: 1 verified"
    assert files(project) == written


def test_the_same_run_has_the_same_bytes(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    written = {name: data for name, (data, _) in files(project).items()}
    shutil.rmtree(project.path / "tests" / "golden")
    run(project)
    assert {name: data for name, (data, _) in files(project).items()} == written


def test_another_run_fails_with_the_file_and_the_commands(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    written = files(project)
    write(project, OTHER)
    result, counted = run(project)
    result.assert_outcomes(failed=1)
    assert counted == "dgrr: 1 failed"
    text = str(result.stdout)
    assert "golden trace tests/golden/test_toy/test_fit.dgrr\ndiverged (rule): step 0 is the first that differs" in text
    assert "\nstep 0: it has another lr: 0.5 -> 0.25\ngolden trace " in text
    (failed,) = [told for told in result.outlines if told.startswith("FAILED ")]
    assert failed.startswith("FAILED tests/test_toy.py::test_fit - Failed: step 0: it has another lr: ")
    (look,) = [told for told in result.outlines if told.startswith("to look at it: dgrr diff --proven ")]
    a, b = look.split()[-2:]
    assert (project.path / a).read_bytes() == golden(project).read_bytes()
    assert b.endswith("/dgrr/test_toy/test_fit.dgrr")
    assert (project.path / b).exists()
    assert "to accept it:  pytest --dgrr-update tests/test_toy.py::test_fit" in text
    assert "plugin.py" not in text
    assert files(project) == written


def test_under_tb_short_it_says_where_and_what_to_do(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    write(project, OTHER)
    told = run(project, "--tb=short")[0].outlines
    start = told.index("golden trace tests/golden/test_toy/test_fit.dgrr")
    end = told.index("to accept it:  pytest --dgrr-update tests/test_toy.py::test_fit")
    assert 3 <= end - start <= 4


def test_the_commands_are_those_of_where_the_tests_were_started(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, ONE)
    run(project)
    write(project, OTHER)
    monkeypatch.chdir(project.path / "tests")
    told = said(project, "--rootdir=..", "-c", "../tox.ini", "test_toy.py")
    assert "\ngolden trace golden/test_toy/test_fit.dgrr\n" in told
    assert "\nto accept it:  pytest --dgrr-update test_toy.py::test_fit\n" in told


def test_update_accepts_the_run(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    before = files(project)
    write(project, OTHER)
    assert line(project, "--dgrr-update=missing") == "dgrr: 1 failed"
    assert files(project) == before
    assert line(project, "--dgrr-update", "tests/test_toy.py") == "dgrr: 1 updated"
    assert all(data != before[name][0] for name, (data, _) in files(project).items())
    assert line(project) == "dgrr: 1 verified"


def test_in_ci_a_missing_file_is_a_failure(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    write(project, ONE)
    result, counted = run(project)
    result.assert_outcomes(failed=1)
    assert counted == "dgrr: 1 failed"
    assert "it is missing, and CI is set, so that it is not written" in str(result.stdout)
    assert "to look at it" not in str(result.stdout)
    assert files(project) == {}
    assert "dgrr: 1 written" in run(project, "--dgrr-update=missing")[0].outlines
    assert line(project) == "dgrr: 1 verified"


def test_another_numerics_version_is_refused_under_bitwise(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    write(project, ONE.replace("trace()", "trace(), numerics=2"))
    text = said(project)
    assert "numerics: numerics versions 1 and 2 promise no equal bits" in text
    assert "to accept it:  pytest --dgrr-update tests/test_toy.py::test_fit" in text
    assert line(project, "--dgrr-update") == "dgrr: 1 updated"
    assert "numerics  2\n" in golden(project, ".dgrr.txt").read_text()


def test_a_policy_says_how_close_is_close_enough(project: pytest.Pytester) -> None:
    near = """
@pytest.mark.golden(policy="bitwise")
class TestToy:
    @pytest.mark.golden(policy={"w": "rtol=1e-3", "loss": "rtol=1e-3"})
    def test_fit(self, golden_trace): train(golden_trace(), off=OFF)
"""
    write(project, near.replace("OFF", "0.0"))
    run(project)
    before = files(project)
    write(project, near.replace("OFF", "1e-5"))
    assert line(project) == "dgrr: 1 verified"
    assert line(project, "--dgrr-update") == "dgrr: 1 verified"
    assert files(project) == before
    write(project, near.replace("OFF", "1e-2"))
    assert line(project) == "dgrr: 1 failed"


def test_a_test_that_fails_writes_nothing(project: pytest.Pytester) -> None:
    write(project, f"{ONE}; assert False")
    result, counted = run(project, "--dgrr-update")
    result.assert_outcomes(failed=1)
    assert (counted, files(project)) == ("", {})


# ------------------------------------------------------------------ files that are not what they should be


def test_a_sidecar_that_disagrees_is_a_failure(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    beside = golden(project, ".dgrr.txt")
    right = beside.read_text()
    beside.write_text(right.replace("\n", "\r\n"))  # as a checkout on another system may have it
    assert line(project) == "dgrr: 1 verified"
    for text, told in ((right.replace("3 steps", "4 steps"), "is that of another file"), (None, "is missing")):
        beside.unlink()
        if text is not None:
            beside.write_text(text)
        assert f"the text beside it, test_fit.dgrr.txt, {told}" in said(project)
        assert (run(project, "--dgrr-update=missing")[0].ret == 0) == (text is None)
        assert run(project, "--dgrr-update")[0].ret == 0
        assert beside.read_text() == right


@pytest.mark.parametrize("place", [300, -400])
def test_a_damaged_golden_file_is_a_failure(project: pytest.Pytester, place: int) -> None:
    write(project, ONE)
    run(project)
    whole = golden(project).read_bytes()
    damaged = bytearray(whole)
    damaged[place] ^= 1
    golden(project).write_bytes(damaged)
    result, counted = run(project)
    assert counted == "dgrr: 1 failed"
    assert "golden trace tests/golden/test_toy/test_fit.dgrr\ncorrupt: " in str(result.stdout)
    assert line(project, "--dgrr-update") == "dgrr: 1 updated"
    assert golden(project).read_bytes() == whole


def test_damage_that_no_link_shows_is_found(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    with open_trace(golden(project)) as trace:
        kept = trace.tensor("w", step=0, what="after").tobytes()
    whole = golden(project).read_bytes()
    assert whole.count(kept) == 1
    golden(project).write_bytes(whole.replace(kept, bytes([kept[0] ^ 1]) + kept[1:]))
    assert "corrupt: " in said(project)


def test_to_verify_is_to_write_nothing(project: pytest.Pytester) -> None:
    write(project, ONE)
    run(project)
    before = {p: p.stat().st_mtime_ns for p in (project.path / "tests").rglob("*") if "__pycache__" not in p.parts}
    run(project)
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_what_cannot_be_written_is_named(project: pytest.Pytester) -> None:
    write(project, ONE)
    (project.path / "file").touch()
    result, counted = run(project, "--dgrr-dir=file/golden")
    result.assert_outcomes(failed=1)
    assert f"it cannot be written: {project.path}/file/golden" in str(result.stdout)
    assert counted == "dgrr: 1 failed"
