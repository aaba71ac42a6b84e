"""The machine: rows in order, parts exactly once, statuses, batches and losses moved, flags kept away."""

# numba's kernels carry no types.
# mypy: disable-error-code="no-untyped-def,misc,no-any-return,call-arg"
# pyright: basic, reportCallIssue=false
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape.numerics import machine
from dgrr.tape.numerics.intrinsics import word
from dgrr.tape.numerics.kernel import KERNELS, Kernel, kernel, vector
from dgrr.tape.numerics.launch import Words
from dgrr.tape.numerics.pool import Pool

from ..test_environment import WORDS, control, under

Array = npt.NDArray[Any]
INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)


def unlisted(body: Any) -> Kernel:
    """A kernel that the table does not keep."""
    made = kernel(body)
    del KERNELS[made.name]
    return made


@unlisted
def machine_counts(table, ints, part, parts):
    """Counts each part that it runs; the status of a part is its word."""
    vector(table, 0, part, 1)[0] += 1
    return word(ints, part)


@unlisted
def machine_writes_down(table, ints, part, parts):
    """Appends its word to a log: the first element is the length."""
    n = vector(table, 0, 0, 1)
    n[0] += 1
    vector(table, 0, n[0], 1)[0] = word(ints, 0)
    return word(ints, 1)


@unlisted
def machine_adds(table, ints, part, parts):
    """``total = total + x * y``; fails at a negative x."""
    total, x, y = vector(table, 0, 0, 1), vector(table, 1, 0, 1), vector(table, 2, 0, 2)
    total[0] += x[0] * (y[0] + y[1])
    return 3 if x[0] < 0 else 0


@unlisted
def machine_rounds(table, ints, part, parts):
    """What flags of the thread would change: a subnormal result, a rounded sum."""
    out, x = vector(table, 0, 2 * part, 2), vector(table, 1, 0, 3)
    out[0], out[1] = x[0] * x[1], x[1] + x[2]
    return 0


class Program:
    """Rows of a table and all that they point to."""

    def __init__(self, *calls: tuple[Kernel, Sequence[Array], Words, int]) -> None:
        self.kept: list[Any] = [calls]
        rows: list[list[int]] = []
        for made, arrays, words, parts in calls:
            table = np.array([a.ctypes.data for a in arrays], np.int64)
            self.kept.append(table)
            rows.append([made.address(arrays[0].dtype), table.ctypes.data, words.address, parts])
        self.rows = np.array(rows, np.int64).reshape(-1, machine.ROW)
        self.fault = np.zeros(2, np.int64)

    def run(self, control: int = 0) -> list[int]:
        """Whether it failed, and the fault if so: status, row."""
        failed = machine.run(self.rows.ctypes.data, len(self.rows), control, self.fault)
        return [failed, *self.fault.tolist()] if failed else [failed]


@contextmanager
def pool(helpers: int) -> Iterator[Pool]:
    """A pool of its own."""
    made = Pool(helpers)
    made.wake()
    try:
        yield made
    finally:
        made.stop()


def counting(parts: int, *statuses: int) -> tuple[Array, tuple[Kernel, Sequence[Array], Words, int]]:
    counts = np.zeros(parts, np.int64)
    return counts, (machine_counts, [counts], Words(*(statuses or (0,) * parts)), parts)


# ------------------------------------------------------------------ rows


def test_rows_run_in_order() -> None:
    log = np.zeros(10, np.int64)
    program = Program(*((machine_writes_down, [log], Words(n, 0), 1) for n in (7, 3, 5)))
    assert program.run() == [0]
    assert program.run() == [0]
    assert log.tolist() == [6, 7, 3, 5, 7, 3, 5, 0, 0, 0]


def test_no_rows_are_no_step() -> None:
    assert Program().run() == [0]


def test_the_first_row_that_fails_ends_the_run() -> None:
    log = np.zeros(10, np.int64)
    program = Program(*((machine_writes_down, [log], Words(n, status), 1) for n, status in ((7, 0), (3, 9), (5, 2))))
    assert program.run() == [1, 9, 1]
    assert log[:3].tolist() == [2, 7, 3]


