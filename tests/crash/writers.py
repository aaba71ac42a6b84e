"""Several processes and one trace: ``python tests/crash/writers.py FOLDER``; prints what is wrong, exit code 1."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import runs

from dgrr.trace import TraceRecorder, TraceWriteError, Verdict, validate


def forked(act: Callable[[], int]) -> int:
    """A process that does something and ends with its answer."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = act()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """How a process has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def race(path: Path, begin: Callable[[Path], TraceRecorder], at: float) -> int:
    """Begin at a given time what others begin too, and go on if nobody was faster."""
    time.sleep(max(0.0, at - time.monotonic()))
    try:
        recorder = begin(path)
    except TraceWriteError:
        return 1
    while recorder.steps < runs.STEPS:
        runs.step(recorder)
    time.sleep(0.3)  # so that the others meet a writer, not a file that is done
    recorder.seal()
    return 0


def one_of_many(folder: Path) -> None:
    """Of processes that begin, resume or overwrite at the same time, one does."""
    starts: dict[str, Callable[[Path], TraceRecorder]] = {
        "begin": runs.begin,
        "overwrite": lambda path: runs.begin(path, overwrite=True),
        "resume": lambda path: runs.resume(path, 2),
    }
    for name, begin in starts.items():
        path = folder / name
        if name == "resume":
            runs.unfinished(path, 2)
        at = time.monotonic() + 0.2
        codes = [ended(child) for child in [forked(lambda: race(path, begin, at)) for _ in range(6)]]  # noqa: B023
        assert sorted(codes) == [0, 1, 1, 1, 1, 1], f"{name}: {codes}"
        assert validate(path).ok and len(runs.links(path)) == runs.STEPS, name


def a_child_cannot_write(folder: Path) -> None:
    """What a fork inherits is closed in the child; the parent goes on."""
    recorder = runs.begin(folder / "forked")
    runs.step(recorder)

    def write() -> int:
        try:
            runs.step(recorder)
        except TraceWriteError as error:
            recorder.close()
            return 17 if "a forked child cannot write" in str(error) else 1
        return 2

    assert ended(forked(write)) == 17
    runs.step(recorder)
    recorder.seal()
    report = validate(folder / "forked")
    assert (report.verdict, report.steps) == (Verdict.OK, 2)


def a_child_holds_nothing(folder: Path) -> None:
    """A process that is killed leaves its trace to the next, though a child that it forked lives on."""
    path, (ready, tell) = folder / "orphaned", os.pipe()

    def parent() -> int:
        recorder = runs.begin(path)
        runs.step(recorder)
        recorder.commit()
        forked(live_on)
        time.sleep(60)
        return 0

    def live_on() -> int:
        os.write(tell, os.getpid().to_bytes(4, "big"))
        time.sleep(60)
        return 0

    writer = forked(parent)
    child = int.from_bytes(os.read(ready, 4), "big")
    try:
        os.kill(writer, signal.SIGKILL)
        assert ended(writer) == -signal.SIGKILL
        runs.resume(path, 1).seal()
        assert validate(path).ok
    finally:
        os.kill(child, signal.SIGKILL)


def main() -> int:
    """The command."""
    folder = Path(sys.argv[1])
    for check in (one_of_many, a_child_cannot_write, a_child_holds_nothing):
        try:
            check(folder)
        except (AssertionError, TraceWriteError) as error:
            print(f"{check.__name__}: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
