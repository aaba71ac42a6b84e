"""Training on several ranks of MPI, whose bits do not depend on how many there are."""

from .mpi.mpi_ranks import Ranks
from .mpi.start import init

__all__ = ["Ranks", "init"]
