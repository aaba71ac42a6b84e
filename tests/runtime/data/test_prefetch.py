"""Batches made ahead by a thread: the same ones, errors where they belong, and never a thread that is left."""

import gc
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Callback, Dataset, Stream
from dgrr.runtime.data import Epochs, Prefetch, SampleRandom
from dgrr.tape import DomainError
from dgrr.trace import replay

from ..training.saving import DATA, loss_fn, new_trainer

NAME = "dgrr-prefetch"


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == NAME]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    assert threads() == []
    yield
    assert threads() == []


class Counted(Epochs[int]):
    """Endless, or so many numbers; counts those that were made, and notes the end of its iteration."""

    def __init__(self, n: int = 1 << 30) -> None:
        self.n, self.made, self.ended = n, 0, list[str]()

    def epoch(self, k: int) -> Iterator[int]:
        try:
            for i in range(self.n):
                self.made += 1
                yield 100 * k + i
        finally:
            self.ended.append(threading.current_thread().name)


def settled(source: Counted, made: int) -> None:
    """Wait until so many were made, and see that no more come."""
    until = time.monotonic() + 20
    while source.made < made and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.02)
    assert source.made == made


def noisy(x: Any, y: Any, random: SampleRandom) -> Any:
    return x + random.normal(x.shape), y


@pytest.mark.parametrize("n", [1, 2, 50])
def test_the_same_batches_epoch_after_epoch(n: int) -> None:
    plain = Dataset(np.arange(40.0).reshape(20, 2), np.arange(20)).map(noisy, seed=1).batches(3, seed=2)
    ahead = plain.prefetch(n)
    assert len(ahead) == len(plain) == 7
    for k in (5, 0):
        assert_equal(ahead.epoch(k), plain.epoch(k))
    for _ in range(3):
        assert_equal(iter(ahead), iter(plain))


def assert_equal(some: Iterator[Any], others: Iterator[Any]) -> None:
    for one, other in zip(some, others, strict=True):
        assert [part.tobytes() for part in one] == [part.tobytes() for part in other]


@pytest.mark.parametrize("n", [1, 3])
def test_so_many_are_made_ahead(n: int) -> None:
    source = Counted()
    batches = iter(source.prefetch(n))
    assert threads() == [] and source.made == 0, "nothing is made before the first is asked for"
    for taken in range(1, 4):
        assert next(batches) == taken - 1
        settled(source, taken + n)
    assert threads() == [NAME]
    del batches
    assert source.ended == [NAME], "in the thread that ran it"


def test_batches_are_made_by_one_other_thread() -> None:
    names = set[str]()

    def noted(x: Any) -> Any:
        names.add(threading.current_thread().name)
        return x

    list(Dataset(np.arange(9)).map(noted).batches(2).prefetch(4))
    assert names == {NAME}


def test_several_at_a_time() -> None:
    ahead = Counted(5).prefetch(2)
    assert list(zip(ahead, ahead, strict=True)) == [(i, 100 + i) for i in range(5)]


def test_a_break_ends_the_thread() -> None:
    source = Counted()
    for number in source.prefetch(2):
        if number == 3:
            break
    assert threads() == []
    assert source.ended == [NAME]


def test_an_iterator_closed_or_never_begun() -> None:
    source = Counted()
    begun, new = source.prefetch(2).epoch(0), source.prefetch(2).epoch(0)
    assert next(begun) == 0
    for batches in (begun, new):
        batches.close()  # type: ignore[attr-defined]
        assert list(batches) == []
        batches.close()  # type: ignore[attr-defined]


def test_in_a_ring_of_references_it_ends_with_the_ring() -> None:
    ring: list[Any] = [iter(Counted().prefetch(2))]
    next(ring[0])
    ring.append(ring)
    del ring
    assert threads() == [NAME]
    gc.collect()


def test_an_error_of_the_source_comes_in_its_place_with_its_traceback() -> None:
    def fails() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError("of the source")

    batches = iter(Stream(fails).batches(1).prefetch(8))
    assert [next(batches)[0].tolist() for _ in range(2)] == [[1], [2]]
    with pytest.raises(LookupError) as caught:
        next(batches)
    assert threads() == []
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "fails"
    assert list(batches) == []


def test_an_error_holds_nothing_once_it_is_handled() -> None:
    class OwnError(LookupError):
        pass

    def fails() -> Iterator[int]:
        raise OwnError
        yield 1

    def handled() -> weakref.ref[OwnError]:
        try:
            next(iter(Stream(fails).batches(1).prefetch()))
        except OwnError as error:
            return weakref.ref(error)
        raise AssertionError("it went on")

    gc.collect()
    gc.disable()
    try:
        assert handled()() is None
    finally:
        gc.enable()


