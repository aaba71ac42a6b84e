"""How the type of a function that is never called becomes that of ops and of methods."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from ..values.shape import Dim
from .op_table import OPS

Face = TypeVar("Face", bound=Callable[..., Any])

Axes = tuple[int, ...]
Axis = int | Axes | None
Flat = Literal[False]


class UnknownAxis(Dim):
    """An axis that no Var is given, so that of all Vars only gradual ones fit where it is asked for."""


def typed_as(face: Face) -> Callable[[Callable[..., Any]], Face]:
    """Show a function to type checkers as ``face``; at run time it keeps its own annotations."""

    def keep(function: Callable[..., Any]) -> Any:
        return function

    return keep


def method(op: str, face: Face, doc: str) -> Face:
    """A method that calls an op, of the type of ``face``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return OPS[op].call(*args, **kwargs)

    call.__doc__ = doc
    return call  # type: ignore[return-value]
