"""The programs of tests/typing, run: what a checker accepts works, what it refuses is refused at run time too.

The checkers themselves are run by ``python tests/typing/check.py`` against an installed wheel.
"""

import ast
import builtins
import importlib.util
import inspect
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dgrr.tape

PROGRAMS = Path(__file__).parents[1] / "typing"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


GIVEN = load(PROGRAMS / "given.py")


def programs(kind: str) -> Iterator[Any]:
    """The functions of the files of a kind that are programs: all with a result of None."""
    for path in sorted(PROGRAMS.glob(f"{kind}_*.py")):
        for name, function in inspect.getmembers(load(path), inspect.isfunction):
            if function.__module__ == path.stem and function.__annotations__.get("return", function) is None:
                yield pytest.param(function, id=f"{path.stem}-{name}")


ACCEPTED, REFUSED = list(programs("accepted")), list(programs("refused"))


load(PROGRAMS / "checkers.py")  # which page_programs.py imports
PAGES = load(PROGRAMS / "page_programs.py")


def run(program: Callable[..., None]) -> None:
    if inspect.signature(program).parameters:
        program(GIVEN.Given())
    else:
        program()


def marks(program: Callable[..., None], letter: str) -> list[str]:
    """What stands behind ``# R:``, ``# T:`` or ``# E:`` in a program."""
    return re.findall(rf"# {letter}: (.*)", inspect.getsource(program))


def test_there_are_many_programs() -> None:
    assert len(ACCEPTED) >= 130
    assert len(REFUSED) >= 130


@pytest.mark.parametrize("program", ACCEPTED)
def test_accepted_programs_run(program: Callable[..., None]) -> None:
    run(program)


@pytest.mark.parametrize("program", REFUSED)
def test_refused_programs_are_refused(program: Callable[..., None]) -> None:
    (expected,) = marks(program, "R") or ["ShapeError"]
    if expected == "none":
        assert not marks(program, "T")
        run(program)
        return
    (text,) = marks(program, "T")
    error: type[Exception] = getattr(dgrr.tape, expected, None) or getattr(builtins, expected)
    with pytest.raises(error) as caught:
        run(program)
    assert caught.type is error
    assert str(caught.value).startswith(text)


def test_refused_programs_announce_their_one_mistake() -> None:
    for program in (each.values[0] for each in REFUSED):
        assert len(marks(program, "E")) == (program.__module__ != "refused_sizes"), program


@pytest.mark.parametrize("program", PAGES.programs(), ids=lambda p: p.source.stem)
def test_checkers_read_the_lines_of_pages_and_examples(program: Any) -> None:
    """Each line stands where it stands in its source; of examples, without annotations of functions."""
    made, source = program.text.splitlines(), program.source.read_text().splitlines()
    assert any(made)
    if program.source.suffix == ".md":
        assert all(line in ("", source[number]) for number, line in enumerate(made))
        return
    functions = [node for node in ast.walk(ast.parse(program.text)) if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions if function.returns] == []
    changed = [(new, old) for new, old in zip(made[:-1], source, strict=True) if new != old]
    assert all("def " in new and len(new) < len(old) for new, old in changed)


@pytest.mark.parametrize("port", sorted(PROGRAMS.glob("port_*.py")), ids=lambda p: p.stem)
def test_ports_run(port: Path) -> None:
    runpy.run_path(str(port), run_name="__main__")
