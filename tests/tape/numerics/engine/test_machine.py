"""The machine: rows in order, parts exactly once, statuses, helpers that come and helpers that do not."""

# numba's kernels carry no types.
# mypy: disable-error-code="no-untyped-def,misc,no-any-return,call-arg"
# pyright: basic, reportCallIssue=false
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import numpy as np
import pytest

from dgrr.tape.numerics.engine import machine
from dgrr.tape.numerics.engine.intrinsics import word
from dgrr.tape.numerics.engine.kernel import vector
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.engine.threads import HelperPool

from .programs import Program, counting, pool, publish, unlisted

pytestmark = pytest.mark.quick


@unlisted
def machine_writes_down(table, ints, part, parts):
    """Appends its word to a log: the first element is the length."""
    n = vector(table, 0, 0, 1)
    n[0] += 1
    vector(table, 0, n[0], 1)[0] = word(ints, 0)
    return word(ints, 1)


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


def state(made: HelperPool) -> tuple[int, int, int]:
    """Next part, parts done by helpers, whether the helper sleeps."""
    words = made._words
    return int(words[0] & 0xFFFF), int(words[machine.DONE // 8]), int(words[machine.PARKED // 8])


def test_a_helper_claims_what_is_left_and_falls_asleep(unmanned: HelperPool) -> None:
    counts, call = counting(5, 0, 0, 8, 6, 0)
    publish(unmanned, program := Program(call), 3, 5, 2)
    assert machine.help_out(unmanned.control, unmanned.control + machine.PARKED) == 0
    assert counts.tolist() == [0, 0, 1, 1, 1]
    assert state(unmanned) == (5, 3, 1)
    assert unmanned._words[machine.STATUS // 8] == 6
    assert program.run(unmanned.control) == [1, 6, 0]


@pytest.mark.parametrize(("parts", "following"), [(0, 0), (5, 5), (1, 1)])
def test_a_helper_leaves_alone_what_is_claimed(unmanned: HelperPool, parts: int, following: int) -> None:
    counts, call = counting(5)
    publish(unmanned, Program(call), 1, parts, following)
    assert machine.help_out(unmanned.control, unmanned.control + machine.PARKED) == 0
    assert not counts.any()
    assert state(unmanned) == (following, 0, 1)


def test_a_helper_ends_when_told(unmanned: HelperPool) -> None:
    counts, call = counting(5)
    publish(unmanned, Program(call), 1, 5, 1)
    unmanned._words[machine.STOP // 8] = 1
    assert machine.help_out(unmanned.control, unmanned.control + machine.PARKED) == 1
    assert not counts.any()


def test_a_step_whose_helpers_never_come_completes_alone(unmanned: HelperPool) -> None:
    counts, call = counting(6, 0, 0, 4, 0, 2, 0)
    for n in range(1, 4):
        assert Program(call).run(unmanned.control) == [1, 2, 0]
        assert counts.tolist() == [n] * 6
    assert state(unmanned)[1] == 0


def test_a_thread_that_finds_the_helpers_taken_runs_alone(unmanned: HelperPool) -> None:
    counts, call = counting(6, 0, 0, 4, 0, 2, 0)
    unmanned._words[machine.BUSY // 8] = 1
    assert Program(call).run(unmanned.control) == [1, 2, 0]
    assert counts.tolist() == [1] * 6
    assert state(unmanned) == (0, 0, 0)
    unmanned._words[machine.BUSY // 8] = 0
    assert Program(call).run(unmanned.control) == [1, 2, 0]
    assert state(unmanned) == (6, 0, 0)
    assert unmanned._words[machine.BUSY // 8] == 0


# ------------------------------------------------------------------ helpers that rest


def resting(made: HelperPool) -> tuple[int, int]:
    """For how many calls helpers rest yet, and how many it were when they were sent to."""
    return int(made._words[machine.RESTS // 8]), int(made._words[machine.LENGTH // 8])


def test_helpers_that_are_awake_and_do_not_come_rest_each_time_twice_as_long(unmanned: HelperPool) -> None:
    counts, call = counting(2)
    program, calls = Program(call), 0
    for length in (machine.FIRST_REST, 2 * machine.FIRST_REST, 4 * machine.FIRST_REST):
        for n in range(machine.MISSES):
            assert resting(unmanned) == (0, length // 2 if length > machine.FIRST_REST else 0), n
            program.run(unmanned.control)
        published = unmanned._words[machine.TICKET // 8]
        for left in range(length, 0, -1):
            assert resting(unmanned) == (left, length)
            program.run(unmanned.control)
        assert unmanned._words[machine.TICKET // 8] == published
        assert unmanned._words[machine.BUSY // 8] == 0
        calls += machine.MISSES + length
    assert counts.tolist() == [calls, calls]


def test_no_rest_is_longer_than_the_longest(unmanned: HelperPool) -> None:
    unmanned._words[machine.LENGTH // 8] = machine.LONGEST_REST
    for _ in range(machine.MISSES):
        Program(counting(2)[1]).run(unmanned.control)
    assert resting(unmanned) == (machine.LONGEST_REST,) * 2


def test_helpers_that_sleep_are_not_missed(unmanned: HelperPool) -> None:
    unmanned._words[machine.PARKED // 8] = 1
    for _ in range(2 * machine.MISSES):
        Program(counting(2)[1]).run(unmanned.control)
    assert resting(unmanned) == (0, 0)


def test_a_helper_that_comes_ends_the_count_and_shortens_the_next_rest() -> None:
    program, until = Program(counting(64)[1]), monotonic() + 20
    with pool(1) as made:
        made._words[machine.LENGTH // 8] = machine.LONGEST_REST // 2
        while resting(made)[1] >= machine.LONGEST_REST // 2:
            made._words[machine.MISSED // 8] = machine.MISSES // 2
            program.run(made.control)
            assert monotonic() < until
        assert made._words[machine.MISSED // 8] == 0


def test_threads_that_run_at_once_run_every_part_once() -> None:
    calls = [counting(parts) for parts in (5, 2, 7, 3)]
    with pool(3) as made, ThreadPoolExecutor(4) as callers:
        found = callers.map(lambda call: [Program(call).run(made.control) for _ in range(500)], [c for _, c in calls])
        assert list(found) == [[[0]] * 500] * 4
    assert [set(counts.tolist()) for counts, _ in calls] == [{500}] * 4


def test_generations_begin_anew_without_harm(unmanned: HelperPool) -> None:
    counts, call = counting(3)
    for generation in ((1 << 31) - 2, -1):
        unmanned._words[0] = generation << 32
        for _ in range(3):
            assert Program(call).run(unmanned.control) == [0]
    assert counts.tolist() == [6] * 3
