"""Norms beside PyTorch's: ``python tests/bench/norm.py [--threads N]``, with torch installed.

Both engines take turns in one process with as many threads each. The figures are the shortest times in microseconds
of the eager forward pass, and of it with the gradients by the array, weight and bias; then PyTorch's time over ours.
"""

import argparse
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as f
from rich.console import Console
from rich.table import Table

from dgrr.tape import AnyTensor, Tape, ops, set_threads

ROUNDS, SECONDS = 7, 0.1

Norm = Callable[[Any, Any, Any], Any]

CASES: dict[str, tuple[tuple[int, ...], int, Norm, Norm]] = {
    "layer_norm": ((1024, 64), 64, ops.layer_norm, lambda x, w, b: f.layer_norm(x, (64,), w, b)),
    "layer_norm, wide": ((4096, 768), 768, ops.layer_norm, lambda x, w, b: f.layer_norm(x, (768,), w, b)),
    "batch_norm": (
        (64, 16, 28, 28), 16, ops.batch_norm, lambda x, w, b: f.batch_norm(x, None, None, w, b, training=True)
    ),
    "batch_norm, flat": (
        (256, 128), 128, ops.batch_norm, lambda x, w, b: f.batch_norm(x, None, None, w, b, training=True)
    ),
    "group_norm": (
        (64, 16, 28, 28), 16, lambda x, w, b: ops.group_norm(x, 4, w, b), lambda x, w, b: f.group_norm(x, 4, w, b)
    ),
}  # fmt: skip


def calls(shape: tuple[int, ...], channels: int, ours: Norm, theirs: Norm) -> list[Callable[[], Any]]:
    """Forward by us and by PyTorch, then forward and backward."""
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal(s).astype(np.float32) for s in (shape, channels, channels, shape)]
    tensors = [AnyTensor(a) for a in drawn]
    *leaves, seed = (torch.tensor(a, requires_grad=i < 3) for i, a in enumerate(drawn))

    def forward() -> Any:
        tape: Tape[Any] = Tape(locations=False)
        return ours(*(tape.leaf(t) for t in tensors[:3]))

    def gradients() -> Any:
        out = forward()
        return out.tape.backward_dense(out, tensors[3])

    return [
        forward,
        lambda: theirs(*leaves),
        gradients,
        lambda: torch.autograd.grad(theirs(*leaves), leaves, seed),
    ]


def fastest(made: list[Callable[[], Any]]) -> list[float]:
    """The shortest time of each call in microseconds, the calls taking turns."""
    numbers = [max(1, int(SECONDS / min(timeit.repeat(call, number=1, repeat=5)))) for call in made]
    rounds = [
        [min(timeit.repeat(c, number=1, repeat=n)) for c, n in zip(made, numbers, strict=True)] for _ in range(ROUNDS)
    ]
    return [min(times) * 1e6 for times in zip(*rounds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    threads = parser.parse_args().threads
    set_threads(threads)
    torch.set_num_threads(threads)
    table = Table(f"float32, us, {threads} threads", "forward", "torch", "ratio", "with gradients", "torch", "ratio")
    for name, case in CASES.items():
        times = fastest(calls(*case))
        cells: list[str] = []
        for ours, theirs in (times[:2], times[2:]):
            cells += [f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.2f}"]
        table.add_row(f"{name} {case[0]}", *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
