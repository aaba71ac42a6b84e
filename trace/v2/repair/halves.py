"""Files that each hold a part of one run: what they have in common, and their frames in the order of the run.

The state chain says whether steps belong to one run: a link holds all that was computed before it. So files are of one
run if they have a step with the same link, or one has the step that goes on behind the last of another.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias
from zlib import crc32

from ..errors import InvalidTraceError
from ..format.frame import Head
from ..format.frames import FRAMES, SEAL
from ..format.step import STEP
from ..read.source import Frame, FrameSource
from ..read.whole_frames import Hole, WholeFrames
from ..verdict import Verdict


class Key(NamedTuple):
    """What a frame is, wherever it stands: two that have the same key say the same, or their runs differ."""

    type: int
    step: int
    crc: int

    @property
    def name(self) -> str:
        """Of its type."""
        if self == UNKNOWN:
            return "unknown"
        return FRAMES[self.type].name if self.type in FRAMES else f"type {self.type}"

    @property
    def derived(self) -> bool:
        """Whether a writer makes it anew."""
        return self.type in FRAMES and FRAMES[self.type].derived


UNKNOWN = Key(-1, 0, 0)
"""Of bytes that nothing tells of."""


def key_of_head(head: Head) -> Key:
    """The key of a frame of which the head is left. Of one step there may be several notes."""
    return Key(head.type, head.step, head.front_crc if _is_note(head.type) else 0)


def key_of(frame: Frame) -> Key:
    """The key of a whole frame."""
    return Key(frame.type, frame.step, crc32(frame.front) if _is_note(frame.type) else 0)


def _is_note(type: int) -> bool:
    return type in FRAMES and FRAMES[type].is_note


class _Listing(NamedTuple):
    """What a file has: its frames as (place in the run, offset), its holes, its steps' links; where reading ended."""

    frames: list[tuple[tuple[float, int], int]]
    holes: list[Hole]
    links: dict[int, bytes]
    end: int


class Half:
    """A file by its name, and its whole frames; or a `tail` that a resumed run cut off."""

    def __init__(self, name: str, frames: FrameSource, *, tail: bool) -> None:
        self.name = name
        self.frames = frames
        self.whole = WholeFrames(frames, tail=tail)

    def is_stump_of(self, other: "Half") -> bool:
        """Whether this is a copy or a tail of another file, without any step that is whole."""
        return not self.listing.links and self.frames.header.salt == other.frames.header.salt

    @cached_property
    def listing(self) -> _Listing:
        """One pass over it, up to a SEAL."""
        listing, order = _Listing([], [], {}, 0), {code: i for i, code in enumerate(FRAMES)}
        size, end = self.frames.algorithm.size, self.whole.prologue.frame.end
        for met in self.whole:
            end = met.end
            if isinstance(met, Hole):
                listing.holes.append(met)
            elif met.type == SEAL.code:
                listing.frames.append(((math.inf, 0), met.offset))
                break
            elif not key_of(met).derived:
                listing.frames.append(((met.step, order.get(met.type, len(order))), met.offset))
                if met.type == STEP.code:
                    listing.links.setdefault(met.step, met.front[:size])
        return listing._replace(end=end)

    def has(self, hole: Hole, other: "Half") -> bool:
        """Whether what stood in a hole of another copy of this file stands here, in whole frames.

        The file chain behind it says so, or, where a copy was cut short, the bytes that are left.
        """
        listing, same = self.listing, self.frames.header.salt == other.frames.header.salt
        if not same or listing.end < hole.end or any(h.start < hole.end and hole.start < h.end for h in listing.holes):
            return False
        if self.frames.chain_before(hole.end) == other.frames.chain_before(hole.end):
            return True
        ours, theirs = (f.source.blocks(hole.start, hole.end - hole.start) for f in (self.frames, other.frames))
        return all(a == b for a, b in zip(ours, theirs, strict=True))


Met: TypeAlias = "tuple[Half, Frame | Hole]"


def in_order(halves: Sequence[Half]) -> Iterator[Met]:
    """The frames of one file as they stand; those of several in the order of the run, then the holes that all have."""
    if len(halves) == 1:
        yield from ((halves[0], met) for met in halves[0].whole)
        return
    found = [(place, i, offset) for i, half in enumerate(halves) for place, offset in half.listing.frames]
    for _, i, offset in sorted(found):
        yield halves[i], halves[i].whole.frame(offset)
    for half in halves:
        for hole in half.listing.holes:
            if not any(other.has(hole, half) for other in halves if other is not half):
                yield half, hole


def require_alike(halves: Sequence[Half]) -> int:
    """Hold headers, schemas and links of several files against those of the first; how many steps stand in several.

    Raises:
        InvalidTraceError: `diverged`: they are not of one run.
    """
    if len(halves) == 1:
        return 0
    for a, b in combinations(halves, 2):
        for what, of_a, of_b in zip(_SAME, _said(a), _said(b), strict=True):
            if of_a != of_b:
                raise not_one_run(a, b, f"they differ in {what}")
        other = [k for k, link in a.listing.links.items() if b.listing.links.get(k, link) != link]
        if other:
            raise not_one_run(a, b, f"step {min(other)} is another one")
    steps = [k for half in halves for k in half.listing.links]
    return len(steps) - len(set(steps))


_SAME = ("digest", "record mode", "state_every", "numerics version", "seed", "SCHEMA")


def _said(half: Half) -> tuple[object, ...]:
    header = half.frames.header
    return header.algorithm, header.mode, header.state_every, header.numerics, header.seed, half.whole.prologue.digest


def require_joined(halves: Sequence[Half], handed_over: set[tuple[Half, Half]]) -> None:
    """Ask that each file is linked to the first: by a step that both have, by one that goes on, or through others.

    Raises:
        InvalidTraceError: `diverged`: nothing links one to the rest.
    """
    first, *others = halves
    joined = {first}
    while more := [h for h in others if h not in joined and any(_meet(h, j, handed_over) for j in joined)]:
        joined.update(more)
    for half in others:
        if half not in joined and not half.is_stump_of(first):
            text = "no step is in both, and neither begins where the other ends"
            raise not_one_run(first, half, text)


def _meet(a: Half, b: Half, handed_over: set[tuple[Half, Half]]) -> bool:
    return bool(a.listing.links.keys() & b.listing.links.keys()) or (a, b) in handed_over or (b, a) in handed_over


def not_one_run(a: Half, b: Half, text: str) -> InvalidTraceError:
    """The refusal of two files, with what to do."""
    advice = "recover each to a separate file, and find where they part with dgrr diff"
    both = f"recover: {a.name} and {b.name} are not halves of one run"
    return InvalidTraceError(Verdict.DIVERGED, f"{both}: {text}; {advice}")
