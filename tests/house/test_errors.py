"""One root of errors: whatever dgrr raises of its own, ``except DgrrError`` catches."""

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from dgrr import tape, trace
from dgrr.base.errors import DgrrError, NonFiniteError

from .floors import FLOORS

ROOT = Path(__file__).parents[2]
WINGS = tuple(wing for floor in FLOORS["."] for wing in floor)


@cache
def classes() -> dict[str, tuple[str, ...]]:
    """The bases of every class of the package, as their texts, by the place of the class."""
    return {
        f"{path.relative_to(ROOT).as_posix()}: {node.name}": tuple(ast.unparse(base) for base in node.bases)
        for wing in WINGS
        for path in sorted((ROOT / wing).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }


def is_error(base: str) -> bool:
    """Whether a name is that of a built-in exception, other than a warning."""
    found = getattr(builtins, base, None)
    return isinstance(found, type) and issubclass(found, BaseException) and not issubclass(found, Warning)


def under(root: str) -> set[str]:
    """The names of all classes under a root, through any number of others."""
    names, size = {root}, 0
    while len(names) > size:
        size = len(names)
        names |= {place.split(": ")[1] for place, bases in classes().items() if names.intersection(last(bases))}
    return names


def last(bases: tuple[str, ...]) -> Iterator[str]:
    """Names without the modules before them."""
    return (base.split(".")[-1] for base in bases)


NO_ERROR = ["trace/frameworks/bisect_torch.py: _Left"]
"""What ends a loop of a user's, who may catch every Exception."""


def test_no_error_stands_beside_the_root() -> None:
    family = under("DgrrError")
    errors = [place for place, bases in classes().items() if any(map(is_error, bases))]
    assert len(errors) > 20
    assert [place for place in errors if place.split(": ")[1] not in family] == NO_ERROR


def test_every_name_that_wings_give_away_is_under_the_root() -> None:
    """The classes themselves, where no text can deceive."""
    faces = [import_module(f"dgrr.{wing}") for wing in ("tape", "runtime", "trace")]
    given = [getattr(face, name) for face in faces for name in face.__all__ if name.endswith("Error")]
    assert len(given) > 20
    assert [error for error in given if not issubclass(error, DgrrError)] == []


def test_one_clause_catches_all_that_is_not_finite() -> None:
    assert tape.NonFiniteError is trace.NonFiniteError is NonFiniteError
    assert issubclass(trace.NonFiniteStepError, NonFiniteError)
    assert issubclass(NonFiniteError, ArithmeticError)
