"""Programs: what arrays they take, in what order they do things, and where they end."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dgrr.tape import get_threads, set_threads
from dgrr.tape.numerics.prepared.given import Given
from dgrr.tape.numerics.prepared.moves import Appended, Counter, Move, Moves
from dgrr.tape.numerics.prepared.number_means import NumberMeans
from dgrr.tape.numerics.prepared.places import place_of
from dgrr.tape.numerics.prepared.prepared_calls import PreparedCalls

X = np.arange(6.0).reshape(2, 3)


class Sub(np.ndarray[Any, Any]):
    """An array of another class, whose elements may be anything."""


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = get_threads()
    yield
    set_threads(before)


@pytest.mark.parametrize(
    ("other", "status"),
    [
        (X, 0),
        (X.copy(), 0),
        (X.astype(np.float32), 2),
        (X.astype(">f8"), 2),
        (X.view(np.int64), 2),
        (X.T, 2),
        (X.reshape(3, 2), 2),
        (X.reshape(6), 2),
        (X.reshape(1, 2, 3), 2),
        (np.arange(12.0).reshape(2, 6)[:, ::2], 2),
        (X[:1], 2),
        (X.tolist(), 2),
        (None, 2),
        (X.view(Sub), 2),
    ],
)
def test_arrays_that_are_not_of_their_kind_are_refused(other: Any, status: int) -> None:
    kind, count = (X.dtype, X.shape), np.zeros(1, np.int64)
    given = Given([kind, kind])
    program = PreparedCalls(given, Moves([], [Counter(count)]))
    arrays = (X, other)
    given.take(arrays)
    assert program.run() == status
    assert count == (status == 0)  # nothing is done behind a refusal


def test_arrays_are_read_where_they_lie_at_each_run() -> None:
    given, out = Given([(X.dtype, X.shape)]), np.zeros(2)
    program = PreparedCalls(given, Moves([Move(out, given.place(0))]))
    for i in range(3):
        arrays = (X + i,)
        given.take(arrays)
        assert program.run() == 0
        assert out.tolist() == [i, i + 1]


def test_copies_are_made_in_turn() -> None:
    a, b, c = np.array([1]), np.array([2]), np.array([3])
    counters = [Counter(a), Counter(a, 5), Counter(c, -1)]
    assert PreparedCalls(Moves([Move(b, place_of(a)), Move(c, place_of(b))], counters)).run() == 0
    assert (a, b, c) == (7, 1, 0)


def test_pieces_are_appended_behind_what_is_there() -> None:
    buffer, used = np.zeros(16, np.uint8), np.array([3])
    pieces = [(place_of(part), n) for part, n in ((X.view(np.uint8)[0], 0), (np.array([1, 2, 3], np.uint8), 2))]
    program = PreparedCalls(Appended([*pieces, (place_of(buffer), 3)], buffer, used))
    buffer[:3] = 7, 8, 9
    assert [program.run(), program.run()] == [0, 0]
    assert buffer.tolist() == [7, 8, 9, 1, 2, 7, 8, 9, 1, 2, 7, 8, 9, 0, 0, 0]
    assert used == 13


def test_rows_are_asked_for_again_with_other_threads() -> None:
    class Noted(Moves):
        def rows(self) -> list[list[int]]:
            asked.append(get_threads())
            return super().rows()

    asked, count = list[int](), np.zeros(1, np.int64)
    program = PreparedCalls(Noted([], [Counter(count)]))
    for threads in (1, 1, 2, 2, 1):
        set_threads(threads)
        assert program.run() == 0
    assert (asked, count.item()) == ([1, 2, 1], 5)


NUMBERS: list[list[Any]] = [
    [np.array(0.1), np.array(0.2), np.array(0.3)],
    [np.array(1e16), np.array(1.0), np.array(-1e16)],
    [np.array(-0.0, np.float32)],
    [np.array(2**53 + 1), np.array(True)],
    [np.array(np.inf), np.array(-np.inf, np.float32)],
]


def test_means_are_made_one_number_after_the_other() -> None:
    """Without what Python's own sum does from 3.12 on: of the second three it would be 1/3."""
    out = np.full(len(NUMBERS), 7.0)
    program = PreparedCalls(NumberMeans(out, NUMBERS))
    wanted = np.array([(0.1 + 0.2 + 0.3) / 3, 0.0, 0.0, (2.0**53 + 1.0) / 2, np.nan])
    for _ in range(2):
        assert program.run() == 0
        assert out.tobytes() == wanted.tobytes() or np.array_equal(out, wanted, equal_nan=True)
    NUMBERS[0][2][...] = 0.5
    assert (program.run(), out[0]) == (0, (0.1 + 0.2 + 0.5) / 3)


def test_a_single_number_is_what_it_is() -> None:
    out, numbers = np.zeros(4), [np.array(-0.0, np.float32), np.array(0.1, np.float32), np.array(True), np.array(-3)]
    assert PreparedCalls(NumberMeans(out, [[x] for x in numbers], single=True)).run() == 0
    assert out.tobytes() == np.array([-0.0, np.float32(0.1), 1.0, -3.0]).tobytes()
