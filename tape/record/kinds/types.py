"""What an attribute may be: read from its annotation, so that what a call gives is converted or refused in one place.

Numbers of numpy, lists for tuples and whatever `operator.index` takes become Python's own values. A Var never does: a
number has no gradient, and reading it out of the Var would lose the Var's without a word.
"""

from collections.abc import Callable, Sequence
from operator import index
from reprlib import Repr
from types import EllipsisType, NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, cast, get_args, get_origin

import numpy as np

from ...errors import DomainError, DTypeError, GradientError
from ...values.attributes import plain
from ...values.dtypes import DTYPES, DType
from ...values.shape import Shape
from ...values.tensor import AnyTensor
from ...var.var import Var

MISFIT: Final = object()
"""What a conversion gives for what it does not take."""

LEAST, MOST = -(1 << 63), (1 << 64) - 1
"""The whole numbers that 64 bits hold, with a sign or without."""

STRANGE: Final[tuple[Any, ...]] = (True, 1, 2.5, "22", None, (2.0, 2), (True, 2), b"2")
"""A value of each type that somebody may give in place of another."""

FLOAT_RANGE = 1 << 1023
"""Whole numbers below it in size are finite as floats."""


class Arm(NamedTuple):
    """One of the types that an annotation names."""

    convert: Callable[[Any], Any]
    """The plain value, or MISFIT."""
    words: str
    """What messages call such a value."""
    plural: str
    """And several of them."""
    ready: frozenset[type] = frozenset()
    """The classes of values that need no conversion."""


class Kind:
    """The values that one attribute takes."""

    __slots__ = ("_arms", "expected", "floats", "number", "ready")

    ready: frozenset[type]
    """The classes of values that are taken as they are."""
    expected: str
    """What messages call these values."""
    number: bool
    """Whether floats are among them, which people may want to learn."""
    floats: bool
    """Whether floats are among them or in tuples of them."""

    def __init__(self, hint: Any) -> None:
        """From an annotation. Raises TypeError for one that names no type of attributes."""
        hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        arms = [_arm(arm) for arm in hints]
        *first, last = [arm.words for arm in arms]
        self.expected = f"{', '.join(first)} or {last}" if first else last
        self.number = float in hints
        self.floats = float in [*hints, *[part for arm in hints for part in get_args(arm)]]
        self.ready = frozenset[type]().union(*[arm.ready for arm in arms])
        self._arms = sorted(
            arms, key=lambda arm: bool(arm.ready)
        )  # tuples first: the others have classes that are ready

    def __call__(self, where: str, value: Any, instead: str = "") -> Any:
        """The plain value. Raises DTypeError, or GradientError for a Var in place of a number.

        ``where`` names the attribute, ``instead`` the expression that does the same with a Var.

        >>> Kind(int | tuple[int, ...])("f: argument 'axis'", [np.int64(1), 2])
        (1, 2)
        """
        for arm in self._arms:
            made = arm.convert(value)
            if made is not MISFIT:
                return made
        raise self._refusal(where, value, instead)

    def misfits(self) -> list[Any]:
        """Values of other types, which it refuses."""
        return [value for value in STRANGE if all(arm.convert(value) is MISFIT for arm in self._arms)]

    def takes(self, value: Any) -> bool:
        """Whether a value needs no conversion, and is in the range of kernels."""
        return value.__class__ in self.ready and (value.__class__ is not int or LEAST <= value <= MOST)

    def _refusal(self, where: str, value: Any, instead: str) -> DTypeError | GradientError:
        if isinstance(value, Var) and self.number:
            way = f"write {instead}, or " if instead else ""
            return GradientError(
                f"{where}: expected {self.expected}, got a Var, whose gradient would be lost; {way}give a number"
            )
        return DTypeError(f"{where}: expected {self.expected}, got {shown(value)}")


def require_in_range(where: str, value: Any, *, number: bool) -> None:
    """Raise DomainError for a whole number, or one in a tuple, that no kernel takes; ``number``: as a float."""
    if isinstance(value, tuple):
        for part in cast(Sequence[Any], value):
            require_in_range(where, part, number=number)
    elif value.__class__ is int and not LEAST <= value <= MOST and not (number and abs(value) < FLOAT_RANGE):
        limit = "that a float can hold" if number else "of at most 64 bits"
        raise DomainError(f"{where}: expected a number {limit}, got {shown(value)}")


def shown(value: Any) -> str:
    """What messages call a value that was given: short, whatever it is.

    >>> shown(np.zeros((2, 3))), shown("a")
    ('ndarray of shape (2, 3)', "'a'")
    """
    if isinstance(value, Var | AnyTensor | np.ndarray):
        return f"{type(cast(Any, value)).__name__} of shape {tuple(cast(Any, value).shape)}"
    return SHORT.repr(value)


SHORT = Repr()
SHORT.maxother = SHORT.maxstring = SHORT.maxlong = SHORT.maxtuple = SHORT.maxlist = 40


