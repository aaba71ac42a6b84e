"""Ranks of MPI on one machine: ``python tests/bench/ranks.py`` (``pip install ".[bench,mpi]" mpich``).

The exchange of a step - sums to their owners, added in the order of the tree, parameters to all - beside an Allreduce
of the same bytes, which adds in an order that depends on the number of ranks. Whole steps of the bench models on two
ranks of one thread beside one process of two threads, with the exchange beside the backward pass and behind it; what
a rank keeps and sends. Every figure is the fastest of many rounds, as machines are shared; ``--json FILE`` writes all,
for ``ranks_simulation.py --check FILE``.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from engines.dgrr_models import loss_fn_of, renamed
from engines.models import MODELS, Mlp, Model
from rich.console import Console
from rich.table import Table

from dgrr.runtime import Adam, CapturedStep
from dgrr.runtime.ranks import Ranks, init
from dgrr.runtime.ranks.gathered import Arena, TreeOfRanks
from dgrr.runtime.ranks.ranked_step import RankedStep
from dgrr.runtime.ranks.shards import Shards, in_segments
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape.values.spec import Spec

BYTES = (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24)
WIDE = "4 x 1024"
TRAINED: dict[str, Model] = {
    **{name: MODELS[name] for name in ("64-128-128-10", "cnn-28x28", "transformer")},
    WIDE: Mlp((1024,) * 5, 32, "mse", 1.0),  # 16 MiB in four segments
}
MICRO_BATCHES = 4
console = Console(width=120)


class Counted:
    """Ranks that count the bytes which one sends to others."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self.sent = ranks, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ranks, name)

    def scatter(self, rows: Sequence[Any], bounds: Sequence[int], counts: Sequence[int]) -> Any:
        self.sent += len(rows) * (bounds[-1] - self._own(bounds))
        return self._ranks.scatter(rows, bounds, counts)

    def gather(self, whole: Any, bounds: Sequence[int]) -> None:
        self.sent += self._own(bounds) * (self._ranks.size - 1)
        self._ranks.gather(whole, bounds)

    def _own(self, bounds: Sequence[int]) -> int:
        return bounds[self._ranks.rank + 1] - bounds[self._ranks.rank]


def fastest(call: Callable[[], Any], rounds: int, together: Callable[[], Any] = lambda: None) -> float:
    """Seconds of the fastest of several calls, before each of which all ranks meet."""
    took = list[float]()
    for _ in range(rounds):
        together()
        began = perf_counter()
        call()
        took.append(perf_counter() - began)
    return min(took)


def exchanges(rounds: int) -> list[dict[str, Any]]:
    """On every rank: the exchange of a step and an Allreduce, for each size."""
    from mpi4py import MPI

    ranks, world = init(), MPI.COMM_WORLD
    return [exchange(ranks, world, MPI.IN_PLACE, nbytes, rounds) for nbytes in BYTES]


