"""Ctrl-C while the program loads, parses and ends: exit code 130 and a line, no traceback."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.base.interruption import end, interruptible

from ...crash.interrupt import ended, is_right

HURT = """
import os, signal, sys
from dgrr import __main__

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = {words!r}
raise SystemExit(__main__.main())
"""

FINALIZED = """
import os, signal
from dgrr.base.interruption import arm
arm()

class Thing:
    def __del__(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)

Thing()
print("goes on")
"""

ENDING = """
import os, signal, sys
from dgrr import __main__

class Late:
    kill, me, number = os.kill, os.getpid(), signal.SIGINT
    def __del__(self):
        self.kill(self.me, self.number)

sys.late = Late()
sys.argv[1:] = ["--version"]
raise SystemExit(__main__.main())
"""


def run(program: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a program."""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize("name", ["dgrr.trace", "ctypes", "dgrr.trace.cli.commands"])
def test_while_a_module_is_imported(name: str) -> None:
    assert run(HURT.format(name=name, words=["--version"])) == (130, "", "dgrr: interrupted\n")


def test_while_a_command_imports_what_it_needs(tmp_path: Path) -> None:
    words = ["train", "--out", str(tmp_path / "v1"), "--json"]
    code, out, err = run(HURT.format(name="numba", words=words))
    answer = json.loads(out)
    assert (code, answer["command"], answer["verdict"], err) == (130, "train", "interrupted", "")


def test_in_a_finalizer() -> None:
    assert run(FINALIZED) == (130, "", "dgrr: interrupted\n")


def test_while_python_ends() -> None:
    code, out, err = run(ENDING)
    assert (code, out[:5], err) == (0, "dgrr ", "")


@interruptible()
def cut_short() -> None:
    """What an import in C may make of Ctrl-C."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        assert signal.getsignal(signal.SIGINT) is end  # a second one ends it
        raise ImportError("cut short") from None


def test_what_makes_another_error_of_it() -> None:
    before = signal.signal(signal.SIGINT, end)
    try:
        with pytest.raises(KeyboardInterrupt):
            cut_short()
        assert signal.getsignal(signal.SIGINT) is end
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_that_is_not_armed_keeps_its_own() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("after", [0.0, 0.1])
def test_at_a_moment_of_the_program(tmp_path: Path, after: float) -> None:
    found = ended(tmp_path, ["validate", "none.dgrr"], after)
    assert found.code == 130 or after
    assert is_right(found, ended(tmp_path, ["validate", "none.dgrr"], None))


def test_the_program_is_the_module() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert 'dgrr = "dgrr.__main__:main"' in text
