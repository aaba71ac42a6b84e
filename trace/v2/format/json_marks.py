"""How deep a JSON is nested and how much it holds, counted in its bytes before any of it is built."""

import numpy as np

from ....base.errors import DomainError
from .schema import require_at_most

_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(b'[]{},"'))


def check_marks(data: bytes, depth: int, most_brackets: int, most_commas: int) -> None:
    """Raise DomainError for JSON beyond a depth, or with more lists and objects, or more commas.

    A fixed number of passes over the bytes: what stands in strings is taken away, then everything but brackets and
    commas; and each time that empty brackets are taken away, the depth is one less.
    """
    marks = _outside_strings(data)
    brackets = marks.translate(_SQUARE, b",")
    require_at_most(most_brackets, brackets.count(b"["), "lists and objects in the JSON")
    require_at_most(most_commas, marks.count(b","), "commas in the JSON")
    for _ in range(depth):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise DomainError(f"JSON nested more than {depth} deep, or with brackets that do not match")


def _outside_strings(data: bytes) -> bytes:
    """The brackets and commas outside the strings of a JSON."""
    without_escapes = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(without_escapes.translate(None, _NO_MARKS), np.uint8)
    inside = np.bitwise_xor.accumulate(marks == ord('"'))  # a string's end is outside
    return marks[~inside].tobytes().translate(None, b'"')
