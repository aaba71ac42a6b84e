"""The helping threads: asleep when idle, awake when needed, one step at a time, and ended for good."""

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, get_threads, ops, set_threads
from dgrr.tape.numerics.engine import launch, threads as pool_module
from dgrr.tape.numerics.engine.machine import RESTS, help_out
from dgrr.tape.numerics.engine.threads import NO_HELPERS, THREADS, HelperPool, Threads

PATIENCE = 20.0
"""Seconds after which something that should happen at once has not."""


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def asleep(pool: HelperPool) -> bool:
    return all(parked[0] == 1 for parked in pool._parked)


@pytest.fixture
def pool() -> Iterator[HelperPool]:
    made = HelperPool(2)
    yield made
    made.stop()


def test_idle_helpers_fall_asleep_and_use_no_time(pool: HelperPool) -> None:
    wait_for(lambda: asleep(pool))
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1  # one that spins uses 0.3


def test_sleeping_helpers_wake_and_fall_asleep_again(monkeypatch: pytest.MonkeyPatch) -> None:
    nights: list[int] = []

    def counted(control: int, parked: int) -> Any:
        nights.append(parked)
        return help_out(control, parked)

    monkeypatch.setattr(pool_module, "help_out", counted)
    pool = HelperPool(2)
    try:
        for woken in range(4):
            wait_for(lambda: asleep(pool) and len(nights) >= 2 * (woken + 1))  # noqa: B023
            pool.wake()
    finally:
        pool.stop()
    assert len({*nights}) == 2
    assert min(nights.count(helper) for helper in nights) >= 3  # every helper slept and woke again


def test_waking_many_times_is_waking_once(pool: HelperPool) -> None:
    wait_for(lambda: asleep(pool))

    def wake_often() -> None:
        for _ in range(200):
            pool.wake()

    callers = [threading.Thread(target=wake_often) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    wait_for(lambda: asleep(pool) and all(gate.locked() for gate in pool._gates))
    time.sleep(0.02)
    assert asleep(pool)


def test_helpers_that_rest_are_not_woken(pool: HelperPool) -> None:
    wait_for(lambda: asleep(pool))
    pool._words[RESTS // 8] = 1
    pool.wake()
    assert all(gate.locked() for gate in pool._gates)
    time.sleep(0.02)
    assert asleep(pool)


@pytest.mark.parametrize("sleeping", [True, False])
def test_a_stopped_pool_has_no_threads_left(sleeping: bool) -> None:
    for _ in range(20):
        pool = HelperPool(3)
        if sleeping:
            wait_for(partial(asleep, pool))
        pool.stop()
        assert not any(thread.is_alive() for thread in pool._threads)


def test_a_pool_may_be_stopped_twice_and_used_no_more() -> None:
    pool = HelperPool(2)
    pool.stop()
    pool.wake()
    pool.stop()
    assert not any(thread.is_alive() for thread in pool._threads)


def test_helpers_do_not_hold_a_program_up() -> None:
    pool = HelperPool(1)
    assert all(thread.daemon for thread in pool._threads)
    assert [thread.name for thread in pool._threads] == ["dgrr-1"]
    pool.stop()


# ------------------------------------------------------------------ lending


def test_every_block_has_the_same_pool() -> None:
    threads = Threads(2)
    with threads.lent() as control, threads.lent() as inner:
        assert control == inner != 0
    with threads.lent() as again:
        assert again == control
    threads.set(1)


def test_threads_that_come_first_together_start_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, together, found = Threads(2), threading.Barrier(4), list[int]()

    def ask() -> None:
        together.wait()
        with threads.lent() as control:
            found.append(control)

    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    threads.set(1)


def test_the_control_block_lives_as_long_as_the_block() -> None:
    threads = Threads(2)
    with threads.lent():
        pool = weakref.ref(threads._pool)
        threads.set(1)
        gc.collect()
        assert pool() is not None
    del threads
    gc.collect()
    assert pool() is None


@pytest.mark.parametrize(("count", "wanted"), [(1, True), (3, False)])
def test_who_needs_no_helpers_starts_none(count: int, wanted: bool) -> None:
    threads = Threads(count)
    assert threads.lent(wanted=wanted) is NO_HELPERS
    with threads.lent(wanted=wanted) as control:
        assert control == 0
    assert threads._pool is None


def test_another_number_of_threads_is_another_pool() -> None:
    threads = Threads(2)
    with threads.lent():
        pass
    first = threads._pool
    assert first is not None
    threads.set(4)
    assert not any(thread.is_alive() for thread in first._threads)
    with threads.lent():
        pass
    assert threads._pool is not None
    assert len(threads._pool._threads) == 3
    threads.set(1)


# ------------------------------------------------------------------ in use


@pytest.fixture
def four_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every kernel in four parts."""
    before = get_threads()
    set_threads(4)
    monkeypatch.setattr(launch, "PARALLEL_WORK", 0)
    yield
    set_threads(before)


def test_helpers_that_are_stuck_delay_nothing(four_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x: Any = AnyTensor(np.linspace(-1, 1, 1000))
    expected = ops.exp(x).numpy().tobytes()
    set_threads(4)
    monkeypatch.setattr(HelperPool, "_work", lambda pool, i: pool._gates[i].acquire())
    for _ in range(100):
        assert ops.exp(x).numpy().tobytes() == expected
    pool = THREADS._pool
    assert pool is not None
    assert all(thread.is_alive() for thread in pool._threads)
