"""Classes whose fields have kinds: what they are made with is converted or refused in one place, and documented."""

import re
from dataclasses import fields, replace
from functools import cache
from inspect import cleandoc, get_annotations
from typing import Any, ClassVar, cast, get_type_hints

from ..errors import DomainError, DTypeError
from .arguments_said import Said, said, with_arguments
from .description import Facts, describe_fields, described, inherited_facts
from .kinds import Kind, require_in_range
from .kinds.values import ValueKind
from .refusals import Kinds, examples


class Described:
    """Base of dataclasses whose fields have kinds, and whose docstrings are completed from these.

    Numbers, bools, strings and tuples of them become plain values of the types that the fields are said to be, or are
    refused; then each field that is not None is held to its kind. Fields of other types are left as they are. A class
    with a ``__post_init__`` of its own calls this one first; one with slots cannot be checked.

    Of ``Args:``, ``Shapes:``, ``Dtypes:`` and each error of ``Raises:`` a docstring has what it says itself, else what
    its nearest base says; ``Args:`` say which values the kinds take, and what they refuse stands above other errors.

    >>> from dataclasses import dataclass
    >>> from dgrr.tape.record.kinds.values import POSITIVE
    >>> @dataclass(frozen=True)
    ... class Scale(Described, kinds={"by": POSITIVE}):
    ...     '''A factor.'''
    ...     by: float
    >>> Scale(0)
    Traceback (most recent call last):
    dgrr.base.errors.DomainError: Scale: argument 'by': expected a positive finite number, got 0
    """

    kinds: ClassVar[Kinds] = {}
    """Which values each field takes; those of the bases are among them."""
    _facts: ClassVar[Facts] = {}
    """What a class and its bases say, which one below need not repeat."""
    _said: ClassVar[Said] = {}
    """And of fields."""

    def __init_subclass__(cls, kinds: Kinds | None = None, **options: Any) -> None:
        """Keep the kinds, and complete the docstring. Raises TypeError for a kind of what is no field."""
        super().__init_subclass__(**options)
        names = field_names(cls)
        missing = [name for name in kinds or {} if name not in names]
        if missing:
            raise TypeError(f"{cls.__name__}: argument 'kinds': expected fields among {names}, got {missing[0]!r}")
        cls.kinds = {**merged(cls, "kinds"), **(kinds or {})}
        cls._facts, cls._said = _complete(cls, names)

    def __post_init__(self) -> None:
        """Convert and check the fields.

        Raises DomainError for another type, GradientError for a Var in place of a number, and the error of a kind for
        a value that it does not take.
        """
        for name, kind in types_of(cast(Any, type(self))).items():
            value = getattr(self, name)
            if not kind.takes(value):
                object.__setattr__(self, name, converted(type(self).__name__, name, kind, value))
        given = vars(self)
        for name, values in self.kinds.items():
            if given[name] is not None:
                values.require(type(self).__name__, name, given)


def field_names(cls: type[Any]) -> list[str]:
    """What are fields or will be, by annotations: those of dataclasses in their order, then what others ask for."""
    bases = cls.__mro__[:0:-1]
    made = [base for base in bases if "__dataclass_fields__" in vars(base)]
    hints = [hint for base in (*made, cls, *bases) for hint in get_annotations(base).items()]
    return [*dict.fromkeys(name for name, hint in hints if not re.search("ClassVar|KW_ONLY", str(hint)))]


def merged(cls: type[Any], attribute: str) -> dict[str, Any]:
    """What the mappings of a class and its bases hold together; the nearest counts."""
    return {key: value for base in reversed(cls.__mro__) for key, value in vars(base).get(attribute, {}).items()}


def _complete(cls: type[Described], names: list[str]) -> tuple[Facts, Said]:
    """Complete the docstring of a class, if it has one, by what follows from its bases and kinds; what both say."""
    written: str | None = vars(cls).get("__doc__")
    inherited, of_fields = merged(cls, "_facts"), merged(cls, "_said")
    if written is None:  # as under ``-OO``
        return inherited, of_fields
    doc = cleandoc(written)
    own = {name: entries for name, entries in described(doc).facts.items() if name != "Source"}
    facts, known = inherited_facts(inherited, own), {**of_fields, **said(doc)}
    if facts or cls.kinds:
        made = describe_fields(doc, names, examples(cls.kinds), inherited)
        cls.__doc__ = str(replace(made, text=with_arguments(made.text, names, known, cls.kinds)))
    return facts, known


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


def converted(owner: str, argument: str, kind: Kind, value: Any) -> Any:
    """An argument of a class or function as a plain value. Raises as `Described` does for another type."""
    where = f"{owner}: argument {argument!r}"
    try:
        made = kind(where, value)
    except DTypeError as error:
        raise DomainError(str(error)) from None
    require_in_range(where, made, number=kind.number)
    return made


def checked(owner: str, argument: str, value: Any, kind: Kind, values: ValueKind) -> Any:
    """The same, held to a kind of values, whose error is raised for others."""
    made = converted(owner, argument, kind, value)
    values.require(owner, argument, {argument: made})
    return made
