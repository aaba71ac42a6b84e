"""The fields of layers: what a layer is made with is converted by its annotations in one place, or refused."""

from dataclasses import fields
from functools import cache
from typing import Any, cast, get_type_hints

from ..errors import DomainError, DTypeError
from ..record.kinds import Kind, require_in_range


class Fields:
    """A dataclass whose numbers, bools, strings and tuples of them are plain values of the types they are said to be.

    A class with a ``__post_init__`` of its own calls this one first. Fields of other types are left as they are.
    """

    def __post_init__(self) -> None:
        """Convert the fields. Raises DomainError for another type, GradientError for a Var in place of a number."""
        for name, kind in kinds_of(cast(Any, type(self))).items():
            value = getattr(self, name)
            if not kind.takes(value):
                self._convert(name, kind, value)

    def _convert(self, name: str, kind: Kind, value: Any) -> None:
        where = f"{type(self).__name__}: argument {name!r}"
        try:
            made = kind(where, value)
        except DTypeError as error:
            raise DomainError(str(error)) from None
        require_in_range(where, made, number=kind.number)
        object.__setattr__(self, name, made)


@cache
def kinds_of(cls: type[Any]) -> dict[str, Kind]:
    """What the fields of a dataclass take, of those whose annotations say it."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # a name that only type checkers see
        return {}
    found = {field.name: _kind(hints[field.name]) for field in fields(cast(Any, cls))}
    return {name: kind for name, kind in found.items() if kind is not None}


def _kind(hint: Any) -> Kind | None:
    if hint is Any:
        return None
    try:
        return Kind(hint)
    except TypeError:
        return None