def exchange(ranks: Ranks, world: Any, in_place: Any, nbytes: int, rounds: int) -> dict[str, Any]:
    specs = {f"w{i}": Spec((nbytes // 16,), np.dtype(np.float32)) for i in range(4)}
    shards = [Shards(segment, lambda name: True, ranks.size) for segment in in_segments(specs)]
    arena = Arena(ranks, shards, TreeOfRanks(ranks, ranks.size))
    sums = {name: arena.rows(name) for name in specs}  # where a step makes them
    block, values = np.zeros(arena.nbytes, np.uint8), np.ones(nbytes // 4, np.float32)

    def once() -> None:
        for segment in reversed(range(len(shards))):
            arena.begin(segment, sums)
        arena.means(sums)
        arena.gather(block)

    took = fastest(once, rounds, world.Barrier)
    reduced = fastest(lambda: world.Allreduce(in_place, values), rounds, world.Barrier)
    return {"ranks": ranks.size, "bytes": nbytes, "seconds": took, "allreduce_seconds": reduced}


def steps(rounds: int, ranked: bool) -> list[dict[str, Any]]:
    """Whole steps of the models: on ranks with the exchange beside the rest and behind it, or in one process."""
    return [step(name, rounds, ranked) for name in TRAINED]


def step(name: str, rounds: int, ranked: bool) -> dict[str, Any]:
    model = TRAINED[name]
    params, batches = renamed(model.params()), model.batches()
    every = tuple(batches[i % len(batches)] for i in range(MICRO_BATCHES))
    recipe = Recipe(Adam(1e-3), MICRO_BATCHES, order="tree")
    row: dict[str, Any] = {"model": name, "micro_batches": MICRO_BATCHES}
    if not ranked:
        alone = CapturedStep(loss_fn_of(model), params, recipe)
        row |= {"seconds": fastest(lambda: alone(every), rounds), "digest": alone.digest()}
        single = CapturedStep(loss_fn_of(model), params, Recipe(Adam(1e-3)))
        return row | {"gradients_seconds": fastest(lambda: single.gradients(batches[0]), rounds)}
    for overlap in (True, False):
        counted: Any = Counted(init(overlap=overlap))
        made = RankedStep(loss_fn_of(model), params, recipe, counted)
        own = every[made.own.start : made.own.stop]
        counted.sent = 0
        made(own)
        row["sent"] = counted.sent
        row["seconds" if overlap else "seconds_without_overlap"] = fastest(partial(made, own), rounds - 1)
        row["digest" if overlap else "digest_without_overlap"] = made.digest()
    row["state"] = sum(array.nbytes for array in made.state.values())
    return row | {"parameters": sum(array.nbytes for array in made.params.values())}


def started(what: str, ranks: int, threads: int, rounds: int) -> Any:
    """What a program of so many ranks found; of 0 ranks, one without MPI."""
    mpiexec = Path(sys.executable).parent / "mpiexec"
    launcher = [str(mpiexec if mpiexec.exists() else "mpiexec"), "-n", str(ranks)] if ranks else []
    command = [*launcher, sys.executable, *(["-m", "dgrr.runtime.ranks"] if ranks else []), __file__]
    command += ["--worker", what, "--rounds", str(rounds)]
    variables = {**os.environ, "DGRR_THREADS": str(threads)}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def worker(what: str, rounds: int) -> None:
    """Measure, and print what rank 0 found."""
    found = exchanges(rounds) if what == "exchange" else steps(rounds, ranked=what == "ranked")
    if what == "steps" or init().rank == 0:
        print(json.dumps(found))


def measured(rounds: int) -> dict[str, Any]:
    """All figures."""
    exchange = [row for ranks in (2, 4) for row in started("exchange", ranks, 1, rounds)]
    two, one, one_thread = (
        started("ranked", 2, 1, rounds),
        started("steps", 0, 2, rounds),
        started("steps", 0, 1, rounds),
    )
    rows = list[dict[str, Any]]()
    for ranked, alone, single in zip(two, one, one_thread, strict=True):
        every = {ranked["digest"], ranked["digest_without_overlap"], alone["digest"], single["digest"]}
        assert len(every) == 1, ranked["model"]
        rows.append(
            {
                **{key: ranked[key] for key in ("model", "micro_batches", "parameters", "state", "sent")},
                "two_ranks_seconds": ranked["seconds"],
                "without_overlap_seconds": ranked["seconds_without_overlap"],
                "two_threads_seconds": alone["seconds"],
                "one_thread_seconds": single["seconds"],
                "gradients_seconds": single["gradients_seconds"],
            }
        )
    return {"exchange": exchange, "steps": rows}


def show(found: dict[str, Any]) -> None:
    """Print the tables."""
    table = Table("ranks", "bytes", "exchange [ms]", "Allreduce [ms]", "ratio", title="exchange of a step")
    for row in found["exchange"]:
        times = row["seconds"], row["allreduce_seconds"]
        table.add_row(
            str(row["ranks"]), str(row["bytes"]), *(f"{1e3 * t:.3f}" for t in times), f"{times[0] / times[1]:.2f}"
        )
    console.print(table)
    columns = ("two_ranks_seconds", "without_overlap_seconds", "two_threads_seconds", "one_thread_seconds")
    titles = ("2 ranks [ms]", "no overlap", "2 threads", "1 thread")
    table = Table("model", *titles, "state a rank", "sent a step", title=f"steps of {MICRO_BATCHES} micro-batches")
    for row in found["steps"]:
        times = [f"{1e3 * row[column]:.2f}" for column in columns]
        table.add_row(row["model"], *times, str(row["state"]), str(row["sent"]))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.rounds)
        return
    found = measured(args.rounds)
    show(found)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
