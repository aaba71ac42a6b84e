"""Reads that it takes to find the first different step of two sealed traces, up to a million steps.

    python tests/bench/bisect_reads.py

A minute or two, and 400 MB in the folder of temporary files. Fails where reads grow faster than the logarithm.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from dgrr.tests.trace.comparing.test_long_traces import held


def main() -> None:
    """Print a line for each length."""
    for steps in (1_000, 10_000, 100_000, 1_000_000):
        with TemporaryDirectory() as folder:
            print(held(steps, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
