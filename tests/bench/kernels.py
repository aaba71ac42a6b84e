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
from rich.console import Console
from rich.table import Table

SIZES = (64, 4096, 1 << 18)
DTYPES = ("float32", "float64")
ROUNDS, SECONDS = 3, 0.002
CLASSES, WIDTH = 10, 128
WIDE = 160
"""Characters of a line of the table."""

Call = Callable[[], Any]


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


def dgrr_calls(data: Data) -> dict[str, Call]:
    """One repetition of every kernel is `repeats` calls by address."""
    from numba import njit

    from dgrr.runtime.optim import kernels as optim
    from dgrr.tape.numerics import copy, elementwise, finite, reduce, softmax
    from dgrr.tape.numerics.intrinsics import addresses, invoke
    from dgrr.tape.numerics.kernel import Kernel
    from dgrr.tape.numerics.launch import Words

    @njit
    def repeat(times, kernel, words, arrays):
        for _ in range(times):
            invoke(kernel, addresses(arrays), words, 0, 1)

    n, dtype = data.n, data.dtype
    times = repeats(n)

    def case(kernel: Kernel, arrays: list[Any], *ints: float, words: Words | None = None) -> Call:
        address, made = kernel.address(dtype), words or Words(*ints)
        ids = tuple(map(id, arrays))
        return lambda: (repeat(times, address, made.address, ids), arrays, made)

    out, a, b, data_bytes = data.out, data.a, data.b, np.empty(data.n, np.bool_)
    other = np.empty(n, "float32" if dtype == np.float64 else "float64")
    to_other = elementwise.to_float32 if dtype == np.float64 else elementwise.to_float64
    small, wide, one = data.rows.shape, data.wide.shape, np.empty(1, dtype)
    m, v, p, g = (x.copy() for x in (data.c, data.positive, data.a, data.d))
    losses, transposed = np.empty(len(data.rows), dtype), data.square.T
    return {
        **{k: case(getattr(elementwise, k), [out, a, b], n) for k in ("add", "mul", "div", "where_positive")},
        **{k: case(getattr(elementwise, k), [out, a], n) for k in ("relu", "neg", "exp", "tanh", "sigmoid")},
        **{k: case(getattr(elementwise, k), [out, data.positive], n) for k in ("sqrt", "log")},
        "scale": case(elementwise.scale, [out, a], n, 0.3),
        "power": case(elementwise.power, [out, a], n, 3),
        "less": case(elementwise.less, [data_bytes, a, b], n),
        "where": case(elementwise.where, [out, data.mask, a, b], n),
        "to_other_float": case(to_other, [other, a], n),
        "sum_all": case(reduce.sum_rows, [one, a], 1, n),
        f"sum_rows, {CLASSES}": case(reduce.sum_rows, [out, a], *small),
        f"sum_rows, {WIDTH}": case(reduce.sum_rows, [out, a], *wide),
        f"sum_columns, {CLASSES}": case(reduce.sum_columns, [out, a], 1, *small),
        f"sum_columns, {WIDTH}": case(reduce.sum_columns, [out, a], 1, *wide),
        "mse": case(reduce.mean_squared_difference, [one, a, b], n),
        f"softmax, {CLASSES}": case(softmax.softmax, [out, a], *small),
        f"softmax, {WIDTH}": case(softmax.softmax, [out, a], *wide),
        f"log_softmax, {CLASSES}": case(softmax.log_softmax, [out, a], *small),
        "cross_entropy": case(softmax.cross_entropy_rows, [losses, a, data.labels], *small),
        "cross_entropy_grad": case(softmax.cross_entropy_grad, [out, a, data.labels, data.scalar], *small),
        "cross_entropy and grad": case(
            softmax.cross_entropy_rows_with_grad, [losses, out, a, data.labels, data.scalar], *small
        ),
        "adam": case(optim.adam_step, [p, m, v, g, data.corrections, data.hyper], n, 0),
        "sgd": case(optim.sgd_step, [p, g, data.hyper], n),
        "norm": case(optim.tensor_norm, [data.corrections.copy(), a], n),
        "finite": case(finite.finite, [a], n),
        "copy": case(copy.copy, [out, a], words=copy.copy_words(a.shape, a.strides, a.itemsize)),
        "copy transposed": case(
            copy.copy, [out, transposed], words=copy.copy_words(transposed.shape, transposed.strides, a.itemsize)
        ),
    }