@pytest.mark.parametrize("helpers", [0, 1, 3])
@pytest.mark.parametrize(
    ("statuses", "least"),
    [((0, 0, 0), 0), ((0, 8, 5), 5), ((4, 0, 0), 4), ((2, 9, 3), 2), ((1 << 40, 0, 1 << 41), 1 << 40)],
)
def test_the_least_status_of_the_parts_counts(helpers: int, statuses: tuple[int, ...], least: int) -> None:
    with pool(helpers) as made:
        for use in (made.control, 0):
            counts, call = counting(3, *statuses)
            after, behind = counting(2)
            expected = [1, least, 0] if least else [0]
            assert Program(call, behind).run(use) == expected
            assert counts.tolist() == [1, 1, 1]
            assert after.tolist() == ([0, 0] if least else [1, 1])


def test_a_status_is_not_seen_by_the_next_call() -> None:
    with pool(2) as made:
        for statuses, expected in (((5, 6, 7), [1, 5, 0]), ((0, 0, 0), [0]), ((0, 9, 0), [1, 9, 0])):
            assert Program(counting(3, *statuses)[1]).run(made.control) == expected


# ------------------------------------------------------------------ parts


@pytest.mark.parametrize("helpers", [0, 1, 2, 6])
def test_every_part_runs_exactly_once(helpers: int) -> None:
    calls = [counting(parts) for parts in (2, 7, 1, 3, 64, 2, 2)]
    program = Program(*(call for _, call in calls))
    with pool(helpers) as made:
        for _ in range(1000):
            assert program.run(made.control) == [0]
    assert [set(counts.tolist()) for counts, _ in calls] == [{1000}] * len(calls)


def test_the_most_parts() -> None:
    counts, call = counting(1 << 10)
    with pool(2) as made:
        assert Program(call).run(made.control) == [0]
    assert set(counts.tolist()) == {1}


# ------------------------------------------------------------------ one helper, on this thread


@pytest.fixture
def unmanned(monkeypatch: pytest.MonkeyPatch) -> Pool:
    """A pool whose only helper never started."""
    monkeypatch.setattr("threading.Thread.start", lambda thread: None)
    return Pool(1)


