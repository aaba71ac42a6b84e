"""Classes whose fields have kinds: what they are made with is converted or refused in one place, and documented."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from inspect import cleandoc, get_annotations
from typing import Any, ClassVar, cast, get_type_hints

from ..errors import DomainError, DTypeError
from .description import Facts, describe_fields, described
from .kinds import Kind, require_in_range
from .refusals import Kinds, examples


class Described:
    """Base of dataclasses whose fields have kinds, and whose docstrings are completed from these.

    Numbers, bools, strings and tuples of them become plain values of the types that the fields are said to be, or are
    refused; then each field that is not None is held to its kind. Fields of other types are left as they are. A class
    with a ``__post_init__`` of its own calls this one first.

    Of ``Shapes:``, ``Dtypes:`` and ``Raises:`` a docstring has what it says itself, else what its nearest base says;
    what the fields refuse stands above the other errors.

    >>> from dataclasses import dataclass
    >>> from dgrr.tape.record.kinds.values import POSITIVE
    >>> @dataclass(frozen=True)
    ... class Scale(Described, kinds={"by": POSITIVE}):
    ...     '''A factor.'''
    ...     by: float
    >>> Scale(0)
    Traceback (most recent call last):
    dgrr.tape.errors.DomainError: Scale: argument 'by': expected a positive finite number, got 0
    """

    kinds: ClassVar[Kinds] = {}
    """Which values each field takes; those of the bases are among them."""
    _facts: ClassVar[Facts] = {}
    """The facts that a docstring says or has from a base, which a class below need not repeat."""

    def __init_subclass__(cls, kinds: Kinds | None = None, **options: Any) -> None:
        """Keep the kinds, and complete the docstring. Raises TypeError for a kind of what is no field."""
        super().__init_subclass__(**options)
        names = [name for base in reversed(cls.__mro__) for name in get_annotations(base)]
        missing = [name for name in kinds or {} if name not in names]
        if missing:
            raise TypeError(f"{cls.__name__}: argument 'kinds': expected fields among {names}, got {missing[0]!r}")
        cls.kinds = {**cls.kinds, **(kinds or {})}
        _complete(cls, [*dict.fromkeys(names)])

    def __post_init__(self) -> None:
        """Convert and check the fields.

        Raises DomainError for another type, GradientError for a Var in place of a number, and the error of a kind for
        a value that it does not take.
        """
        for name, kind in types_of(cast(Any, type(self))).items():
            value = getattr(self, name)
            if not kind.takes(value):
                object.__setattr__(self, name, _converted(f"{type(self).__name__}: argument {name!r}", kind, value))
        given = self._given()
        for name, values in self.kinds.items():
            if given[name] is not None:
                values.require(type(self).__name__, name, given)

    def _given(self) -> Mapping[str, Any]:
        """What kinds read: the fields, and what else a base adds."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}


def _complete(cls: Any, names: list[str]) -> None:
    """The docstring of a class with what follows from its bases and kinds, if it has one of its own."""
    own = vars(cls).get("__doc__")
    if own is None:  # as under ``-OO``
        return
    doc, inherited = cleandoc(own), cls._facts
    cls._facts = {**inherited, **{name: said for name, said in described(doc).facts.items() if name != "Source"}}
    if cls._facts or cls.kinds:
        cls.__doc__ = str(describe_fields(doc, names, examples(cls.kinds), inherited))


@cache
def types_of(cls: type[Any]) -> dict[str, Kind]:
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


def _converted(where: str, kind: Kind, value: Any) -> Any:
    try:
        made = kind(where, value)
    except DTypeError as error:
        raise DomainError(str(error)) from None
    require_in_range(where, made, number=kind.number)
    return made
