"""Gradients of loops, beside JAX: ``python tests/bench/scans.py`` (``pip install '.[bench]'``).

Each engine has a process of its own, and rounds alternate. "first" is making the step and running it once; the last
columns are JAX's time over dgrr's.
"""

import argparse
import os

from engines.scans import MODELS
from rich.console import Console
from rich.table import Table
from rounds import measure

ENGINES = {"dgrr": "scans_dgrr:make", "jax": "scans_jax:make"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one round")
    args = parser.parse_args()
    table = Table(
        "loop", "dgrr [us]", "fastest", "first [s]", "jax [us]", "fastest", "first [s]", "jax over dgrr", "fastest"
    )
    for name in MODELS:
        figures, absent = measure(ENGINES, name, args.threads, args.rounds, args.seconds)
        if absent:
            raise SystemExit(f"not measured: {absent}")
        row, both = [name], [figures["dgrr"], figures["jax"]]
        for each in both:
            first = each.seconds["make"] + each.seconds["first step"]
            row += [f"{each.median:.0f}", f"{each.fastest:.0f}", f"{first:.2f}"]
        ours, theirs = both
        table.add_row(*row, f"{theirs.median / ours.median:.2f}", f"{theirs.fastest / ours.fastest:.2f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
