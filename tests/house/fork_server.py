"""Programs in processes of their own that need not import the package: they are forked where that was done.

``python fork_server.py`` reads from its input one program a line, as a JSON list: the folder in which it runs, its
file, its arguments. What it prints is left there as ``stdout`` and ``stderr``, and its exit code is the answer.
"""

import gc
import json
import os
import runpy
import sys
from pathlib import Path

import dgrr.runtime
import dgrr.tape.nn
import dgrr.trace  # noqa: F401  (what programs import is there already)


def next_program() -> list[str] | None:
    """The arguments of a program that is to run in this process, a child; None in the parent, at the end."""
    for line in sys.stdin:
        folder, *arguments = json.loads(line)
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        os.chdir(folder)
        for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream.fileno())
        return arguments
    return None


if __name__ == "__main__":
    gc.freeze()  # else every child, as it ends, goes through all that was imported, and so copies it
    if arguments := next_program():
        sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
        runpy.run_path(arguments[0], run_name="__main__")
