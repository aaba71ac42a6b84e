"""What a frame type is: one declaration, from which encoding, decoding, sizes, order, copies and the page follow."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import Any, Generic, TypeVar

from ....base.errors import DomainError
from ..errors import InvalidTraceError
from ..verdict import Verdict
from .fields import Bounds, Field, Here
from .layout import BodyExtent, FrameLayout
from .limits import Limits

R = TypeVar("R")
_LIMITS = Limits()


class FramePlace(Enum):
    """Where frames of a type stand, by what the step in their heads says."""

    FIRST = "0"
    BEFORE = "k: before STEP k"
    STEP = "k: 0, 1, 2, … without gaps"
    AFTER = "k: between STEP k and STEP k+1, at most once"
    BETWEEN = "steps so far"
    LISTING = "first step it lists"
    LAST = "steps in all"


@dataclass(frozen=True, eq=False)
class FrameType(Generic[R]):
    """A frame type.

    Attributes:
        code, name: in heads, and for people.
        place: where it stands.
        about: what it is, on the page.
        fields: of its front.
        record: one object of what the fields say, by their names. Raises DomainError where that is impossible.
        body: its tensors, given layout, record and what gives the record of the STEP before it. Raises DomainError.
        holds: raises DomainError where a whole record contradicts itself.
        chained: where that begins in the front which the state chain holds, by the name of a field.
        derived: whether writers make it anew from the others, so that nothing is lost with it.
        largest: the most bytes of a front, where these are less than those of its fields.
        told: what it tells that nothing in a trace proves, in a word.
        shown: what `inspect` shows of its record, where readers have no method of their own for it.
    """

    code: int
    name: str
    place: FramePlace
    about: str
    fields: tuple[Field, ...]
    record: Callable[[Here, dict[str, Any]], R]
    body: Callable[[FrameLayout, R, Any], list[BodyExtent]] = lambda layout, record, step: []
    holds: Callable[[FrameLayout, R], None] = lambda layout, record: None
    chained: str = ""
    derived: bool = False
    largest: int | None = None
    told: str = ""
    shown: Callable[[R], Any] | None = None

    def front(self, layout: FrameLayout) -> "Front[R]":
        """Its fronts in a trace."""
        found: Front[R] | None = layout.fronts.get(self.code)
        if found is None:
            found = layout.fronts[self.code] = Front(self, layout)
        return found

    @property
    def is_note(self) -> bool:
        """Whether several may stand between two steps, told apart by what they say."""
        return self.place is FramePlace.BETWEEN and not self.derived

    def packed(self, first: str, last: str) -> struct.Struct:
        """Neighbouring fields that are the same in all traces, from one to another."""
        names = [field.name for field in self.fields]
        chosen = self.fields[names.index(first) : names.index(last) + 1]
        return struct.Struct("<" + "".join([field.unit.form(None, 0) for field in chosen]))


class Front(Generic[R]):
    """The fronts of one type in traces of one layout: first the fields whose places follow from it, as one `struct`.

    `at`: where each of these begins; `places`: from there to its end; `fixed`: where they end.
    """

    def __init__(self, of: FrameType[R], layout: FrameLayout) -> None:
        self._of, self._layout = of, layout
        self.at: dict[str, int] = {}
        self.places: dict[str, slice] = {}
        self.fixed = 0
        self._first = list[tuple[Field, int, int, int | None]]()
        self._names = list[str]()
        forms = "<"
        for field in takewhile(lambda field: field.fixed, of.fields):
            count, begin = field.count(layout, {}), len(self._names)
            form = field.unit.form(count, layout.digest_size)
            found = struct.unpack(f"<{form}", bytes(struct.calcsize(f"<{form}")))
            self._names += [field.name] * len(found)
            self._first.append((field, begin, len(self._names), count))
            self.at[field.name] = self.fixed
            forms += form
            self.fixed = struct.calcsize(forms)
            self.places[field.name] = slice(self.at[field.name], self.fixed)
        self._struct = struct.Struct(forms)
        self._others = [
            (field.name, begin, end, count, None if field.unit.is_many else field.said)
            for field, begin, end, count in self._first
            if not field.unit.is_plain(count)
        ]
        self._rest = of.fields[len(self._first) :]
        self._reads = [(field.name, field.bound(layout)) for field in self._rest]
        self._counts = [(field.name, field.counts) for field in of.fields if field.counts]
        self._fields = {field.name: field for field in of.fields}

    def decode(self, step: int, front: bytes, offset: int = 0, limits: Limits = _LIMITS) -> R:
        """What a front says whose CRC is right.

        Raises:
            InvalidTraceError: `corrupt`: its length does not follow from its fields, or one has an impossible value.
        """
        at = self.fixed
        try:
            if len(front) < at:
                inside = [name for name, begin in self.at.items() if begin <= len(front)][-1]
                raise DomainError(f"its front of {len(front)} bytes ends inside '{inside}'")
            found = self._struct.unpack_from(front)
            said: dict[str, Any] = dict(zip(self._names, found, strict=False))
            here = Here(self._layout, step, offset, limits, said)
            for name, begin, end, count, say in self._others:
                said[name] = say(found[begin:end], count) if say else found[begin:end]
            for name, read in self._reads:
                said[name], at = read(front, at, here)
            if at != len(front):
                raise DomainError(f"its front has {len(front)} bytes, {at} follow from its fields")
            return self._of.record(here, said)
        except ValueError as error:
            raise InvalidTraceError(Verdict.CORRUPT, f"{self._of.name} {step}: {error}", offset) from error

    def encode(self, step: int = 0, /, **said: Any) -> bytes:
        """The front that says this, by the names of the fields. Raises DomainError where that is too long."""
        for name, counted in self._counts:
            said[name] = self._fields[counted].measured(said[counted])
        here, values = Here(self._layout, step, 0, _LIMITS, said), list[Any]()
        for field, _, _, count in self._first:
            values += field.unit.parts(said.get(field.name), count)
        front = self._struct.pack(*values)
        for field in self._rest:
            front += field.write(said.get(field.name), len(front), here)
        if self._of.largest is not None and len(front) > self._of.largest:
            name, most = self._of.name.lower(), self._of.largest
            raise DomainError(f"{name}: expected at most {most} bytes in all, got {len(front)}; write less")
        return front

    def largest(self, limits: Limits, size: int) -> int:
        """The most bytes that a front has in a file of `size` bytes."""
        if self._of.largest is not None:
            return self._of.largest
        bounds = Bounds(self._layout, limits, size)
        return sum(field.most(bounds, self._fields) for field in self._of.fields)

    def chained(self, front: bytes) -> bytes:
        """What the state chain holds of a front."""
        return front[self.at[self._of.chained] :]
