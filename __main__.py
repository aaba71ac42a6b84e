"""The program ``dgrr``, which ``python -m dgrr`` is too: the command line, with Ctrl-C answered while it is loaded."""

import gc

from .base.interruption import arm, disarm


def main() -> int:
    """Run the command line of this process and return its exit code."""
    arm()
    from .trace.cli import main as run  # which loads what takes a second

    code = run()
    disarm()
    gc.freeze()  # else Python looks through all that was loaded for cycles, several times, before it ends
    return code


if __name__ == "__main__":
    raise SystemExit(main())
