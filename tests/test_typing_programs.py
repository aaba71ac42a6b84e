"""The programs of tests/typing, run: what a checker accepts works, what it refuses is refused at run time too.

The checkers themselves are run by ``python tests/typing/check.py`` against an installed wheel.
"""

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dgrr.tape

PROGRAMS = Path(__file__).parent / "typing"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def programs(name: str) -> list[Any]:
    module = load(name)
    functions = [f for _, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == name]
    return [pytest.param(f, id=f.__name__) for f in functions if not inspect.signature(f).parameters]


@pytest.mark.parametrize("program", programs("passing"))
def test_accepted_programs_run(program: Callable[[], None]) -> None:
    program()


@pytest.mark.parametrize("program", programs("failing"))
def test_refused_programs_are_refused(program: Callable[[], None]) -> None:
    source = inspect.getsource(program)
    named = re.search(r"# R: (\w+)", source)
    expected = named[1] if named else "ShapeError"
    if expected == "none":
        program()
    else:
        with pytest.raises(getattr(dgrr.tape, expected)):
            program()


def test_every_refused_program_announces_its_error() -> None:
    source = (PROGRAMS / "failing.py").read_text()
    assert len(programs("failing")) == len(re.findall(r"# E: \S+ \| \S+", source))
