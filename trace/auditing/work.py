"""Stretches of a run computed again: in this process, or side by side in others.

Each process makes the model and the batches for itself and takes the next stretch when it has done one. They are
started anew, not forked, so that no lock or thread of this one comes along.
"""

import pickle
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeAlias, cast

from ...base.errors import DgrrError
from ...tape import set_threads
from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import RunMode
from ..replaying.replay_state import Rules
from ..v2.check.report import Finding
from ..v2.read.reader import TraceReader, open_reader
from .examine import Counted, Examiner, UnitStretch, counted
from .units import Units

Result: TypeAlias = tuple[int, Finding | None]
"""A unit, and what is found first on the way to it or in it."""

_TO_END = 5.0
"""Seconds that a process has to end when it is told to."""


class WorkerError(DgrrError):
    """A process that computed units ended before its work was done."""


class AuditedRun(NamedTuple):
    """A trace, what makes the loss function and the batches of its run, its rules, and how its steps are done again."""

    path: str
    make: Callable[[], tuple[LossFn, Batches]]
    rules: Rules
    mode: RunMode = "replay"

    def unpicklable(self) -> str | None:
        """Why it cannot be handed to another process; None if it can."""
        try:
            pickle.dumps(self)
        except Exception as error:  # of whatever a user's object does when it is pickled
            return f"{type(error).__name__}: {error}"
        return None


def results(
    trace: TraceReader, run: AuditedRun, units: Units, stretches: Sequence[UnitStretch], jobs: int
) -> Iterator[Result]:
    """What is found in each unit of some stretches, in the order in which they are done.

    Raises:
        WorkerError: a process died.
    """
    if jobs == 1 or len(stretches) < 2:
        examiner = Examiner(trace, *run.make(), run.rules, run.mode, counted(trace, units, stretches))
        return (result for stretch in stretches for result in examiner.examined(units, stretch))
    jobs = min(jobs, len(stretches))
    executed, applied = counted(trace, units, stretches)
    return _side_by_side(run, units, stretches, Counted(executed // jobs, applied // jobs), jobs)


def _side_by_side(
    run: AuditedRun, units: Units, stretches: Sequence[UnitStretch], counted: Counted, jobs: int
) -> Iterator[Result]:
    left = iter(stretches)
    with _workers(run, units, counted, jobs) as working:
        for connection in working:
            _send(connection, next(left))
        while working:
            for ready in cast(list["Connection[Any, Any]"], wait(working)):
                told = _received(ready)
                if told is not None:
                    yield told
                elif (stretch := next(left, None)) is not None:
                    _send(ready, stretch)
                else:
                    working.remove(ready)


def _send(connection: "Connection[Any, Any]", stretch: UnitStretch) -> None:
    with suppress(OSError):  # of a process that has died, which is found when it is to answer
        connection.send(stretch)


def _received(connection: "Connection[Any, Any]") -> Result | None:
    """A result; None where the stretch is done. Raises WorkerError."""
    try:
        told: Result | str | None = connection.recv()
    except (EOFError, OSError):
        text = "audit: a process ended before its steps were computed, perhaps for lack of memory"
        raise WorkerError(text) from None
    if isinstance(told, str):
        raise WorkerError(told)
    return told


@contextmanager
def _workers(run: AuditedRun, units: Units, counted: Counted, jobs: int) -> Generator[list["Connection[Any, Any]"]]:
    """A connection to each of so many processes; they are ended with the block."""
    context = get_context("spawn")
    started = list[Any]()
    connections = list["Connection[Any, Any]"]()
    try:
        for _ in range(jobs):
            mine, other = context.Pipe()
            connections.append(mine)
            process = context.Process(target=_work, args=(other, run, units, counted), daemon=True)
            with _unheard():
                process.start()
            started.append(process)
            other.close()
        yield list(connections)
    finally:
        for process in started:
            process.terminate()
            process.join(_TO_END)
        for connection in connections:
            connection.close()


@contextmanager
def _unheard() -> Generator[None]:
    """Block Ctrl-C, which comes when the block has ended; what is started in it never hears it."""
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: "Connection[Any, Any]", run: AuditedRun, units: Units, counted: Counted) -> None:
    """The life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    set_threads(1)
    try:
        with redirect_stdout(sys.stderr), open_reader(run.path) as trace:  # standard output is for the answer
            examiner = Examiner(trace, *run.make(), run.rules, run.mode, counted)
            while True:
                stretch: UnitStretch = connection.recv()
                for result in examiner.examined(units, stretch):
                    connection.send(result)
                connection.send(None)
    except EOFError:  # whoever started it has died
        return
    except Exception as error:
        with suppress(OSError):  # likewise
            connection.send(f"audit: a process ended: {type(error).__name__}: {error}")
