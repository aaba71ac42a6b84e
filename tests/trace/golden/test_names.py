"""Which file is whose: names of golden files, and tests that ask for the wrong one."""

import pytest

from dgrr.trace.golden.names import file_stem

from .projects import ONE, files, line, run, said, write

pytest_plugins = ["pytester"]

NAMES = """
@pytest.mark.parametrize("lr", [0.5, 0.25], ids=["half", "a b/c"])
def test_fit(golden_trace, lr): train(golden_trace(), lr)

class TestOf:
    class TestMore:
        def test_it(self, golden_trace):
            for lr in (0.5, 0.25):
                train(golden_trace(), lr)
            train(golden_trace("by_name"))
"""


def test_every_test_has_files_of_its_own_name(project: pytest.Pytester) -> None:
    write(project, NAMES)
    write(project, ONE, "tests/deeper/test_toy.py")
    write(project, ONE, "test_beside.py")
    assert run(project, ".", "--import-mode=importlib")[0].ret == 0
    assert [name for name in files(project) if name.endswith(".dgrr")] == [
        "deeper/test_toy/test_fit.dgrr",
        "test_beside/test_fit.dgrr",
        "test_toy/TestOf.TestMore.test_it.2.dgrr",
        "test_toy/TestOf.TestMore.test_it.dgrr",
        "test_toy/by_name.dgrr",
        "test_toy/test_fit-a_b_c-75aebb12.dgrr",
        "test_toy/test_fit-half.dgrr",
    ]
    assert line(project, ".", "--import-mode=importlib") == "dgrr: 7 verified"


def test_names_and_paths_may_have_blanks(project: pytest.Pytester) -> None:
    case = "@pytest.mark.parametrize('lr', [LR], ids=['a b'])"
    source = f"{case}\ndef test_fit(golden_trace, lr): train(golden_trace(), lr)"
    write(project, source.replace("LR", "0.5"), "tests/my tests/test_toy.py")
    run(project)
    assert [name for name in files(project) if name.endswith(".dgrr")] == [
        "my tests/test_toy/test_fit-a_b-25f43ce3.dgrr"
    ]
    write(project, source.replace("LR", "0.25"), "tests/my tests/test_toy.py")
    told = said(project)
    assert "\nto accept it:  pytest --dgrr-update 'tests/my tests/test_toy.py::test_fit[a b]'\n" in told
    assert "dgrr diff --proven 'tests/golden/my tests/test_toy/test_fit-a_b-25f43ce3.dgrr' " in told


def test_long_names_are_cut_and_stay_different() -> None:
    one, other = (file_stem(f"test_fit[{'x' * 300}{end}]") for end in "ab")
    assert len(one) == len(other) <= 130
    assert one[:120] == other[:120]
    assert one != other


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("train(golden_trace('a')); train(golden_trace('A'))", "'test_toy/A' is one golden file, and this test has it"),
        ("train(golden_trace('a/b'))", "argument 'name': expected up to 120 letters, digits, '.', '_' and '-', which"),
        ("t = golden_trace(); train(t); train(t)", "'test_toy/test_fit' has recorded a run already; call golden_trac"),
        ("pass", "the test takes golden_trace and records nothing: give it to a run, as trace=golden_trace()"),
        ("golden_trace()", "nothing was recorded: give it to a run, as trace=golden_trace()"),
        (
            "golden_trace().open_recorder(__import__('dgrr.trace').trace.Run({}, {}, [], numerics=1))",
            "the run was not finished, so nothing was compared",
        ),
    ],
)
def test_a_test_that_uses_it_wrongly_is_told(project: pytest.Pytester, source: str, text: str) -> None:
    write(project, f"def test_fit(golden_trace): {source}")
    result, _ = run(project)
    result.assert_outcomes(failed=1)
    assert text in str(result.stdout)


def test_two_tests_do_not_share_a_golden_file(project: pytest.Pytester) -> None:
    write(project, "\n".join(f"def test_{x}(golden_trace): train(golden_trace('shared'))" for x in "ab"))
    result, _ = run(project, "--dgrr-update")
    result.assert_outcomes(passed=1, failed=1)
    assert "'test_toy/shared' is one golden file, and tests/test_toy.py::test_a has it already" in str(result.stdout)
    assert "give each a name of its own" in said(project)
