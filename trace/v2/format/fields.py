"""What the front of a frame is made of: fields, each with its unit, how often it stands there, and what it says."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....base.errors import DomainError
from .layout import FrameLayout
from .limits import Limits


@dataclass(frozen=True, slots=True)
class Size:
    """A number that follows from header and schema, by its letter on the page."""

    text: str
    of: Callable[[FrameLayout], int]


P = Size("P", lambda layout: layout.schema.params)
B = Size("B", lambda layout: layout.schema.buffers)
T = Size("T", lambda layout: len(layout.schema.tensors))
STATES = Size("(T - B)", lambda layout: layout.states)
HYPERPARAMETERS = Size("h", lambda layout: layout.schema.hyperparameters)
CORRECTIONS = Size("c", lambda layout: layout.schema.corrections)

Times: TypeAlias = Size | str | int | None
"""How often: as the layout or the field of that name says, or as much as stands in it; None: once, by itself."""


class Here(NamedTuple):
    """What a front is read by: its layout, the step of its head, where it stands, and what its fields have said."""

    layout: FrameLayout
    step: int
    offset: int
    limits: Limits
    said: Mapping[str, Any]


Read: TypeAlias = Callable[[bytes, int, Here], tuple[Any, int]]
"""What a field says that begins at a place of a front, and where it ends."""


@dataclass(frozen=True, slots=True)
class When:
    """A condition on which a field is there, in the words of the page."""

    text: str
    holds: Callable[[Here], bool]


class Bounds(NamedTuple):
    """What bounds fronts: layout, limits, and how many bytes the file has."""

    layout: FrameLayout
    limits: Limits
    size: int


def _first(found: Sequence[Any], count: int | None) -> Any:
    return found[0]


def _numbers(found: Sequence[Any], count: int | None) -> Any:
    return found[0] if count is None else found


@dataclass(frozen=True, slots=True)
class FieldUnit:
    """What fields are counted in, and how so many of them (None: one, by itself) are written.

    `form`: as `struct` writes them, where a digest has so many bytes; `said`: what they say, from what `struct` reads,
    and raises DomainError; `parts`: what `struct` is to write.
    """

    name: str
    form: Callable[[int | None, int], str]
    said: Callable[[Sequence[Any], int | None], Any] = _first
    parts: Callable[[Any, int | None], Sequence[Any]] = lambda value, count: (value,)

    @property
    def is_many(self) -> bool:
        """Whether what several say is the tuple that `struct` reads."""
        return self.said is _numbers

    def is_plain(self, count: int | None) -> bool:
        """Whether what so many say is what `struct` reads and writes."""
        return self.said is _first or (self.said is _numbers and count is None)


def _number(name: str, letter: str) -> FieldUnit:
    return FieldUnit(
        name,
        lambda count, size: letter if count is None else f"{count}{letter}",
        _numbers,
        lambda value, count: (value,) if count is None else value,
    )


def pairs(of: FieldUnit) -> FieldUnit:
    """Two numbers each time."""
    return FieldUnit(
        f"({of.name}, {of.name})",
        lambda count, size: of.form(2 * (count or 0), size),
        lambda found, count: tuple(zip(found[::2], found[1::2], strict=True)),
        lambda value, count: [number for pair in value for number in pair],
    )


def always(data: bytes, name: str) -> FieldUnit:
    """These bytes and no others."""

    def said(found: Sequence[Any], count: int | None) -> bytes:
        if found[0] != data:
            raise DomainError(f"expected {data.hex()}, got {found[0].hex()}")
        return data

    return FieldUnit(name, lambda count, size: f"{len(data)}s", said, lambda value, count: (data,))


def _places(found: Sequence[bytes], count: int | None) -> tuple[int, ...]:
    places = _set_bits(found[0])
    if places and places[-1] >= (count or 0):
        raise DomainError(f"bit {places[-1]} of {count} is set")
    return places


@lru_cache(maxsize=64)  # all steps of most runs have the same
def _set_bits(words: bytes) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.unpackbits(np.frombuffer(words, np.uint8), bitorder="little")).tolist())


def bitmap(places: Sequence[int], count: int) -> bytes:
    """A bit for each of so many, those at these places set."""
    return sum([1 << i for i in places]).to_bytes(_words(count), "little")


def _words(count: int) -> int:
    return -(-count // 64) * 8


U8, U16, U32, U64, F32, F64 = map(_number, ("u8", "u16", "u32", "u64", "f32", "f64"), "BHIQfd")
BYTES = FieldUnit("B", lambda count, size: f"{count}s")
JSON = replace(BYTES, name="JSON")
TEXT = FieldUnit("UTF-8", BYTES.form, lambda found, count: found[0].decode(), lambda value, count: (value.encode(),))
DIGEST = FieldUnit("D", lambda count, size: f"{size * (1 if count is None else count)}s")
BITS = FieldUnit(
    "bits",
    lambda count, size: f"{_words(count or 0)}s",
    _places,
    lambda value, count: (bitmap(value, count or 0),),
)


@dataclass(frozen=True)
class Field:
    """A field of a front.

    `counts`: it says nothing of its own, but how often something stands in the field of that name; `at_most`: no front
    says more; `when`: it is there on that condition, and else says nothing.
    """

    name: str
    unit: FieldUnit
    times: Times
    about: str
    when: When | None = None
    counts: str = ""
    at_most: Callable[[Bounds], int] | None = None

    @property
    def fixed(self) -> bool:
        """Whether its length follows from the layout alone."""
        return not isinstance(self.times, str) and self.when is None

    def count(self, layout: FrameLayout, said: Mapping[str, Any]) -> int | None:
        """How often something stands in it, where the fields before it said this; None: once, by itself."""
        times = self.times
        if isinstance(times, str):
            found = said[times]
            return found if isinstance(found, int) else len(found)
        return times.of(layout) if isinstance(times, Size) else times

    def bound(self, layout: FrameLayout) -> Read:
        """What reads it in fronts of a layout."""
        return self.read

    def read(self, front: bytes, at: int, here: Here) -> tuple[Any, int]:
        """What it says, and where it ends. Raises DomainError."""
        if self.when is not None and not self.when.holds(here):
            return None if self.times is None else (), at
        count, size = self.count(here.layout, here.said), here.layout.digest_size
        form = f"<{self.unit.form(count, size)}"
        end = at + struct.calcsize(form)
        if end > len(front):
            raise DomainError(f"its front of {len(front)} bytes ends inside '{self.name}'")
        return self.said(struct.unpack_from(form, front, at), count), end

    def said(self, found: Sequence[Any], count: int | None) -> Any:
        """What it says, from what `struct` reads. Raises DomainError."""
        try:
            return self.unit.said(found, count)
        except ValueError as error:
            raise DomainError(f"'{self.name}': {error}") from error

    def write(self, value: Any, at: int, here: Here) -> bytes:
        """Its bytes, behind `at` others."""
        if self.when is not None and not self.when.holds(here):
            return b""
        count = self.count(here.layout, here.said)
        return struct.pack(f"<{self.unit.form(count, here.layout.digest_size)}", *self.unit.parts(value, count))

    def measured(self, value: Any) -> int:
        """How often something stands in it, in its unit."""
        return len(value.encode() if self.unit is TEXT else value)

    def often(self, bounds: Bounds, fields: Mapping[str, "Field"]) -> int:
        """How often something stands in it, or what it says, at most."""
        if self.at_most is not None:
            return self.at_most(bounds)
        return (
            fields[self.times].often(bounds, fields)
            if isinstance(self.times, str)
            else self.count(bounds.layout, {}) or 0
        )

    def most(self, bounds: Bounds, fields: Mapping[str, "Field"]) -> int:
        """The most bytes that it takes among these."""
        count = None if self.times is None else self.often(bounds, fields)
        return struct.calcsize(f"<{self.unit.form(count, bounds.layout.digest_size)}")


class DigestField(Field):
    """Digests, one by itself or a tuple of them. They are read in every step, and so without `struct`."""

    def __init__(self, name: str, times: Times, about: str, when: When | None = None) -> None:
        super().__init__(name, DIGEST, times, about, when)

    @property
    def fixed(self) -> bool:
        """Never: by itself."""
        return False

    def bound(self, layout: FrameLayout) -> Read:
        """What reads them: how often, and how long, is decided once."""
        times, size, name = self.times, layout.digest_size, self.name
        holds = None if self.when is None else self.when.holds
        known = None if isinstance(times, str) else self.count(layout, {})

        def read(front: bytes, at: int, here: Here) -> tuple[Any, int]:
            if holds is not None and not holds(here):
                return None if times is None else (), at
            count = self.count(layout, here.said) if known is None and times is not None else known
            end = at + (size if count is None else size * count)
            if end > len(front):
                raise DomainError(f"its front of {len(front)} bytes ends inside '{name}'")
            return front[at:end] if count is None else tuple([front[i : i + size] for i in range(at, end, size)]), end

        return read

    def write(self, value: Any, at: int, here: Here) -> bytes:
        """Their bytes."""
        if self.when is not None and not self.when.holds(here):
            return b""
        return value if self.times is None else b"".join(value)


def zero(of: FieldUnit) -> Field:
    """A field that is zero."""
    return Field("zero", always(bytes(struct.calcsize(f"<{of.form(None, 0)}")), of.name), None, "zero")


class _Padding(Field):
    def read(self, front: bytes, at: int, here: Here) -> tuple[None, int]:
        if front[at : at + -at % 8] != bytes(-at % 8):
            raise DomainError("its front has something else than zeros up to a multiple of 8")
        return None, at + -at % 8

    def write(self, value: Any, at: int, here: Here) -> bytes:
        return bytes(-at % 8)

    def most(self, bounds: Bounds, fields: Mapping[str, Field]) -> int:
        return 7


PADDING = _Padding("padding", BYTES, "padding", "zeros up to a multiple of 8")


class Texts(Field):
    """Texts, each behind its length as u32."""

    def read(self, front: bytes, at: int, here: Here) -> tuple[tuple[str, ...], int]:
        """The texts, and where they end. Raises DomainError."""
        found = list[str]()
        length, text = Field(self.name, U32, None, ""), Field(self.name, TEXT, "length", "")
        for _ in range(self.count(here.layout, here.said) or 0):
            count, at = length.read(front, at, here)
            each, at = text.read(front, at, here._replace(said={"length": count}))
            found.append(each)
        return tuple(found), at

    def write(self, value: Any, at: int, here: Here) -> bytes:
        """Their bytes."""
        return b"".join([struct.pack("<I", len(text)) + text for text in map(str.encode, value)])


@dataclass(frozen=True)
class Document(Field):
    """All that there is, as functions of a whole front write and read it."""

    encode: Callable[[Any], bytes] = bytes
    decode: Callable[[bytes, Limits], Any] = lambda front, limits: front

    @property
    def fixed(self) -> bool:
        """Never: it is as long as the front."""
        return False

    def read(self, front: bytes, at: int, here: Here) -> tuple[Any, int]:
        """What it says. Raises DomainError."""
        return self.decode(front, here.limits), len(front)

    def write(self, value: Any, at: int, here: Here) -> bytes:
        """The whole front."""
        return self.encode(value)

    def most(self, bounds: Bounds, fields: Mapping[str, Field]) -> int:
        """As a limit says."""
        return bounds.limits.schema_bytes
