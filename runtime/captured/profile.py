"""Where the time of a captured step goes, kernel by kernel."""

from dataclasses import dataclass
from functools import cache
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from ...tape.numerics.engine import machine
from ...tape.numerics.engine.threads import THREADS
from ...tape.ops.linear.kernels.product import Product
from ...tape.record.op import OPS
from ...tape.values.tables import PlainTable, Tabled
from ...tape.values.tensor import AnyTensor
from ..lower.bind import Bound
from ..lower.program import LoweredOp

REPEATS = 21
"""Times that every call is measured; the median counts."""


@dataclass(frozen=True)
class KernelCall:
    """One kernel call of a step: its node, median time in seconds, bytes touched, arithmetic operations."""

    kernel: str
    node: int
    seconds: float
    nbytes: int
    flops: int
    parts: int


@dataclass(frozen=True, repr=False)
class Profile(Tabled):
    """The calls of one step, in order."""

    calls: tuple[KernelCall, ...]
    peak: float
    """Arithmetic operations per second of a product in cache on this machine."""
    bandwidth: float
    """Bytes per second of an addition in cache on this machine."""

    @property
    def seconds(self) -> float:
        """The sum of all calls."""
        return sum(call.seconds for call in self.calls)

    def table(self) -> PlainTable:
        """One row per kernel, the slowest first; the roofline is what peak and bandwidth allow."""
        kernels: dict[str, list[KernelCall]] = {}
        for call in self.calls:
            kernels.setdefault(call.kernel, []).append(call)
        rows = [self._row(kernel, calls) for kernel, calls in kernels.items()]
        columns = ("kernel", "calls", "us", "share", "bytes", "flops", "roofline")
        title = f"profile of one step: {self.seconds * 1e6:.1f} us in {len(self.calls)} calls"
        return PlainTable(title, columns, sorted(rows, key=lambda row: -float(row["us"])))

    def _row(self, kernel: str, calls: list[KernelCall]) -> dict[str, Any]:
        seconds = sum(call.seconds for call in calls)
        least = sum(max(call.flops / self.peak, call.nbytes / self.bandwidth) for call in calls)
        return {
            "kernel": kernel,
            "calls": len(calls),
            "us": f"{seconds * 1e6:.2f}",
            "share": f"{seconds / self.seconds:.0%}",
            "bytes": sum(call.nbytes for call in calls),
            "flops": sum(call.flops for call in calls),
            "roofline": f"{least / seconds:.0%}",
        }


def profile(bound: Bound) -> Profile:
    """Run a bound plan `REPEATS` times, each call timed by itself. What the calls change stays changed."""
    program, plan = bound.plan.program, bound.plan
    times: list[list[float]] = [[] for _ in program.ops]
    with THREADS.lent() as control:
        for _ in range(REPEATS):
            empty = _timed(bound, 0, 0, control)
            for i, found in enumerate(times):
                found.append(max(_timed(bound, i, 1, control) - empty, 1e-9))
    calls = [
        KernelCall(op.kernel.name, op.source, median(found), _nbytes(bound, op), _flops(op), parts)
        for op, found, parts in zip(program.ops, times, plan.parts, strict=True)
    ]
    return Profile(tuple(calls), *_machine())


def _timed(bound: Bound, row: int, count: int, control: int) -> float:
    address = bound.rows_address + 8 * machine.ROW * row
    began = perf_counter()
    machine.run(address, count, control, bound.fault)
    return perf_counter() - began


def _flops(op: LoweredOp) -> int:
    return op.words.flops if isinstance(op.words, Product) else op.work


def _nbytes(bound: Bound, op: LoweredOp) -> int:
    layouts = [bound.plan.program.layout(v) for v in op.table]
    return sum(layout.touched for layout in layouts)


@cache
def _machine() -> tuple[float, float]:
    """Operations and bytes per second that the engine reaches in cache on this machine with its threads."""
    square, row = (AnyTensor(np.ones(shape, np.float32)) for shape in ((256, 256), (1 << 15,)))
    product = min(_seconds(lambda: OPS["matmul"](square, square)) for _ in range(20))
    addition = min(_seconds(lambda: OPS["add"](row, row)) for _ in range(200))
    return 2 * 256**3 / product, 3 * row.array.nbytes / addition


def _seconds(run: Any) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began
