"""Placing: no two values share a byte while both live, and the arena is no larger than it must be to say so."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from dgrr.runtime.lower.arena import ArenaBlock, overlaps, place
from dgrr.runtime.step.memory import ALIGNMENT, aligned

pytestmark = pytest.mark.quick

Life = tuple[int, int, int, int]


@st.composite
def lives(draw: st.DrawFn) -> list[Life]:
    """Owner, bytes, first and last op, in the order of the first."""
    spans = draw(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 30), st.integers(0, 12)), max_size=60))
    return [(i, nbytes, first, first + n) for i, (nbytes, first, n) in enumerate(sorted(spans, key=lambda s: s[1]))]


def clashing(blocks: Sequence[ArenaBlock]) -> set[tuple[int, int]]:
    """Every pair that is alive at one op and shares a byte, found by trying all pairs, ops and bytes' lines."""
    found = set[tuple[int, int]]()
    for a, b in combinations(blocks, 2):
        times = set(range(a.first, a.last + 1)) & set(range(b.first, b.last + 1))
        places = set(range(a.offset, a.offset + a.nbytes)) & set(range(b.offset, b.offset + b.nbytes))
        if times and places:
            found.add((min(a.owner, b.owner), max(a.owner, b.owner)))
    return found


@given(lives())
def test_no_two_living_values_share_a_byte(wanted: list[Life]) -> None:
    blocks, nbytes = place(wanted)
    assert [(b.owner, b.nbytes, b.first, b.last) for b in blocks] == [
        (o, aligned(n), first, last) for o, n, first, last in wanted
    ]
    assert clashing(blocks) == set()
    assert overlaps(blocks) == []
    assert all(b.offset >= 0 and b.offset + b.nbytes <= nbytes for b in blocks)
    assert all(b.offset % ALIGNMENT == 0 for b in blocks)


@given(lives())
def test_the_arena_lies_between_what_lives_at_once_and_the_sum(wanted: list[Life]) -> None:
    _, nbytes = place(wanted)
    alive = [sum(aligned(n) for _, n, first, last in wanted if first <= op <= last) for op in range(50)]
    assert max(alive) <= nbytes <= sum(aligned(n) for _, n, _, _ in wanted)


@given(lives())
def test_placing_is_deterministic(wanted: list[Life]) -> None:
    assert place(wanted) == place(list(wanted))


def test_memory_is_used_again() -> None:
    blocks, nbytes = place([(0, 640, 0, 1), (1, 640, 1, 2), (2, 640, 2, 3), (3, 64, 3, 3), (4, 64, 3, 4)])
    assert nbytes == 1280
    assert [b.offset for b in blocks] == [0, 640, 0, 640, 704]


def test_free_neighbours_become_one_block() -> None:
    wanted = [(0, 64, 0, 0), (1, 64, 0, 1), (2, 64, 0, 0), (3, 64, 0, 9), (4, 192, 2, 3)]
    blocks, nbytes = place(wanted)
    assert blocks[4].offset == 0
    assert nbytes == 256


@given(lives(), st.data())
def test_a_planted_overlap_is_found(wanted: list[Life], data: st.DataObject) -> None:
    """Whatever is moved to whatever place: the sweep finds an overlap just if trying everything does."""
    blocks, _ = place(wanted)
    if not blocks:
        return
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(blocks) - 1))
        b, offset = blocks[i], 64 * data.draw(st.integers(0, 40))
        blocks[i] = ArenaBlock(b.owner, offset, b.nbytes, b.first, b.last)
    found = {(min(a.owner, b.owner), max(a.owner, b.owner)) for a, b in overlaps(blocks)}
    expected = clashing(blocks)
    assert found <= expected
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("other", "clash"),
    [
        (ArenaBlock(1, 64, 64, 2, 3), True),
        (ArenaBlock(1, 0, 64, 2, 3), False),
        (ArenaBlock(1, 128, 64, 2, 3), False),
        (ArenaBlock(1, 0, 192, 0, 0), False),
        (ArenaBlock(1, 0, 192, 0, 1), True),
        (ArenaBlock(1, 64, 64, 5, 6), True),
        (ArenaBlock(1, 64, 64, 6, 6), False),
        (ArenaBlock(1, 120, 8, 3, 3), True),
    ],
)
def test_overlap_is_of_bytes_and_of_ops(other: ArenaBlock, clash: bool) -> None:
    block = ArenaBlock(0, 64, 64, 1, 5)
    assert bool(overlaps([block, other])) is bool(overlaps([other, block])) is clash


@pytest.mark.parametrize(("nbytes", "whole"), [(0, 64), (1, 64), (64, 64), (65, 128)])
def test_sizes_are_whole_lines(nbytes: int, whole: int) -> None:
    assert aligned(nbytes) == whole
