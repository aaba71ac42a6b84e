"""How training scales to many ranks, by simulation: ``python tests/bench/ranks_simulation.py [--check FILE]``.

A step is followed rank by rank and message by message. A rank computes its micro-batches, each of which takes a drawn
time. Then every rank gives every other one its shard of the sums in rounds (in round k rank r sends to r + k and
receives from r - k), adds what it got, updates its shard, and the parameters go round a ring. A round begins when both
sides have done the one before; sending, receiving and adding take their time by bytes. ``--check`` holds the
simulation to what `ranks.py --json FILE` measured on one machine: latency and bandwidth are taken from the smallest and
largest exchange, what a step takes besides from the smallest model, and all else is predicted.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from dgrr.runtime.step.tree import range_of, spans_of

Times = npt.NDArray[np.float64]

RANKS = (1, 2, 4, 8, 16, 64, 256, 1024)
SMALL = 3
"""Gathers of a few bytes in a step: loss and flags, and what clipping and the recipe ask for."""
LONG = 1 << 19
"""Bytes from which the parameters go round a ring; below, in as many rounds as the number of ranks has bits."""
console = Console(width=132)


@dataclass(frozen=True)
class Machine:
    """What carries messages, and what a rank adds and updates in a second."""

    name: str
    latency: float
    """Seconds of a message without content."""
    bandwidth: float
    """Bytes a second of one rank, each way."""
    adding: float = 8e9
    """Bytes of one operand a second."""
    updating: float = 2.5e9
    """Bytes of parameters a second, Adam."""
    overhead: float = 0.5e-3
    """Seconds that a step of several ranks takes besides: Python between plans and messages."""
    jitter: float = 0.02
    """By which share of its time one micro-batch takes longer than another (standard deviation)."""


@dataclass(frozen=True)
class Work:
    """A model: bytes of its parameters, and how long a micro-batch takes on one rank."""

    name: str
    parameters: int
    micro_batch: float


MACHINES = (
    Machine("10 Gb/s Ethernet", 20e-6, 1.2e9),
    Machine("100 Gb/s InfiniBand", 1.5e-6, 12e9),
)

MODELS = (
    Work("64-128-128-10", 104_488, 92e-6),
    Work("cnn-28x28", 81_960, 6.5e-3),
    Work("transformer", 449_792, 10.5e-3),
    Work("4 x 1024", 16_793_600, 11.8e-3),
    Work("100 M parameters", 4 * 100_000_000, 2.5),
)
"""The bench models as one core of the machine of docs/ranks.md computes a micro-batch; of the last one, 4,096 tokens
on ranks that reach 1 TFLOP/s."""


def step_time(work: Work, machine: Machine, ranks: int, micro_batches: int, seed: int = 0) -> float:
    """Seconds from the beginning of a step until the last rank has all parameters."""
    now = computed(work, machine, ranks, micro_batches, seed)
    shard = work.parameters / ranks
    if ranks == 1:
        return float(now[0]) + shard / machine.updating
    spans = np.array([len(spans_of(micro_batches, range_of(micro_batches, r, ranks))) for r in range(ranks)])
    now = scattered(now, spans * shard, machine)
    now += (spans.sum() - 1) * shard / machine.adding
    now = together(now, machine)
    now += shard / machine.updating + machine.overhead
    return float(gathered(now, shard, machine).max())


def computed(work: Work, machine: Machine, ranks: int, micro_batches: int, seed: int) -> Times:
    """When each rank has the sums of its own micro-batches."""
    drawn = np.random.default_rng([seed, ranks]).standard_normal(micro_batches)
    every = work.micro_batch * (1 + machine.jitter * drawn)
    ends = [0.0, *accumulate(every.tolist())]
    owned = [range_of(micro_batches, rank, ranks) for rank in range(ranks)]
    adds = np.array([len(own) - len(spans_of(micro_batches, own)) for own in owned])
    return np.array([ends[own.stop] - ends[own.start] for own in owned]) + adds * work.parameters / machine.adding


def scattered(now: Times, sent: Times, machine: Machine) -> Times:
    """When each rank has its shard of all sums; ``sent`` bytes go from each to every other one."""
    place = np.arange(len(now))
    for k in range(1, len(now)):
        sender = (place - k) % len(now)
        begins = np.maximum(now, now[sender])
        now = begins + machine.latency + np.maximum(sent, sent[sender]) / machine.bandwidth
    return now


def together(now: Times, machine: Machine) -> Times:
    """When all ranks know the loss and the flags of all."""
    return np.full_like(now, now.max() + SMALL * ceil(log2(len(now))) * machine.latency)


def gathered(now: Times, shard: float, machine: Machine) -> Times:
    """When each rank has all shards."""
    n = len(now)
    if n * shard < LONG:
        rounds = ceil(log2(n))
        return np.full_like(now, now.max() + rounds * machine.latency + (n - 1) * shard / machine.bandwidth)
    for _ in range(n - 1):
        now = np.maximum(now, np.roll(now, 1)) + machine.latency + shard / machine.bandwidth
    return now


def efficiencies(work: Work, machine: Machine, micro_batches: int, ranks: Sequence[int] = RANKS) -> list[float]:
    """The time of one rank over n times that of n ranks, for the same step."""
    one = step_time(work, replace(machine, jitter=0.0), 1, micro_batches)
    return [one / (n * step_time(work, machine, n, micro_batches)) for n in ranks]


def sent_bytes(work: Work, ranks: int, micro_batches: int) -> int:
    """Bytes that the busiest rank sends in a step: its sums to their owners, and its shard to all."""
    spans = max(len(spans_of(micro_batches, range_of(micro_batches, r, ranks))) for r in range(ranks))
    return round((spans + 1) * work.parameters * (ranks - 1) / ranks)


def show(machine: Machine, micro_batches: int) -> None:
    """Print the table of one machine."""
    title = f"{machine.name}: efficiency in % of a step of {micro_batches} micro-batches"
    table = Table("model", "micro-batch [ms]", *map(str, RANKS), title=title)
    for work in MODELS:
        shares = efficiencies(work, machine, micro_batches)
        table.add_row(work.name, f"{1e3 * work.micro_batch:g}", *(f"{100 * share:.0f}" for share in shares))
    console.print(table)


def show_bytes(micro_batches: int) -> None:
    """Print what a rank sends and keeps."""
    work, n = MODELS[-1], (2, 3, 8, 100, 1024)
    table = Table(
        "", *(f"{ranks} ranks" for ranks in n), title=f"{work.name}, {micro_batches} micro-batches, Adam [MB]"
    )
    table.add_row("sent in a step by the busiest rank", *(f"{sent_bytes(work, r, micro_batches) / 1e6:.0f}" for r in n))
    table.add_row("optimizer state kept", *(f"{2 * work.parameters / r / 1e6:.1f}" for r in n))
    console.print(table)


def fitted(exchanges: Sequence[Mapping[str, Any]]) -> Machine:
    """The machine whose exchanges between two ranks take what the smallest and the largest took."""
    small, large = (pick(exchanges, key=lambda row: row["bytes"]) for pick in (min, max))
    size = large["bytes"]
    latency = small["seconds"] / (2 + SMALL)
    moved = large["seconds"] - small["seconds"] - size / 2 / Machine.adding
    return Machine("fitted", latency, size / moved, overhead=0.0, jitter=0.0)


def check(file: Path) -> None:
    """Print what was measured beside what is predicted."""
    measured = json.loads(file.read_text())
    exchanges = [row for row in measured["exchange"] if row["ranks"] == 2]
    machine = fitted(exchanges)
    table = Table("", "measured [ms]", "predicted [ms]", "ratio", title="two ranks on one machine")
    points = [
        (f"exchange of {row['bytes']} bytes", row["seconds"], exchange_time(row["bytes"], machine)) for row in exchanges
    ]
    smallest = measured["steps"][0]
    machine = replace(machine, overhead=smallest["two_ranks_seconds"] - step_of(machine, smallest))
    points += [
        (f"step of {row['model']}", row["two_ranks_seconds"], step_of(machine, row)) for row in measured["steps"]
    ]
    for name, took, predicted in points:
        table.add_row(name, f"{1e3 * took:.3f}", f"{1e3 * predicted:.3f}", f"{predicted / took:.2f}")
    console.print(f"latency {1e6 * machine.latency:.1f} us, bandwidth {machine.bandwidth / 1e9:.2f} GB/s")
    console.print(table)


def exchange_time(size: int, machine: Machine) -> float:
    """Seconds of the exchange between two ranks alone, without an update."""
    return step_time(Work("", size, 0.0), replace(machine, updating=float("inf")), 2, 2)


def step_of(machine: Machine, row: Mapping[str, Any]) -> float:
    """Seconds of a measured step by two ranks of this machine."""
    work = Work(row["model"], row["parameters"], row["gradients_seconds"])
    return step_time(work, machine, 2, row["micro_batches"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--micro-batches", type=int, default=1024)
    parser.add_argument("--check", type=Path, metavar="FILE", help="what ranks.py has measured")
    args = parser.parse_args()
    if args.check:
        check(args.check)
        return
    for machine in MACHINES:
        show(machine, args.micro_batches)
    show_bytes(args.micro_batches)


if __name__ == "__main__":
    main()
