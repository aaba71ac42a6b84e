"""``python -m dgrr.runtime.ranks``."""

import sys

from .mpi.launch import launch

if __name__ == "__main__":
    launch(sys.argv[1:])
