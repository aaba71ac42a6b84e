"""The parts of a layer: what holds them, under which names, and how one is applied."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar, cast

from ..errors import DgrrError, DomainError
from ..var.var import AnyVar
from .context import Context
from .scope import Params, Scope

T = TypeVar("T")


def held(kind: type[T], name: str, value: Any) -> Iterator[tuple[str, T]]:
    """What of a kind an attribute holds, by name: itself, or in a list, a tuple or a dict."""
    if isinstance(value, kind):
        yield name, value
    elif isinstance(value, list | tuple | dict):
        entries: Any = cast(Any, value)
        for key, each in entries.items() if isinstance(value, dict) else enumerate(entries):
            yield from held(kind, f"{name}.{key}", each)


def unique(layer: object, what: str, named: Sequence[tuple[str, T]]) -> dict[str, T]:
    """What is named, by name. Raises DomainError for a name that two have."""
    found = dict(named)
    if len(found) < len(named):
        names = [name for name, _ in named]
        again = next(name for name in names if names.count(name) > 1)
        raise DomainError(f"{type(layer).__name__}: expected {what} with unique names, got {again!r} twice")
    return found


def applied(part: Any, name: str, p: Params, x: AnyVar, ctx: Context | None, more: Mapping[str, Any]) -> AnyVar:
    """`Layer.part` for one that is at hand; its nodes belong to the tape's scope of its name."""
    prefix, tape = f"{name}.", getattr(x, "tape", None)
    try:
        with nullcontext() if tape is None else tape.scope(name, type(part).__name__):
            y: AnyVar = part(Scope(p, prefix, part), x, ctx.scope(prefix) if isinstance(ctx, Context) else ctx, **more)
    except DgrrError as error:
        error.raised_in(name)
        raise
    return y
