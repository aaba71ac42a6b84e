"""What is said where a package of an extra is not installed, and that nothing imports one before it is asked for."""

import subprocess
import sys

import pytest

from dgrr.base.packages import package


@pytest.mark.parametrize(("command", "framework"), [("record_torch", "torch"), ("record_jax", "jax")])
def test_a_missing_framework_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, command: str, framework: str) -> None:
    from dgrr import trace

    monkeypatch.setitem(sys.modules, framework, None)  # as if it were not installed
    arguments = {"record_torch": (None, None, "run.dgrr"), "record_jax": (None, "run.dgrr")}[command]
    options = {"record_torch": {}, "record_jax": {"rule": "sgd@1", "hyper": {}}}[command]
    with pytest.raises(ModuleNotFoundError) as caught:
        getattr(trace, command)(*arguments, **options)
    assert str(caught.value) == f"{command}: expected {framework} to be installed: pip install 'dgrr[{framework}]'"


def test_what_is_missing_inside_a_package_is_said_as_it_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "broken_framework.py").write_text("import nothing_of_this_name\n")
    sys.path.insert(0, str(folder))
    try:
        with pytest.raises(ModuleNotFoundError, match="No module named 'nothing_of_this_name'"):
            package("here", "broken_framework")
    finally:
        sys.path.remove(str(folder))


def test_the_face_of_traces_imports_no_framework() -> None:
    program = "import sys, dgrr.trace; assert not {'torch', 'jax'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_recorders_import_no_framework_before_they_are_called() -> None:
    program = "import sys; from dgrr.trace import record_torch, record_jax, recompute; "
    program += "assert not {'torch', 'jax'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)
