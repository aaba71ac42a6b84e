"""The beginning of a program of several ranks."""

import os
from typing import Any

from ....tape.errors import DomainError
from ....tape.numerics.engine.threads import get_threads, set_threads
from .ending import end_all_on_errors
from .mpi_ranks import CHECK_EVERY, Ranks
from .package import mpi


def init(communicator: Any = None, *, overlap: bool = True, check_every: int = CHECK_EVERY) -> Ranks:
    """The ranks that ``mpiexec -n N python -m dgrr.runtime.ranks train.py`` has started; one where nobody has.

    The threads of kernels are shared among the ranks of a machine, unless ``DGRR_THREADS`` says their number. An
    exception that nobody catches on one rank ends all of them, with its message first.

    Args:
        communicator: of mpi4py; default all ranks. It is duplicated, so that messages of others do not meet.
        overlap: whether the exchange of gradients goes on beside what is computed, with the same bits.
        check_every: after how many steps the ranks compare their parameters.

    Raises:
        ModuleNotFoundError: mpi4py is not installed. ImportError: it finds no library of MPI.
        DomainError: ``check_every`` is not a whole number of at least 1.

    ::

        trainer = Trainer(loss_fn, params, Adam(1e-3), accumulate=8, order="tree", ranks=init())
    """
    if check_every != int(check_every) or check_every < 1:
        raise DomainError(
            f"ranks.init: argument 'check_every': expected a whole number of at least 1, got {check_every!r}"
        )
    library = mpi("ranks.init")
    world = library.COMM_WORLD if communicator is None else communicator
    if world.Get_size() > 1:
        end_all_on_errors()
        _share_threads(library, world)
    return Ranks(world.Dup(), overlap=overlap, check_every=int(check_every))


def _share_threads(library: Any, world: Any) -> None:
    """Divide the cores among the ranks of this machine."""
    beside = world.Split_type(library.COMM_TYPE_SHARED)
    if not os.environ.get("DGRR_THREADS"):
        set_threads(max(1, get_threads() // beside.Get_size()))
    beside.Free()
