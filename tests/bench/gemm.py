"""Matrix products beside numpy's, which are OpenBLAS' on one thread: ``python tests/bench/gemm.py [--json FILE]``.

Each engine runs in a process of its own; rounds alternate. A time is a call from Python into an existing
output: of dgrr the kernel call alone, without an op around it. The table shows the median and the minimum in
microseconds, OpenBLAS' minimum divided by ours, and what two threads gain.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

Array = npt.NDArray[Any]
Times = dict[str, list[float]]

ROUNDS, SECONDS = 3, 0.08
"""Rounds of each engine, and how long a round measures one shape."""

SHAPES = {
    "64x8x8": "",
    "64x64x64": "",
    "100x100x100": "",
    "64x128x128": "",
    "64x128x128, x @ w.T": "b",
    "128x64x10, x @ w.T": "b",
    "10x64x128, g.T @ x": "a",
    "128x784x512": "",
    "128x784x512, x @ w.T": "b",
    "512x128x784, g.T @ x": "a",
    "512x512x512": "",
    "1024x1024x1024": "",
    "2048x256x2048": "",
}
"""m x k x n, and which operand is transposed."""

DTYPES = ("float32", "float64")


def operands(shape: str, dtype: str) -> tuple[Array, Array, Array]:
    """Two operands and an output."""
    m, k, n = (int(x) for x in shape.split(",")[0].split("x"))
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    a = a.T.copy().T if SHAPES[shape] == "a" else a
    b = b.T.copy().T if SHAPES[shape] == "b" else b
    return a, b, np.empty((m, n), a.dtype)


def openblas(a: Array, b: Array, out: Array, threads: int) -> Callable[[], object]:
    return lambda: np.matmul(a, b, out=out)


def dgrr(a: Array, b: Array, out: Array, threads: int) -> Callable[[], object]:
    from dgrr.tape import set_threads
    from dgrr.tape.numerics.engine.launch import parts_for, run
    from dgrr.tape.ops.linear.kernels.gemm import gemm
    from dgrr.tape.ops.linear.kernels.product import Product

    (m, n), k = out.shape, a.shape[1]
    product, strides = Product(1, m, n, k, out.itemsize), (a.strides, b.strides)
    set_threads(threads)
    work, address, words = 2 * m * n * k, gemm.address(out.dtype), product.words(strides)
    parts = parts_for(work)
    scratch = np.empty(product.scratch(strides, parts), np.uint8)
    arrays = (out, a, b, scratch) if scratch.size else (out, a, b)
    return lambda: run(address, words, arrays, parts)


ENGINES: dict[str, tuple[Callable[..., Callable[[], object]], int]] = {
    "OpenBLAS": (openblas, 1),
    "dgrr": (dgrr, 1),
    "dgrr, 2 threads": (dgrr, 2),
}


def seconds_a_call(call: Callable[[], object]) -> list[float]:
    """Times of a call, each the mean of as many calls as take about 20 microseconds."""
    call()
    start = time.perf_counter()
    call()
    inner = max(1, int(20e-6 / (time.perf_counter() - start)))
    times: list[float] = []
    while sum(times) * inner < SECONDS or len(times) < 3:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - start) / inner)
    return times


def measure(engine: str) -> Times:
    """Median and minimum in seconds of every shape and dtype."""
    make, threads = ENGINES[engine]
    made: Times = {}
    for dtype in DTYPES:
        for shape in SHAPES:
            times = seconds_a_call(make(*operands(shape, dtype), threads))
            made[f"{shape} {dtype}"] = [median(times), min(times)]
    return made


def one_round(engine: str) -> Times:
    """`measure` in a fresh process, its BLAS on one thread."""
    command = [sys.executable, __file__, "--engine", engine]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    made: Times = json.loads(done.stdout)
    return made


def summary(rounds: list[dict[str, Times]], name: str) -> dict[str, float]:
    """The figures of one shape and dtype."""
    low = {e: min(r[e][name][1] for r in rounds) for e in ENGINES}
    middle = {e: median(r[e][name][0] for r in rounds) for e in ENGINES}
    return {
        **{f"{e} median": middle[e] * 1e6 for e in ENGINES},
        **{f"{e} minimum": low[e] * 1e6 for e in ENGINES},
        "OpenBLAS / dgrr": low["OpenBLAS"] / low["dgrr"],
        "1 / 2 threads": low["dgrr"] / low["dgrr, 2 threads"],
    }


def cells(row: dict[str, float]) -> list[str]:
    """A row of the table."""
    times = [f"{row[f'{e} median']:.1f} {row[f'{e} minimum']:.1f}" for e in ENGINES]
    return [*times, f"{row['OpenBLAS / dgrr']:.2f}", f"{row['1 / 2 threads']:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=list(ENGINES), help="measure one engine in this process, print JSON")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(measure(options.engine)))
        return
    rounds = [{e: one_round(e) for e in ENGINES} for _ in range(ROUNDS)]
    rows = {name: summary(rounds, name) for name in rounds[0]["dgrr"]}
    table = Table("m x k x n", *ENGINES, "OpenBLAS / dgrr", "1 / 2 threads", title="median and minimum [us]")
    for name, row in rows.items():
        table.add_row(name, *cells(row))
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