def publish(made: Pool, program: Program, generation: int, parts: int, following: int) -> None:
    """What a running step says to its helpers."""
    at = {word: word // 8 for word in (machine.CURRENT, machine.STATUS, machine.TICKET)}
    made._words[at[machine.CURRENT]] = program.rows.ctypes.data
    made._words[at[machine.STATUS]] = machine.NO_STATUS
    made._words[at[machine.TICKET]] = generation << 32 | parts << 16 | following


def state(made: Pool) -> tuple[int, int, int]:
    """Next part, parts done by helpers, whether the helper sleeps."""
    words = made._words
    return int(words[0] & 0xFFFF), int(words[machine.DONE // 8]), int(words[machine.PARKED // 8])


def test_a_helper_claims_what_is_left_and_falls_asleep(unmanned: Pool) -> None:
    counts, call = counting(5, 0, 0, 8, 6, 0)
    publish(unmanned, program := Program(call), 3, 5, 2)
    assert machine.help_out(unmanned.control, unmanned.control + machine.PARKED) == 0
    assert counts.tolist() == [0, 0, 1, 1, 1]
    assert state(unmanned) == (5, 3, 1)
    assert unmanned._words[machine.STATUS // 8] == 6
    assert program.run(unmanned.control) == [1, 6, 0]


@pytest.mark.parametrize(("parts", "following"), [(0, 0), (5, 5), (1, 1)])
def test_a_helper_leaves_alone_what_is_claimed(unmanned: Pool, parts: int, following: int) -> None:
    counts, call = counting(5)
    publish(unmanned, Program(call), 1, parts, following)
    assert machine.help_out(unmanned.control, unmanned.control + machine.PARKED) == 0
    assert not counts.any()
    assert state(unmanned) == (following, 0, 1)


def test_a_helper_ends_when_told(unmanned: Pool) -> None:
    counts, call = counting(5)
    publish(unmanned, Program(call), 1, 5, 1)
    unmanned._words[machine.STOP // 8] = 1
    assert machine.help_out(unmanned.control, unmanned.control + machine.PARKED) == 1
    assert not counts.any()


def test_a_step_whose_helpers_never_come_completes_alone(unmanned: Pool) -> None:
    counts, call = counting(6, 0, 0, 4, 0, 2, 0)
    for n in range(1, 4):
        assert Program(call).run(unmanned.control) == [1, 2, 0]
        assert counts.tolist() == [n] * 6
    assert state(unmanned)[1] == 0


def test_a_thread_that_finds_the_helpers_taken_runs_alone(unmanned: Pool) -> None:
    counts, call = counting(6, 0, 0, 4, 0, 2, 0)
    unmanned._words[machine.BUSY // 8] = 1
    assert Program(call).run(unmanned.control) == [1, 2, 0]
    assert counts.tolist() == [1] * 6
    assert state(unmanned) == (0, 0, 0)
    unmanned._words[machine.BUSY // 8] = 0
    assert Program(call).run(unmanned.control) == [1, 2, 0]
    assert state(unmanned) == (6, 0, 0)
    assert unmanned._words[machine.BUSY // 8] == 0


def test_threads_that_run_at_once_run_every_part_once() -> None:
    calls = [counting(parts) for parts in (5, 2, 7, 3)]
    with pool(3) as made, ThreadPoolExecutor(4) as callers:
        found = callers.map(lambda call: [Program(call).run(made.control) for _ in range(500)], [c for _, c in calls])
        assert list(found) == [[[0]] * 500] * 4
    assert [set(counts.tolist()) for counts, _ in calls] == [{500}] * 4


def test_generations_begin_anew_without_harm(unmanned: Pool) -> None:
    counts, call = counting(3)
    for generation in ((1 << 31) - 2, -1):
        unmanned._words[0] = generation << 32
        for _ in range(3):
            assert Program(call).run(unmanned.control) == [0]
    assert counts.tolist() == [6] * 3


# ------------------------------------------------------------------ several steps


class Adding:
    """A program of two inputs and a loss."""

    def __init__(self) -> None:
        self.total, self.x, self.y = np.zeros(1), np.zeros(1), np.zeros(2)
        self.program = Program((machine_adds, [self.total, self.x, self.y], Words(), 1))

    def steps(self, xs: Array, ys: Array) -> tuple[int, list[float]]:
        """How many steps ran, and their losses; those that did not run leave -1."""
        n = len(xs)
        losses = np.full(n, -1.0)
        feeds = [(self.x.ctypes.data, xs.ctypes.data, 8), (self.y.ctypes.data, ys.ctypes.data, 16)]
        out = np.array([self.total.ctypes.data, losses.ctypes.data, 8], np.int64)
        rows, fault = self.program.rows, self.program.fault
        done = machine.run_steps(rows.ctypes.data, 1, 0, fault, np.array(feeds, np.int64), out, n)
        return done, losses.tolist()


def test_every_step_has_its_batch_and_leaves_its_loss() -> None:
    adding = Adding()
    xs, ys = np.array([1.0, 2.0, 3.0]), np.array([[1.0, 0.0], [0.5, 0.5], [2.0, 3.0]])
    assert adding.steps(xs, ys) == (3, [1.0, 3.0, 18.0])
    assert (adding.x.tolist(), adding.y.tolist()) == ([3.0], [2.0, 3.0])


def test_steps_end_at_the_one_that_fails() -> None:
    adding = Adding()
    done, losses = adding.steps(np.array([1.0, -2.0, 3.0]), np.ones((3, 2)))
    assert (done, losses) == (1, [2.0, -1.0, -1.0])
    assert adding.program.fault.tolist() == [3, 0]


def test_no_steps() -> None:
    assert Adding().steps(np.empty(0), np.empty((0, 2))) == (0, [])


# ------------------------------------------------------------------ feeding


class Fed(Adding):
    """The same program, fed with arrays given by id."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = [np.array(buffer.shape, np.int64) for buffer in (self.x, self.y)]
        rows = [
            (buffer.ctypes.data, buffer.nbytes, buffer.ndim, sizes.ctypes.data, id(buffer.dtype))
            for buffer, sizes in zip((self.x, self.y), self.sizes, strict=True)
        ]
        self.feeds = np.array(rows, np.int64)

    def run(self, *batch: Array) -> int:
        rows, fault = self.program.rows, self.program.fault
        ids = tuple(map(id, batch))
        return machine.run_fed(rows.ctypes.data, 1, 0, fault.ctypes.data, self.feeds.ctypes.data, ids)


def test_a_batch_is_copied_and_run() -> None:
    fed = Fed()
    x, y = np.array([2.0]), np.array([3.0, 4.0])
    assert fed.run(x, y) == 0
    assert fed.run(x * 0 - 1, y) == 1
    assert fed.total.tolist() == [7.0]
    assert fed.program.fault.tolist() == [3, 0]
    assert (fed.x.tolist(), fed.y.tolist()) == ([-1.0], [3.0, 4.0])


@pytest.mark.parametrize(
    "y",
    [
        np.ones(3), np.ones((1, 2)), np.ones(2, np.float32), np.ones(2, np.int64), np.ones(()), np.ones(4)[::2],
        np.ones(4)[::-2], np.broadcast_to(np.ones(1), 2), np.ones(2, ">f8"),
        np.frombuffer(b"x" * 17, np.uint8)[1:].view(np.float64),
    ],
    ids=["longer", "an axis more", "another type", "integers", "a number", "strided", "reversed", "repeated",
         "another byte order", "not aligned"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_done(y: Array) -> None:
    fed = Fed()
    assert fed.run(np.array([2.0]), y) == -1
    assert (fed.total.tolist(), fed.x.tolist(), fed.y.tolist()) == ([0.0], [0.0], [0.0, 0.0])


# ------------------------------------------------------------------ flags


def rounding(parts: int) -> tuple[Array, Program]:
    out, x = np.zeros(2 * parts), np.array([2.0**-1070, 0.5, 2.0**-60])
    return out, Program((machine_rounds, [out, x], Words(), parts))


KEPT = [2.0**-1071, 0.5]


@pytest.mark.parametrize("flags", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("parts", [1, 4])
def test_flags_of_the_caller_change_nothing_and_come_back(flags: int, parts: int) -> None:
    out, program = rounding(parts)
    with under(flags):  # checks on the way out that the flags are there again
        program.run()
    assert out.tolist() == KEPT * parts


@pytest.mark.parametrize("flags", WORDS.values(), ids=WORDS)
def test_flags_of_a_helper_change_nothing_and_come_back(unmanned: Pool, flags: int) -> None:
    out, program = rounding(4)
    publish(unmanned, program, 1, 4, 0)
    with under(flags):
        machine.help_out(unmanned.control, unmanned.control + machine.PARKED)
        assert control() == flags
    assert out.tolist() == KEPT * 4


@pytest.mark.parametrize("flags", WORDS.values(), ids=WORDS)
def test_flags_of_threads_that_start_under_them_change_nothing(flags: int) -> None:
    out, program = rounding(8)
    with under(flags), pool(2) as made:
        for _ in range(50):
            out[:] = 0
            program.run(made.control)
            assert out.tolist() == KEPT * 8


def test_flags_change_nothing_in_several_steps() -> None:
    adding = Adding()
    with under(WORDS["both"]):
        assert adding.steps(np.array([2.0**-1070, 1.0]), np.array([[0.25, 0.25], [2.0**-1074, 0.0]])) == (
            2,
            [2.0**-1071, 2.0**-1071 + 2.0**-1074],
        )
