"""A fault at every call of the system: ``python tests/crash/faults.py [SCENARIO …] [--every N]``.

Each scenario runs once to count its calls of the system, and then again for each call and each kind of fault. The
outcome must be an error that names a file and the cause, or what would have been without the fault; never a wrong file
under a final name; and after it the same must be possible again. What is found is printed; exit code 1 if there was
anything. Every place in the package that calls a service must have been reached.
"""

import argparse
import ast
import errno
import os
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import runs
from scenarios import LINKS, SCENARIOS, Scenario, expected_links
from services import NAMES, Fault, hooked

from dgrr.runtime.training.saving.checkpoint import CheckpointError
from dgrr.trace import TraceWriteError
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.v2.write import writer

ROOT = Path(runs.__file__).parents[2]
ALLOWED = (OSError, TraceFileError, TraceWriteError, CheckpointError)
KINDS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR, "short": 0, "torn": errno.ENOSPC}

SITES: set[tuple[str, int]] = set()
"""Where services were called: file and line."""


class Noting(Fault):
    """A fault that notes from where services are called."""

    def __call__(self, name: str, service: Callable[..., Any], *args: Any) -> Any:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.endswith(("/system.py", "/services.py")):
            frame = frame.f_back
        if frame is not None:
            SITES.add((frame.f_code.co_filename, frame.f_lineno))
        return super().__call__(name, service, *args)


def missed_sites() -> Iterator[str]:
    """Every place in the package where a service that may fail is called, and was not."""
    services = (*NAMES, "fsync_folder", "rename_and_close", "remove_and_close")
    for path in (ROOT / "base" / "atomic_file.py", *(ROOT / "trace").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="system"), attr=attr)) if attr in services:
                    if not SITES & {(str(path), line) for line in range(node.lineno, node.end_lineno + 1)}:
                        yield f"{path.relative_to(ROOT)}:{node.lineno}"


def open_files() -> int:
    """How many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))


def outcome(scenario: Scenario, folder: Path, fault: Fault) -> str:
    """What is wrong with what a fault leads to, or nothing."""
    before, error = open_files(), None
    with hooked(fault):
        try:
            scenario.act(folder)
        except ALLOWED as raised:
            error = raised
        except Exception as raised:
            return f"raised {type(raised).__name__}: {raised}"
    name = fault.names[fault.number]
    retried = fault.kind == "EINTR" and name == "write"  # by Python, in files that it buffers
    silent = name == "close" or retried or scenario.tolerated(fault.number, name)
    if error is None and fault.code and not silent:
        return "nothing was raised"
    text = str(error)
    if error is not None and not (str(folder) in text and os.strerror(fault.code) in text):
        return f"the error names no file, or not the cause: {type(error).__name__}: {text}"
    leaked = open_files() - before
    del error
    try:
        scenario.check(folder, "" if text == "None" else "for good" if fault.for_good else "once")
        assert not leaked, f"{leaked} descriptors stay open"
        again = scenario.again or scenario.act
        again(folder)
        scenario.check(folder, "")
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return ""


def kinds(number: int, name: str) -> Iterator[tuple[str, bool]]:
    """The kinds of fault that a call may have, and whether from then on. Readings are many: some of them, one kind."""
    if name == "pread":
        yield from [("EIO", False)] if number % 7 == 0 else []
        return
    for kind in KINDS:
        if kind not in ("short", "torn") or name in ("write", "pread_into"):
            yield kind, False
            if kind != "EINTR":  # which nothing meets for ever
                yield kind, True


def matrix(titles: Sequence[str], every: int) -> int:
    """Scenarios with a fault at every call, or at each so many; the number of findings."""
    found, runs_made = 0, 0
    warnings.simplefilter("ignore")  # of `.partial` files beside whole ones
    writer.monotonic = lambda: 0.0  # on a slow machine what is held back is written in more calls
    LINKS[:] = expected_links()
    for title in titles or SCENARIOS:
        scenario = SCENARIOS[title]
        with TemporaryDirectory() as root:
            prepared, folder, count = Path(root, "prepared"), Path(root, "folder"), Noting(-1, "", 0)
            prepared.mkdir()
            scenario.prepare(prepared)
            shutil.copytree(prepared, folder)
            with hooked(count):
                scenario.act(folder)
            scenario.check(folder, "")
            shutil.rmtree(folder)
            calls = Counter(count.names)
            faults = [(i, *rest) for i, name in enumerate(count.names) for rest in kinds(i, name)]
            for number, kind, for_good in faults[::every]:
                shutil.copytree(prepared, folder)
                fault = Noting(number, kind, KINDS[kind], for_good=for_good)
                text = outcome(scenario, folder, fault)
                runs_made += 1
                if text:
                    found += 1
                    lasting = ", and of all behind it" if for_good else ""
                    print(f"{title}: {kind} of call {number} ({count.names[number]}){lasting}: {text}", flush=True)
                shutil.rmtree(folder)
        print(
            f"{title}: {len(count.names)} calls ({', '.join(f'{n} {c}' for n, c in calls.most_common())})", flush=True
        )
    missed = [] if titles else list(missed_sites())
    print(f"{runs_made} faults, {found} findings, {len(missed)} places not reached", flush=True)
    for site in missed:
        print(f"not reached: {site}")
    return found + len(missed)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("titles", nargs="*", metavar="SCENARIO", choices=[*SCENARIOS, []], help="default: all")
    parser.add_argument("--every", type=int, default=1, help="only each so many of the faults")
    given = parser.parse_args()
    return 1 if matrix(given.titles, given.every) else 0


if __name__ == "__main__":
    sys.exit(main())
