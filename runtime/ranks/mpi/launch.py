"""``mpiexec -n N python -m dgrr.runtime.ranks train.py``: one rank that fails ends all."""

import sys
from collections.abc import Sequence
from pathlib import Path
from runpy import run_module, run_path

from .ending import end_all
from .package import mpi

USAGE = "usage: mpiexec -n N python -m dgrr.runtime.ranks PROGRAM.py [ARGUMENT …], or -m MODULE [ARGUMENT …]"


def launch(arguments: Sequence[str]) -> None:
    """Run a program, or with ``-m`` a module, as ``python`` does with these arguments.

    An exception, or an exit code other than 0, ends all ranks, with its message first; with one rank it is raised.
    """
    program, is_module = (arguments[1:2], True) if arguments[:1] == ["-m"] else (arguments[:1], False)
    if not program:
        sys.exit(USAGE)
    mpi("dgrr.runtime.ranks")
    sys.argv[:] = arguments[is_module:]
    try:
        if is_module:
            run_module(program[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(program[0]).resolve().parent)
            run_path(program[0], run_name="__main__")
    except BaseException as error:
        end_all(error)
        raise
