"""Numbers in sources: what was compiled under another rounding mode is refused, also by those who come later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.tape.numerics import literals

ROOT = Path(literals.__file__).parents[2]

MODES = {"downward": 0x400, "upward": 0x800, "towards zero": 0xC00}
"""x86's names of the rounding modes of ``fesetround``."""

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the modes are x86's")

FIRST = """
import ctypes, sys
assert ctypes.CDLL("libm.so.6").fesetround(int(sys.argv[1])) == 0
import dgrr.tape
"""


def run(program: str, cache: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": str(ROOT.parent), "PYTHONPYCACHEPREFIX": str(cache)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_module_that_was_compiled_under_another_mode_is_refused(mode: str, tmp_path: Path) -> None:
    first = run(FIRST, tmp_path, str(MODES[mode]))
    later = run("import dgrr.tape", tmp_path)
    for done in (first, later):
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1
        assert last.startswith("ImportError: dgrr.tape.numerics.literals: expected the literal "), done.stderr
        assert "delete the __pycache__ folders in " in last


def test_the_literals_here_are_right() -> None:
    literals.require_rounded_to_nearest()


def test_one_place_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "KNOWN", {0.1: "0x1.999999999999bp-4"})
    with pytest.raises(
        ImportError, match=r"expected the literal 0.10000000000000002, got 0.1: the module was compiled"
    ):
        literals.require_rounded_to_nearest()
