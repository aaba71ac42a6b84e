"""How one rank that fails ends all of them: its message first, then the abort of MPI."""

import os
import sys
import time
import traceback
from types import TracebackType

from .package import mpi

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C has ended."""

HEARD = 0.2
"""Seconds in which a launcher passes on what was said: Open MPI's else tells of the abort first."""


def end_all(error: BaseException) -> None:
    """Say what happened on this rank, and end every rank of the program.

    Returns where there is one rank only, or the error is an exit without a fault: then nobody waits for it.
    """
    world = mpi("ranks").COMM_WORLD
    code = exit_code(error)
    if code == 0 or world.Get_size() == 1:
        return
    sys.stdout.flush()
    if not isinstance(error, SystemExit):
        text = "".join(traceback.format_exception(error))
        print(f"rank {world.Get_rank()} of {world.Get_size()} failed, so all stop\n{text}", end="", file=sys.stderr)
    elif not isinstance(error.code, int):
        print(error.code, file=sys.stderr)
    sys.stderr.flush()
    time.sleep(HEARD)
    world.Abort(code)
    os._exit(code)  # MPICH's abort returns while the others are being ended


def exit_code(error: BaseException) -> int:
    """What a process that this ends gives back.

    >>> exit_code(SystemExit()), exit_code(SystemExit("a message")), exit_code(ValueError())
    (0, 1, 1)
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if not isinstance(error, SystemExit):
        return 1
    return error.code if isinstance(error.code, int) else int(error.code is not None)


def end_all_on_errors() -> None:
    """From now on an exception that nobody catches ends all ranks."""
    sys.excepthook = _uncaught


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    end_all(error)
    sys.__excepthook__(kind, error, trace)