def repeats(n: int) -> int:
    """How many calls our kernels are timed over."""
    return max(1, 8192 // n)


def numpy_calls(data: Data) -> dict[str, Call]:
    a, b, out, rows, wide = data.a, data.b, data.out, data.rows, data.wide
    other = "float32" if data.dtype == np.float64 else "float64"
    flags, m, v, p = np.empty(data.n, np.bool_), data.c.copy(), data.positive.copy(), data.a.copy()
    at = np.arange(len(rows)), data.labels

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
        m += 0.1 * (data.d - m)
        v *= 0.999
        v += 0.001 * data.d * data.d
        p -= 1e-3 * m / (np.sqrt(v) / 0.03 + 1e-8)

    def sgd() -> None:
        nonlocal p
        p -= 1e-3 * data.d

    return {
        **{k: partial(f, a, b, out) for k, f in (("add", np.add), ("mul", np.multiply), ("div", np.divide))},
        **{k: partial(f, a, out) for k, f in (("neg", np.negative), ("exp", np.exp), ("tanh", np.tanh))},
        **{k: partial(f, data.positive, out) for k, f in (("sqrt", np.sqrt), ("log", np.log))},
        "where_positive": lambda: np.where(b > 0, a, 0),
        "relu": lambda: np.maximum(a, 0, out=out),
        "scale": lambda: np.multiply(a, 0.3, out),
        "power": lambda: np.power(a, 3, out),
        "less": lambda: np.less(a, b, flags),
        "where": lambda: np.where(data.mask, a, b),
        "to_other_float": lambda: a.astype(other),
        "sum_all": lambda: a.sum(),
        f"sum_rows, {CLASSES}": lambda: rows.sum(1),
        f"sum_rows, {WIDTH}": lambda: wide.sum(1),
        f"sum_columns, {CLASSES}": lambda: rows.sum(0),
        f"sum_columns, {WIDTH}": lambda: wide.sum(0),
        "mse": lambda: np.square(a - b).mean(),
        f"softmax, {CLASSES}": lambda: softmax(rows),
        f"softmax, {WIDTH}": lambda: softmax(wide),
        f"log_softmax, {CLASSES}": lambda: log_softmax(rows),
        "cross_entropy": lambda: log_softmax(rows)[at],
        "cross_entropy_grad": lambda: gradient(rows),
        "adam": adam,
        "sgd": sgd,
        "norm": lambda: np.sqrt(np.square(a).sum()),
        "finite": lambda: np.isfinite(a).all(),
        "copy": lambda: np.copyto(out, a),
        "copy transposed": lambda: np.copyto(out.reshape(data.square.T.shape), data.square.T),
    }


def torch_calls(data: Data) -> dict[str, Call]:
    import torch
    import torch.nn.functional as f

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    a, b, d, out, mask, positive, labels, rows, wide, square = (
        torch.from_numpy(x)
        for x in (
            data.a, data.b, data.d, data.out, data.mask, data.positive, data.labels, data.rows, data.wide, data.square
        )
    )  # fmt: skip
    other = torch.float32 if data.dtype == np.float64 else torch.float64
    flags = torch.empty(data.n, dtype=torch.bool)
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

    return {
        **{k: partial(getattr(torch, k), a, b, out=out) for k in ("add", "mul", "div")},
        **{k: partial(getattr(torch, k), a, out=out) for k in ("neg", "exp", "tanh", "sigmoid")},
        **{k: partial(getattr(torch, k), positive, out=out) for k in ("sqrt", "log")},
        "where_positive": lambda: torch.ops.aten.threshold_backward(a, b, 0),
        "relu": lambda: torch.clamp_min(a, 0, out=out),
        "scale": lambda: torch.mul(a, 0.3, out=out),
        "power": lambda: torch.pow(a, 3, out=out),
        "less": lambda: torch.lt(a, b, out=flags),
        "where": lambda: torch.where(mask, a, b, out=out),
        "to_other_float": lambda: a.to(other),
        "sum_all": lambda: a.sum(),
        f"sum_rows, {CLASSES}": lambda: rows.sum(1),
        f"sum_rows, {WIDTH}": lambda: wide.sum(1),
        f"sum_columns, {CLASSES}": lambda: rows.sum(0),
        f"sum_columns, {WIDTH}": lambda: wide.sum(0),
        "mse": lambda: f.mse_loss(a, b),
        f"softmax, {CLASSES}": lambda: torch.softmax(rows, -1),
        f"softmax, {WIDTH}": lambda: torch.softmax(wide, -1),
        f"log_softmax, {CLASSES}": lambda: torch.log_softmax(rows, -1),
        "cross_entropy": lambda: f.cross_entropy(rows, labels),
        "cross_entropy and grad": loss_and_gradient,
        "adam": adam,
        "sgd": lambda: p.add_(d, alpha=-1e-3),
        "norm": lambda: torch.linalg.vector_norm(a),
        "finite": lambda: torch.isfinite(a).all(),
        "copy": lambda: out.copy_(a),
        "copy transposed": lambda: out.view(square.T.shape).copy_(square.T),
    }


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
