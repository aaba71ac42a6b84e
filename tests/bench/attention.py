"""Attention, forward and backward, beside PyTorch: ``python tests/bench/attention.py`` (``pip install '.[bench]'``).

Each engine has a process of its own, and rounds alternate. The last column is PyTorch's time over dgrr's.
"""

import argparse
import os

from engines.attention import MODELS
from rich.console import Console
from rich.table import Table
from rounds import measure

ENGINES = {"dgrr": "attention_dgrr:make", "torch": "attention_torch:make"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one round")
    args = parser.parse_args()
    table = Table("attention", "dgrr [us]", "fastest", "torch [us]", "fastest", "torch over dgrr", "fastest")
    for name in MODELS:
        figures, absent = measure(ENGINES, name, args.threads, args.rounds, args.seconds)
        if absent:
            raise SystemExit(f"not measured: {absent}")
        ours, theirs = figures["dgrr"], figures["torch"]
        times = (ours.median, ours.fastest, theirs.median, theirs.fastest)
        ratios = (theirs.median / ours.median, theirs.fastest / ours.fastest)
        table.add_row(name, *(f"{t:.0f}" for t in times), *(f"{r:.2f}" for r in ratios))
    Console().print(table)


if __name__ == "__main__":
    main()