def integer(value: Any) -> Any:
    """A whole number, by `operator.index`, or MISFIT; a bool is none."""
    if isinstance(value, bool | np.bool_):
        return MISFIT
    try:
        return index(value)
    except TypeError:
        return MISFIT


FRACTIONS: Any = (float, np.floating)
TRUTHS: Any = (bool, np.bool_)
ARRAYS: Any = np.ndarray
FUNCTION: Any = get_origin(Callable[..., Any])


def number(value: Any) -> Any:
    """A float, a whole number as it is, or MISFIT."""
    if isinstance(value, ARRAYS) and value.ndim == 0:
        return number(value[()])
    return float(value) if isinstance(value, FRACTIONS) else integer(value)


def _truth(value: Any) -> Any:
    return bool(value) if isinstance(value, TRUTHS) else MISFIT


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, str) else MISFIT


def _none(value: Any) -> Any:
    return value if value is None else MISFIT


def _function(value: Any) -> Any:
    return value if callable(value) else MISFIT


def _named_shape(value: Any) -> Any:
    return value if get_origin(value) is Shape else MISFIT


def _element_type(value: Any) -> Any:
    """``f32``, or as numpy names it: ``np.float32``, ``np.dtype("float32")``."""
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return DTYPES.get(np.dtype(cast(Any, value)), MISFIT)
    return value if isinstance(value, type) and issubclass(value, DType) else MISFIT


ARMS: dict[Any, Arm] = {
    int: Arm(integer, "a whole number", "whole numbers", frozenset({int})),
    float: Arm(number, "a number", "numbers", frozenset({int, float})),
    bool: Arm(_truth, "True or False", "bools", frozenset({bool})),
    str: Arm(_text, "a string", "strings", frozenset({str})),
    NoneType: Arm(_none, "None", "Nones", frozenset({NoneType})),
    type[DType]: Arm(_element_type, "an element type", "element types"),
    Any: Arm(plain, "a value", "values", frozenset({int, float, bool, str, slice, NoneType, EllipsisType})),
}
"""The types that annotations name, beside tuples and sequences of them, functions, ``type[Shape[...]]`` and classes
that say as ``called`` what messages call one of theirs."""


def _arm(hint: Any) -> Arm:
    if hint in ARMS:
        return ARMS[hint]
    if get_origin(hint) is Literal and all(isinstance(choice, str) for choice in get_args(hint)):
        return ARMS[str]  # which strings, each op says in its own words
    if get_origin(hint) is tuple:
        arms = [_arm(part) for part in get_args(hint) if part is not Ellipsis]
        return _tuples(arms[0]) if arms.count(arms[0]) == len(arms) else _product(arms)
    if get_origin(hint) is Sequence:
        return _sequences(_arm(*get_args(hint)))
    if get_origin(hint) is FUNCTION:
        return Arm(_function, "a function", "functions")
    if called := getattr(hint, "called", None):
        return _instances(hint, called)
    if get_origin(hint) is type and get_origin(get_args(hint)[0]) is Shape:
        return Arm(_named_shape, "Shape[...]", "shapes")
    raise TypeError(f"expected a type of attributes, got {hint}")


def _tuples(each: Arm) -> Arm:
    """Tuples or lists of values of one type: how many, each op says in its own words."""

    def convert(value: Any) -> Any:
        if value.__class__ is tuple and each.ready.issuperset(map(type, value)):
            return value
        if not isinstance(value, tuple | list):
            return MISFIT
        given = cast(Sequence[Any], value)
        return _parts(given, [each] * len(given))

    return Arm(convert, f"a tuple of {each.plural}", f"tuples of {each.plural}")


def _instances(cls: Any, called: str) -> Arm:
    def convert(value: Any) -> Any:
        return value if isinstance(value, cls) else MISFIT

    return Arm(convert, f"a {called}", f"{called}s")


def _sequences(each: Arm) -> Arm:
    """Tuples, lists, ranges and arrays of one axis, as tuples."""

    def convert(value: Any) -> Any:
        given: Any = value.tolist() if isinstance(value, ARRAYS) and value.ndim == 1 else value
        listed = isinstance(given, tuple | list | range)
        return _parts(given, [each] * len(cast(Sequence[Any], given))) if listed else MISFIT

    return Arm(convert, f"a list of {each.plural}", f"lists of {each.plural}")


def _product(arms: Sequence[Arm]) -> Arm:
    """Tuples or lists with a value of each type."""

    def convert(value: Any) -> Any:
        fits = isinstance(value, tuple | list) and len(cast(Any, value)) == len(arms)
        return _parts(value, arms) if fits else MISFIT

    return Arm(convert, f"a tuple of {len(arms)} values", f"tuples of {len(arms)} values")


def _parts(value: Any, arms: Sequence[Arm]) -> Any:
    made = [arm.convert(part) for arm, part in zip(arms, value, strict=True)]
    return MISFIT if any(part is MISFIT for part in made) else tuple(made)
