"""What an element costs in each kernel beside numpy and PyTorch: ``python tests/bench/kernels.py``.

Every engine runs in a process of its own on one thread, rounds alternate, and the table shows the fastest of all
repetitions in nanoseconds per element. Our kernels are called from compiled code, as a captured step calls them,
the others from Python, so small sizes show what they cost there and not their loops. Without PyTorch its column
is left out.
"""

# numba's functions carry no types, nor does PyTorch if it is absent.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,attr-defined,import-not-found"
# pyright: basic, reportCallIssue=false, reportMissingImports=false
import argparse
import json
import subprocess
import sys
import timeit
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from kernel_rows import CLASSES, ROWS, WIDTH, Row
from rich.console import Console
from rich.table import Table

SIZES = (64, 4096, 1 << 18)
DTYPES = ("float32", "float64")
ROUNDS, SECONDS = 3, 0.002
WIDE = 160
"""Characters of a line of the table."""

Call = Callable[[], Any]
Names = dict[str, Any]


class Data:
    """Arrays of n elements for every kind of kernel."""

    def __init__(self, n: int, dtype: str) -> None:
        rng = np.random.default_rng(0)
        self.n, self.dtype = n, np.dtype(dtype)
        self.a, self.b, self.c, self.d = (rng.standard_normal(n).astype(dtype) for _ in range(4))
        self.positive = abs(self.a) + self.dtype.type(0.1)
        self.mask = self.a > 0
        self.rows = self.a[: n // CLASSES * CLASSES].reshape(-1, CLASSES)
        self.wide = self.a.reshape(-1, min(n, WIDTH))
        self.square = self.a.reshape(int(n**0.5), -1)
        self.labels = rng.integers(0, CLASSES, len(self.rows))
        self.scalar, self.hyper = np.ones((), self.dtype), np.array([1e-3, 0.9, 0.999, 1e-8, 0.0])
        self.corrections, self.out = np.array([0.1, 0.001]), np.empty(n, self.dtype)
        self.flags = np.empty(n, np.bool_)
        self.other = "float32" if self.dtype == np.float64 else "float64"


def repeats(n: int) -> int:
    """How many calls our kernels are timed over."""
    return max(1, 8192 // n)


def dgrr_calls(data: Data) -> dict[str, Call]:
    """One repetition of every kernel is `repeats` calls by address."""
    from numba import njit

    from dgrr.tape.numerics.engine.intrinsics import addresses, invoke
    from dgrr.tape.numerics.engine.launch import Words

    @njit
    def repeat(times, kernel, words, arrays):
        for _ in range(times):
            invoke(kernel, addresses(arrays), words, 0, 1)

    times, names = repeats(data.n), dgrr_names(data)

    def case(row: Row) -> Call:
        kernel, *arrays = eval(row.dgrr, names)
        address, words, ids = kernel.address(data.dtype), Words(*eval(f"[{row.sizes}]", names)), tuple(map(id, arrays))
        return lambda: (repeat(times, address, words.address, ids), arrays, words)

    return {row.name: case(row) for row in ROWS}


def dgrr_names(data: Data) -> Names:
    """What the kernels and their arrays are called."""
    from dgrr.runtime.optim import kernels as optim
    from dgrr.runtime.optim.methods import adam, sgd
    from dgrr.tape.numerics.basic import arithmetic, copy, finite
    from dgrr.tape.numerics.simd import sums as reduce
    from dgrr.tape.ops.elementwise.kernels import basic as elementwise
    from dgrr.tape.ops.reduce.kernels import softmax

    def layout(x: Any) -> list[int]:
        return copy.copy_words(x.shape, x.strides, x.itemsize).values.tolist()

    modules = {
        "arithmetic": arithmetic,
        "copy": copy,
        "elementwise": elementwise,
        "finite": finite,
        "reduce": reduce,
        "softmax": softmax,
    }
    return vars(data) | modules | {
        "optim": optim, "adam": adam.adam.law.kernel, "sgd": sgd.sgd.law.kernel,
        "layout": layout, "to_other": getattr(arithmetic, f"to_{data.other}"),
        "converted": np.empty(data.n, data.other), "one": np.empty(1, data.dtype),
        "losses": np.empty(len(data.rows), data.dtype), "norms": data.corrections.copy(),
        "m": data.c.copy(), "v": data.positive.copy(), "p": data.a.copy(), "g": data.d.copy(),
    }  # fmt: skip


def numpy_calls(data: Data) -> dict[str, Call]:
    """The functions of numpy."""
    m, v, p, d = data.c.copy(), data.positive.copy(), data.a.copy(), data.d
    at = np.arange(len(data.rows)), data.labels

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        e /= e.sum(-1, keepdims=True)
        return e

    def log_softmax(x: Any) -> Any:
        y = x - x.max(-1, keepdims=True)
        y -= np.log(np.exp(y).sum(-1, keepdims=True))
        return y

    def gradient(x: Any) -> Any:
        y = softmax(x)
        y[at] -= 1
        return y

    def adam() -> None:
        nonlocal m, v, p
        m += 0.1 * (d - m)
        v *= 0.999
        v += 0.001 * d * d
        p -= 1e-3 * m / (np.sqrt(v) / 0.03 + 1e-8)

    def sgd() -> None:
        nonlocal p
        p -= 1e-3 * d

    functions = (softmax, log_softmax, gradient, adam, sgd)
    return calls("numpy", vars(data) | {"np": np, "at": at} | {f.__name__: f for f in functions})


def torch_calls(data: Data) -> dict[str, Call]:
    """The functions of PyTorch, on the same memory."""
    import torch
    import torch.nn.functional as f

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    shared = {name: torch.from_numpy(x) for name, x in vars(data).items() if isinstance(x, np.ndarray)}
    a, d, rows, labels = (shared[name] for name in ("a", "d", "rows", "labels"))
    p, m, v, step = a.clone(), torch.zeros_like(a), torch.zeros_like(a), torch.ones(())

    def adam() -> None:
        torch._fused_adam_(
            [p], [d], [m], [v], [], [step],
            lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def loss_and_gradient() -> None:
        x = rows.detach().requires_grad_()
        with torch.enable_grad():
            f.cross_entropy(x, labels).backward()

    own = {"adam": adam, "loss_and_gradient": loss_and_gradient, "p": p, "other": getattr(torch, data.other)}
    return calls("torch", shared | {"torch": torch, "f": f} | own)


def calls(engine: str, names: Names) -> dict[str, Call]:
    """The functions of an engine, with what their names mean."""
    names = {"partial": partial} | names  # in this order: CPython looks names up slowly in a copy of an instance's dict
    return {row.name: eval(made, names) for row in ROWS if (made := getattr(row, engine))}


ENGINES = {"dgrr": dgrr_calls, "numpy": numpy_calls, "torch": torch_calls}


def measure(engine: str, chosen: str) -> dict[str, float]:
    """Nanoseconds per element: the fastest of as many repetitions as fit the time."""
    made = {}
    for dtype in DTYPES:
        for n in SIZES:
            data = Data(n, dtype)
            for name, call in ENGINES[engine](data).items():
                if chosen in name:
                    elements = n * (repeats(n) if engine == "dgrr" else 1)
                    made[f"{name}|{dtype}|{n}"] = fastest(call) / elements * 1e9
    return made


def fastest(call: Call) -> float:
    """The shortest time of one call in seconds."""
    call()
    once = max(min(timeit.repeat(call, number=1, repeat=3)), 1e-7)
    number = max(1, int(SECONDS / 20 / once))
    return min(timeit.repeat(call, number=number, repeat=max(3, int(SECONDS / once / number)))) / number


def one_round(engine: str, chosen: str) -> dict[str, float]:
    """`measure` in a fresh process."""
    command = [sys.executable, __file__, "--engine", engine, "--kernel", chosen]
    made: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=list(ENGINES), help="measure one engine in this process, print JSON")
    parser.add_argument("--kernel", default="", help="measure only kernels whose name contains this")
    arguments = parser.parse_args()
    if arguments.engine:
        print(json.dumps(measure(arguments.engine, arguments.kernel)))
        return
    engines = [e for e in ENGINES if find_spec(e) or e == "dgrr"]
    rounds = [{e: one_round(e, arguments.kernel) for e in engines} for _ in range(ROUNDS)]
    best = {e: {case: min(r[e][case] for r in rounds) for case in rounds[0][e]} for e in engines}
    for dtype in DTYPES:
        Console(width=WIDE).print(table(dtype, engines, best))


def table(dtype: str, engines: list[str], best: dict[str, dict[str, float]]) -> Table:
    """One row per kernel, one column per size and engine."""
    made = Table(f"{dtype} [ns / element]", *(f"{e} {n}" for n in SIZES for e in engines))
    for name in dict.fromkeys(case.split("|")[0] for case in best["dgrr"]):
        cases = [f"{name}|{dtype}|{n}" for n in SIZES]
        made.add_row(name, *(f"{best[e][c]:.3f}" if c in best[e] else "-" for c in cases for e in engines))
    return made


if __name__ == "__main__":
    main()
