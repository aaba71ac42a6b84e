"""What pools cost beside PyTorch: ``python tests/bench/pool.py``.

Forward and backward of (64, 16, 28, 28) and (64, 16, 8, 8) float32 on one thread. Each engine runs in a process of its
own; rounds alternate; the table shows the fastest of all in microseconds and PyTorch's divided by ours. A copy of an
input of that size is the speed of memory. Without PyTorch only our columns are printed.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROUNDS, CALLS = 3, 20
PLANES, SIZES = (64, 16), (28, 8)
RULES = ((2, 2, 0), (3, 2, 1), (3, 1, 1), (3, 3, 0))
POOLS = [(name, size, k, s, p) for size in SIZES for name in ("max", "avg") for k, s, p in RULES]
Passes = tuple[Callable[[], Any], Callable[[], Any]]


def label(name: str, size: int, kernel: int, stride: int, padding: int) -> str:
    return f"{size}x{size}: {name} {kernel}x{kernel}, stride {stride}, padding {padding}"


def dgrr_passes() -> dict[str, Passes]:
    from dgrr.tape import Tape, ops, set_threads

    set_threads(1)
    tape: Tape[Any] = Tape()
    rng = np.random.default_rng(0)

    def passes(name: str, size: int, kernel: int, stride: int, padding: int) -> Passes:
        x = tape.leaf(rng.standard_normal((*PLANES, size, size)).astype(np.float32))
        pool = {"max": ops.max_pool, "avg": ops.avg_pool}[name]
        y = pool(x, (kernel, kernel), stride, padding)
        seed = np.ones(y.shape, np.float32)
        return (
            lambda: pool(tape.require_value(x.id, x.shape), (kernel, kernel), stride, padding),
            lambda: tape.backward_dense(y, seed),
        )

    return {label(*pool): passes(*pool) for pool in POOLS}


def torch_passes() -> dict[str, Passes]:
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)

    def passes(name: str, size: int, kernel: int, stride: int, padding: int) -> Passes:
        x = torch.randn((*PLANES, size, size), requires_grad=True)
        pool = {"max": functional.max_pool2d, "avg": functional.avg_pool2d}[name]
        y = pool(x, kernel, stride, padding)
        seed = torch.ones_like(y)
        return (
            lambda: pool(x, kernel, stride, padding),
            lambda: torch.autograd.grad(y, x, seed, retain_graph=True),
        )

    return {label(*pool): passes(*pool) for pool in POOLS}


def copy_passes() -> dict[str, Passes]:
    def passes(size: int) -> Passes:
        x = np.ones((*PLANES, size, size), np.float32)
        y = np.empty_like(x)
        return (lambda: np.copyto(y, x),) * 2

    copies = {size: passes(size) for size in SIZES}
    return {label(*pool): copies[pool[1]] for pool in POOLS}


ENGINES = {"dgrr": dgrr_passes, "torch": torch_passes, "copy": copy_passes}


def fastest(call: Callable[[], Any]) -> float:
    """Microseconds of the fastest call."""
    call()
    times: list[float] = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def one_round(engine: str) -> dict[str, list[float]]:
    """Forward and backward of every pool in a fresh process."""
    command = [sys.executable, __file__, "--engine", engine]
    made: dict[str, list[float]] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=list(ENGINES), help="measure one engine in this process, print JSON")
    engine = parser.parse_args().engine
    if engine:
        print(json.dumps({name: [fastest(call) for call in passes] for name, passes in ENGINES[engine]().items()}))
        return
    engines = [e for e in ENGINES if e != "torch" or find_spec(e)]
    rounds = [{e: one_round(e) for e in engines} for _ in range(ROUNDS)]
    best = {e: {n: np.min([r[e][n] for r in rounds], 0) for n in rounds[0][e]} for e in engines}
    table = Table("pool", "dgrr [us]", "torch [us]", "torch / dgrr", "forward and backward / copies")
    for name, ours in best["dgrr"].items():
        theirs = best["torch"][name] if "torch" in best else np.full(2, np.nan)
        shown = [f"{a:.0f} + {b:.0f}" for a, b in (ours, theirs)]
        table.add_row(name, *shown, f"{theirs.sum() / ours.sum():.2f}", f"{ours.sum() / best['copy'][name][0]:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
