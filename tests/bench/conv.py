"""Convolutions beside PyTorch's: ``python tests/bench/conv.py [--threads N] [--json FILE]``.

Each engine runs in a process of its own, since the threads of two would stall each other; rounds alternate. A time
is a call of an op on float32 arrays that allocates its result. The table shows the minimum in microseconds, the
rate, and PyTorch's time divided by ours.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

Times = dict[str, float]
Calls = dict[str, Callable[[], object]]

ROUNDS, SECONDS = 3, 0.1
"""Rounds of each engine, and how long a round measures one call."""


class Shape(NamedTuple):
    """A convolution with padding of half a kernel, which keeps the sizes at stride 1."""

    batch: int
    channels: int
    outputs: int
    size: tuple[int, ...]
    kernel: int
    stride: int = 1

    @property
    def out(self) -> tuple[int, ...]:
        """The spatial sizes of the result."""
        return tuple((n - 1) // self.stride + 1 for n in self.size)

    @property
    def flops(self) -> int:
        """Multiplications and additions, for the result as for both gradients."""
        return 2 * self.batch * self.outputs * prod(self.out) * self.channels * self.kernel ** len(self.size)

    def arrays(self) -> tuple[Any, ...]:
        """Input, weight and cotangent."""
        rng = np.random.default_rng(0)
        weight = (self.outputs, self.channels, *(self.kernel,) * len(self.size))
        shapes = ((self.batch, self.channels, *self.size), weight, (self.batch, self.outputs, *self.out))
        return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


SHAPES = {
    "28x28, 1 to 16, batch 64": Shape(64, 1, 16, (28, 28), 3),
    "14x14, 16 to 32, batch 64": Shape(64, 16, 32, (14, 14), 3),
    "8x8, 1 to 8, batch 32": Shape(32, 1, 8, (8, 8), 3),
    "8x8, 8 to 16, batch 32": Shape(32, 8, 16, (8, 8), 3),
    "4x4, 8 to 16, batch 32": Shape(32, 8, 16, (4, 4), 3),
    "16x16, 64 to 64, batch 32": Shape(32, 64, 64, (16, 16), 3),
    "32x32, 32 to 64, stride 2, batch 8": Shape(8, 32, 64, (32, 32), 3, stride=2),
    "14x14, 64 to 128, kernel 1, batch 16": Shape(16, 64, 128, (14, 14), 1),
    "256, 32 to 64, kernel 5, batch 16": Shape(16, 32, 64, (256,), 5),
}


def dgrr(shape: Shape, threads: int) -> Calls:
    from dgrr.tape import AnyTensor, set_threads
    from dgrr.tape.var.op_table import OPS

    set_threads(threads)
    x, weight, g = map(AnyTensor, shape.arrays())
    attrs = {"stride": shape.stride, "padding": shape.kernel // 2, "dilation": 1, "groups": 1}
    size, kernel = {"size": shape.size}, {"kernel": weight.shape[2:]}
    return {
        "forward": lambda: OPS["conv"].compute((x, weight, None), attrs),
        "by input": lambda: OPS["conv_input_grad"].compute((g, weight), size | attrs),
        "by weight": lambda: OPS["conv_weight_grad"].compute((x, g), kernel | attrs),
    }


def pytorch(shape: Shape, threads: int) -> Calls:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    rank, padding = len(shape.size), shape.kernel // 2
    x, weight, g = map(torch.from_numpy, shape.arrays())
    each = ([shape.stride] * rank, [padding] * rank, [1] * rank, False, [0] * rank, 1)

    def backward(*wanted: bool) -> object:
        return torch.ops.aten.convolution_backward(g, x, weight, None, *each, list(wanted))

    return {
        "forward": lambda: torch.ops.aten.convolution(x, weight, None, *each),
        "by input": lambda: backward(True, False, False),
        "by weight": lambda: backward(False, True, False),
    }


ENGINES = {"PyTorch": pytorch, "dgrr": dgrr}


def fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest call."""
    call()
    times: list[float] = []
    while sum(times) < SECONDS or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(engine: str, threads: int) -> Times:
    """Seconds of every shape and call."""
    calls = {name: ENGINES[engine](shape, threads) for name, shape in SHAPES.items()}
    return {f"{name}, {what}": fastest(call) for name, made in calls.items() for what, call in made.items()}


def one_round(engine: str, threads: int) -> Times:
    """`measure` in a fresh process."""
    command = [sys.executable, __file__, "--engine", engine, "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    made: Times = json.loads(done.stdout)
    return made


def summary(rounds: list[dict[str, Times]]) -> dict[str, dict[str, float]]:
    """The figures of every shape and call."""
    rows: dict[str, dict[str, float]] = {}
    for name in rounds[0]["dgrr"]:
        low = {engine: min(r[engine][name] for r in rounds) for engine in ENGINES}
        flops = SHAPES[name.rpartition(", ")[0]].flops
        figures = {f"{engine} [us]": seconds * 1e6 for engine, seconds in low.items()}
        rates = {f"{engine} [GF/s]": flops / seconds / 1e9 for engine, seconds in low.items()}
        rows[name] = {**figures, **rates, "PyTorch / dgrr": low["PyTorch"] / low["dgrr"]}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=list(ENGINES), help="measure one engine in this process, print JSON")
    parser.add_argument("--threads", type=int, default=2, help="of each engine")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(measure(options.engine, options.threads)))
        return
    rows = summary([{e: one_round(e, options.threads) for e in ENGINES} for _ in range(ROUNDS)])
    columns = list(next(iter(rows.values())))
    table = Table("convolution", *columns, title=f"threads: {options.threads}")
    for name, row in rows.items():
        table.add_row(name, *(f"{row[c]:.2f}" if "/ dgrr" in c else f"{row[c]:.0f}" for c in columns))
    Console(width=150).print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
