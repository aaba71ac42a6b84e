"""Attributes of ops as graphs hold them, and how they are written.

An attribute is None, a bool, an int, a float, a str, ``...``, a numpy dtype, a slice of these, or a tuple of
them. In text it stands as Python's ``repr`` shows it; in JSON what has no form of its own is tagged. Both ways
keep every bit but the payload of a NaN.
"""

import ast
from collections.abc import Sequence
from math import inf, nan
from types import EllipsisType
from typing import Any, cast

import numpy as np

from ...tape.values.dtypes import DType
from .errors import IRError
from .values import dtype_named

ATOMS = frozenset({type(None), bool, int, float, str, EllipsisType})
"""Types of attributes that Python writes as literals or names."""

NAMES = {"nan": nan, "inf": inf, "Ellipsis": ...}
"""Attributes that are written as names."""


def canonical(value: Any) -> Any:
    """An attribute in the form that graphs hold: numpy's numbers as Python's, element types as numpy dtypes.

    Raises IRError for what no graph can hold.

    >>> canonical((np.int64(3), slice(np.int64(1), None), np.float32))
    (3, slice(1, None, None), dtype('float32'))
    """
    if value.__class__ in ATOMS:
        return value
    if isinstance(value, tuple):
        return tuple([canonical(v) for v in cast(Sequence[Any], value)])
    if isinstance(value, slice):
        return slice(*[canonical(v) for v in _parts(cast(Any, value))])
    if isinstance(value, np.generic):
        return canonical(value.item())
    if isinstance(value, type):
        return canonical(np.dtype(value.dtype if issubclass(value, DType) else cast(Any, value)))
    if not is_attribute(value):
        raise IRError(f"attribute: expected numbers, text, slices, element types or tuples of them, got {value!r}")
    return value


def is_attribute(value: Any) -> bool:
    """Whether a graph can hold ``value`` as an attribute."""
    if type(value) is tuple:
        return all(is_attribute(v) for v in cast(Sequence[Any], value))
    if isinstance(value, slice):
        return all(is_attribute(v) for v in _parts(cast(Any, value)))
    return type(value) in ATOMS or (isinstance(value, np.dtype) and dtype_named(str(cast(Any, value))) is not None)


def _parts(value: Any) -> tuple[Any, Any, Any]:
    return value.start, value.stop, value.step


def encoded(value: Any) -> Any:
    """An attribute as JSON. Raises IRError for what no graph can hold.

    >>> encoded((1, -0.0, slice(2), np.dtype(bool)))
    [1, {'float': '-0.0'}, {'slice': [None, 2, None]}, {'dtype': 'bool'}]
    """
    if not is_attribute(value):
        raise IRError(f"expected an attribute in canonical form, got {value!r}; record it through canonical()")
    if isinstance(value, tuple):
        return [encoded(v) for v in cast(Sequence[Any], value)]
    if isinstance(value, slice):
        return {"slice": [encoded(v) for v in _parts(cast(Any, value))]}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, np.dtype):
        return {"dtype": str(cast(Any, value))}
    return {"ellipsis": None} if value is ... else value


def decoded(data: Any) -> Any:
    """The attribute that `encoded` made ``data`` of. Raises ValueError for other data."""
    match data:
        case None | bool() | int() | str():
            return data
        case [*_]:
            return tuple([decoded(part) for part in data])
        case {"slice": [start, stop, step], **others} if not others:
            return slice(decoded(start), decoded(stop), decoded(step))
        case {"float": str(text), **others} if not others:
            return _checked(float(text), text)
        case {"dtype": str(name), **others} if not others:
            return _named(name)
        case {"ellipsis": None, **others} if not others:
            return ...
        case _:
            raise ValueError(data)


def evaluated(node: ast.expr) -> Any:
    """The attribute that an expression shows. Raises ValueError for any other expression."""
    match node:
        case ast.Constant(value=value) if type(value) in ATOMS:
            return value
        case ast.Name(id=name) if name in NAMES:
            return NAMES[name]
        case ast.Tuple(elts=parts):
            return tuple([evaluated(part) for part in parts])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(evaluated(operand))
        case ast.Call(func=ast.Name(id="slice"), args=[start, stop, step], keywords=[]):
            return slice(evaluated(start), evaluated(stop), evaluated(step))
        case ast.Call(func=ast.Name(id="dtype"), args=[ast.Constant(value=str(name))], keywords=[]):
            return _named(name)
        case _:
            raise ValueError(ast.unparse(node))


def _number(value: Any) -> Any:
    if type(value) not in (int, float):
        raise ValueError(value)
    return value


def _checked(number: float, text: str) -> float:
    if repr(number) != text:
        raise ValueError(text)
    return number


def _named(name: str) -> np.dtype[Any]:
    dtype = dtype_named(name)
    if dtype is None:
        raise ValueError(name)
    return dtype
