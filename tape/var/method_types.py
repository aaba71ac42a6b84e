"""The types that many ops and methods share, each written once as the overloads of a function that is never called.

Overloads that ask for an `UnknownAxis` are those of gradual Vars. They come first, so that no exact overload is
chosen for a Var whose axes might be any.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple, overload

from ..values.dtypes import DType, Float, i64
from ..values.shape import Dim
from .op_table import OPS

if TYPE_CHECKING:
    from .var import Gradual, Var

D = TypeVar("D", bound=DType)
F = TypeVar("F", bound=Float)
N = TypeVar("N")
S = TypeVarTuple("S")
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
        return OPS[op](*args, **kwargs)

    call.__doc__ = doc
    return call  # type: ignore[return-value]


def elementwise(x: "Var[F, *S]") -> "Var[F, *S]":
    """One element of the result for each of ``x``."""
    raise NotImplementedError


@overload
def reduction(
    x: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", axis: int | Axes, keepdims: bool = False
) -> "Gradual[F]": ...
@overload
def reduction(x: "Gradual[F]", axis: None = None, keepdims: Flat = False) -> "Var[F]": ...
@overload
def reduction(x: "Var[F, *S, N]", axis: Literal[-1], keepdims: Flat = False) -> "Var[F, *S]": ...
@overload
def reduction(x: "Var[F, N, *S]", axis: Literal[0], keepdims: Flat = False) -> "Var[F, *S]": ...
@overload
def reduction(x: "Var[F, Any, *tuple[Any, ...]]", axis: int, keepdims: bool = False) -> "Gradual[F]": ...
@overload
def reduction(x: "Gradual[F]", axis: Axes | None = None, keepdims: bool = False) -> "Gradual[F]": ...
def reduction(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """One element of the result for the elements along an axis, several, or all."""
    raise NotImplementedError


@overload
def position(
    x: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", axis: int | Axes, keepdims: bool = False
) -> "Gradual[i64]": ...
@overload
def position(x: "Gradual[Any]", axis: None = None, keepdims: Flat = False) -> "Var[i64]": ...
@overload
def position(x: "Var[Any, *S, N]", axis: Literal[-1], keepdims: Flat = False) -> "Var[i64, *S]": ...
@overload
def position(x: "Var[Any, N, *S]", axis: Literal[0], keepdims: Flat = False) -> "Var[i64, *S]": ...
@overload
def position(x: "Var[Any, Any, *tuple[Any, ...]]", axis: int, keepdims: bool = False) -> "Gradual[i64]": ...
@overload
def position(x: "Gradual[Any]", axis: Axes | None = None, keepdims: bool = False) -> "Gradual[i64]": ...
def position(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The position of one of the elements along an axis, several, or all."""
    raise NotImplementedError


@overload
def moment(
    x: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", axis: int | Axes, keepdims: bool = False, correction: int = 0
) -> "Gradual[F]": ...
@overload
def moment(x: "Gradual[F]", axis: None = None, keepdims: Flat = False, correction: int = 0) -> "Var[F]": ...
@overload
def moment(x: "Var[F, *S, N]", axis: Literal[-1], keepdims: Flat = False, correction: int = 0) -> "Var[F, *S]": ...
@overload
def moment(x: "Var[F, N, *S]", axis: Literal[0], keepdims: Flat = False, correction: int = 0) -> "Var[F, *S]": ...
@overload
def moment(
    x: "Var[F, Any, *tuple[Any, ...]]", axis: int, keepdims: bool = False, correction: int = 0
) -> "Gradual[F]": ...
@overload
def moment(x: "Gradual[F]", axis: Axes | None = None, keepdims: bool = False, correction: int = 0) -> "Gradual[F]": ...
def moment(x: Any, axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Any:
    """A `reduction` whose number of elements is corrected."""
    raise NotImplementedError
