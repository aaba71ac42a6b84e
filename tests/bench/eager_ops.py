"""What an eager op on small tensors costs beside PyTorch eager: ``python tests/bench/eager_ops.py``.

Each engine runs in a process of its own with one thread; rounds alternate; the table shows medians in
microseconds and PyTorch's divided by ours. Without PyTorch only our column is printed.
"""

import argparse
import json
import subprocess
import sys
import timeit
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROUNDS, CALLS = 5, 4000


def dgrr_calls() -> dict[str, Callable[[], Any]]:
    from dgrr.tape import Tape, ops, set_threads

    set_threads(1)
    tape: Tape[Any] = Tape()
    a, b = (tape.param(np.full((8, 8), v, np.float32)) for v in (0.5, 2.0))
    x, w, c = tape.const(np.ones((64, 8), np.float32)), a, tape.param(np.ones(8, np.float32))
    labels = tape.const(np.zeros(64, np.int64))

    def backward() -> None:
        own: Tape[Any] = Tape()
        p = own.param(np.ones((8, 8), np.float32))
        own.backward_scalar(ops.reduce_sum(ops.relu(ops.matmul(p, p))))

    return {
        "add": lambda: ops.add(a, b),
        "mul": lambda: a * b,
        "relu": lambda: ops.relu(a),
        "exp": lambda: ops.exp(a),
        "matmul 8x8": lambda: a @ b,
        "linear 64x8x8": lambda: ops.linear(x, w, c),
        "softmax": lambda: ops.softmax(a),
        "sum": lambda: a.sum(),
        "cross_entropy 64x8": lambda: ops.cross_entropy(x, labels),
        "matmul, relu, sum, backward": backward,
    }


def torch_calls() -> dict[str, Callable[[], Any]]:
    import torch
    import torch.nn.functional as f

    torch.set_num_threads(1)
    a, b = (torch.full((8, 8), v, requires_grad=True) for v in (0.5, 2.0))
    x, w, c = torch.ones(64, 8), a, torch.ones(8, requires_grad=True)
    labels = torch.zeros(64, dtype=torch.int64)

    def backward() -> None:
        p = torch.ones((8, 8), requires_grad=True)
        torch.relu(p @ p).sum().backward()

    return {
        "add": lambda: torch.add(a, b),
        "mul": lambda: a * b,
        "relu": lambda: torch.relu(a),
        "exp": lambda: torch.exp(a),
        "matmul 8x8": lambda: a @ b,
        "linear 64x8x8": lambda: f.linear(x, w, c),
        "softmax": lambda: torch.softmax(a, -1),
        "sum": lambda: a.sum(),
        "cross_entropy 64x8": lambda: f.cross_entropy(x, labels),
        "matmul, relu, sum, backward": backward,
    }


ENGINES = {"dgrr": dgrr_calls, "torch": torch_calls}


def measure(engine: str) -> dict[str, float]:
    """Microseconds a call."""
    made = {}
    for name, call in ENGINES[engine]().items():
        call()
        made[name] = median(timeit.repeat(call, number=CALLS // 10, repeat=10)) / (CALLS // 10) * 1e6
    return made


def one_round(engine: str) -> dict[str, float]:
    """`measure` in a fresh process."""
    command = [sys.executable, __file__, "--engine", engine]
    made: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=list(ENGINES), help="measure one engine in this process, print JSON")
    engine = parser.parse_args().engine
    if engine:
        print(json.dumps(measure(engine)))
        return
    engines = [e for e in ENGINES if find_spec(e) or e == "dgrr"]
    rounds = [{e: one_round(e) for e in engines} for _ in range(ROUNDS)]
    table = Table("op", *(f"{e} [us]" for e in engines), "torch / dgrr")
    for name in rounds[0]["dgrr"]:
        times = {e: median(r[e][name] for r in rounds) for e in engines}
        ratio = f"{times['torch'] / times['dgrr']:.2f}" if "torch" in times else "-"
        table.add_row(name, *(f"{t:.2f}" for t in times.values()), ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