def test_system_exit_comes_too() -> None:
    def leaves(x: Any) -> Any:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        next(iter(Dataset([1]).map(leaves).batches(1).prefetch()))


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None])
def test_numbers_refused(n: Any) -> None:
    with pytest.raises(DomainError) as caught:
        Prefetch(Counted(), n)
    assert str(caught.value) == f"prefetch: n: expected a whole number of at least 1, got {n!r}"


# ------------------------------------------------------------------ in a fit


class StopAt(Callback):
    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_step(self, trainer: Any, step: int, loss: float) -> bool | None:
        return step + 1 == self.steps


class Raise(Callback):
    def on_step(self, trainer: Any, step: int, loss: float) -> bool | None:
        raise InterruptedError


class Interrupt(Callback):
    def on_step(self, trainer: Any, step: int, loss: float) -> bool | None:
        signal.raise_signal(signal.SIGINT)
        return None


def test_a_fit_is_the_same_and_ends_the_thread() -> None:
    plain = new_trainer(mode="eager").fit(DATA.batches(6, seed=3), epochs=2)
    ahead = new_trainer(mode="eager").fit(DATA.batches(6, seed=3).prefetch(2), epochs=2)
    assert ahead.losses.tobytes() == plain.losses.tobytes()
    assert ahead.state_digest == plain.state_digest
    assert threads() == []
    stopped = new_trainer(mode="eager", callbacks=[StopAt(2)]).fit(DATA.batches(6, seed=3).prefetch(2), epochs=2)
    assert stopped.steps == 2
    assert threads() == []
    assert new_trainer(mode="eager").fit(DATA.batches(6, seed=3).prefetch(2), steps=3).steps == 3


@pytest.mark.parametrize(("callback", "error"), [(Raise, InterruptedError), (Interrupt, KeyboardInterrupt)])
def test_a_fit_that_is_broken_off_ends_the_thread(callback: Any, error: type[BaseException]) -> None:
    source = Counted(1 << 20)

    class Real(Epochs[Any]):
        def epoch(self, k: int) -> Iterator[Any]:
            return (DATA[:4] for _ in source.epoch(k))

    def broken_off() -> None:
        try:
            new_trainer(mode="eager", callbacks=[callback()]).fit(Real().prefetch(3))
        except error:
            return
        raise AssertionError("it went on")

    broken_off()
    assert threads() == []
    assert source.ended == [NAME]


PROGRAM = """
import signal, sys, threading, time
from dgrr.runtime import Stream

def endless():
    try:
        while True:
            yield 1
    finally:
        print("ended in", threading.current_thread().name, flush=True)

batches = iter(Stream(endless).batches(2).prefetch(2))
next(batches)
print("begun", flush=True)
{rest}
"""


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        pytest.param("", 0, id="end"),
        pytest.param("raise ValueError", 1, id="error", marks=pytest.mark.long),
        pytest.param("signal.raise_signal(signal.SIGINT)", -2, id="Ctrl-C"),
        pytest.param("sys.exit(5)", 5, id="exit", marks=pytest.mark.long),
    ],
)
def test_a_process_ends_with_an_iterator_that_is_held(tmp_path: Path, rest: str, code: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(rest=rest))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert done.stdout.split("\n") == ["begun", f"ended in {NAME}", ""]


def test_ctrl_c_while_waiting_for_a_slow_batch(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    slow = PROGRAM.replace("yield 1", "yield 1; yield 1; time.sleep(0.5)")
    program.write_text(
        slow.format(rest="import os\nthreading.Timer(0.1, os.kill, [os.getpid(), 2]).start()\nlist(batches)")
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -2, done.stderr
    assert done.stdout.endswith(f"ended in {NAME}\n")


def test_a_recorded_run_is_proven_with_batches_made_anew(tmp_path: Path) -> None:
    def batches() -> Any:
        return DATA.map(noisy, seed=4).batches(6, seed=3).prefetch(2)

    path = tmp_path / "run.dgrr"
    new_trainer(mode="eager", trace=path, record="digest").fit(batches(), epochs=2)
    assert replay(path, loss_fn=loss_fn, batches=batches()).ok
    assert not replay(path, loss_fn=loss_fn, batches=DATA.map(noisy, seed=5).batches(6, seed=3)).ok
