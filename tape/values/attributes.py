"""Attributes of ops: plain values, and the keys by which they are told apart."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

EXACT = frozenset({int, bool, str, type(None)})
"""Types of which equal values are the same value."""


def plain(value: Any) -> Any:
    """An attribute with numpy's numbers replaced by Python's."""
    if isinstance(value, tuple):
        return tuple([plain(v) for v in cast(Sequence[Any], value)])
    return cast(Any, value.item()) if isinstance(value, np.generic) else value


def exact_key(value: Any) -> Any:
    """A key that tells apart what compares equal: 0.0 and -0.0, 1 and 1.0 and True; NaN equals itself.

    A value that cannot be hashed, which no op takes, gets a key that nothing equals.
    """
    kind: type[Any] = value.__class__
    if kind in EXACT:
        return kind, value
    if issubclass(kind, tuple):
        kinds = tuple(map(type, value))
        return (kinds, value) if EXACT.issuperset(kinds) else tuple([exact_key(v) for v in value])
    if isinstance(value, slice):  # not hashable before Python 3.12
        return slice, exact_key(value.__reduce__()[1])
    if kind.__hash__ is None:
        return object()
    return kind, value.hex() if isinstance(value, float) else value


class Attributes(dict[str, Any]):
    """The attributes of one call by name, as plain values, and the ``key`` that tells them apart from all others."""

    __slots__ = ("key",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.key = tuple(map(exact_key, values.values()))
