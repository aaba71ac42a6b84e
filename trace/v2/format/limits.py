"""How much a file may ask of its reader, and what is counted before any of it is built."""

from dataclasses import dataclass

import numpy as np

from ....base.errors import DomainError

_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(b'[]{},"'))


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds that hold before anything is allocated; callers may lower them.

    `block` is the number of bytes read at a time where a body is only checked; `scalars` bounds the hyperparameters,
    and likewise the corrections, of all groups.
    """

    schema_bytes: int = 16 << 20
    json_depth: int = 8
    tensors: int = 65_536
    groups: int = 4096
    scalars: int = 65_536
    name_bytes: int = 255
    rank: int = 16
    tensor_bytes: int = 1 << 40
    payload: int = 1 << 30
    nodes: int = 1 << 18
    block: int = 1 << 20

    @property
    def json_brackets(self) -> int:
        """The most lists and objects that the JSON of a schema has within these limits."""
        return 3 + 2 * self.tensors + 3 * self.groups

    @property
    def json_commas(self) -> int:
        """The most commas: between the fields, sizes and places of tensors, those of groups, and hyperparameters."""
        return 1 + (self.rank + 5) * self.tensors + 4 * self.groups + self.scalars


def require_at_most(limit: int, count: int, what: str) -> None:
    """Raise DomainError for more of something than a limit allows."""
    if count > limit:
        raise DomainError(f"at most {limit} {what}, got {count}")


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
