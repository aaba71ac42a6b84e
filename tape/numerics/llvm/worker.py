"""Processes that make code for other machines: tasks go in and answers come out, a line of JSON each.

They run without numba's own optimiser, whose output is for the CPU at hand. One that LLVM ends takes nobody with it.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..engine.code_for import VARIABLE


def environment(code_for: str) -> dict[str, str]:
    """The environment of such a process, which finds the modules that this one finds."""
    numba = {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    return {
        **os.environ,
        **numba,
        VARIABLE: code_for,
        "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
    }


def answers(module: str, code_for: str, tasks: Sequence[Any]) -> Iterator[tuple[Any, str | None]]:
    """The answer to each task of a process that runs a module: what it gave, or the error in words.

    They end early if the process does.
    """
    import subprocess  # which takes time, where most programs start no such process

    with (
        suppress(BrokenPipeError),
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(code_for),
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write("".join(json.dumps(task) + "\n" for task in tasks))
            process.stdin.close()
            for line in process.stdout:
                given, error = json.loads(line)
                yield given, error
        finally:
            process.kill()


def serve(do: Callable[[Any], Any]) -> None:
    """Do tasks until the standard input ends."""
    for line in sys.stdin:
        try:
            given, error = do(json.loads(line)), None
        except Exception as problem:  # the process that asked says it
            given, error = None, f"{type(problem).__name__}: {problem}"
        print(json.dumps([given, error]), flush=True)
