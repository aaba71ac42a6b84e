"""Formulas read by other operations: as ops on a tape, as a text in another language."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from ..engine.numba_internals import INLINED

Text = Callable[..., Any]


def rebound(text: Text, operations: Mapping[str, Any]) -> Text:
    """A formula, and all that it calls, with these in the place of the operations of their names."""
    made: dict[Any, Text] = {}

    def bound(one: Any) -> Text:
        if one not in made:
            known = {**one.__globals__, **operations}
            made[one] = FunctionType(one.__code__, known, one.__name__)
            for name, value in one.__globals__.items():
                if name not in operations and isinstance(value, FunctionType) and value in INLINED:
                    known[name] = bound(value)
        return made[one]

    return bound(text)
