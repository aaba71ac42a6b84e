"""MPI, which not everybody has: the package mpi4py, and a library of MPI that it finds."""

from typing import Any

from ....base.packages import package

LIBRARY = "pip install mpich (a runtime from the same index), or load the MPI of the site"


def mpi(call: str) -> Any:
    """The module ``mpi4py.MPI``, whose import begins MPI.

    Raises ModuleNotFoundError that says how to get it, ImportError where it finds no library of MPI.
    """
    try:
        return package(call, "mpi4py.MPI", instead=f", and {LIBRARY}")
    except ModuleNotFoundError:
        raise
    except (ImportError, RuntimeError) as error:
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ImportError(f"{call}: expected a library of MPI that mpi4py can load, got: {first}; {LIBRARY}") from error
