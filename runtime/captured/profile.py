"""Where the time of a captured step goes, kernel by kernel."""

from dataclasses import dataclass
from typing import Any

from ...tape.values.tables import PlainTable, Tabled
from ..lower.bind import BoundPlan
from ..lower.program import LoweredOp, Program

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
    """Arithmetic operations per second of a product, in cache on a CPU."""
    bandwidth: float
    """Bytes per second of an addition in cache on a CPU, of a copy on a GPU."""

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


def profile(bound: BoundPlan) -> Profile:
    """Run a bound plan `REPEATS` times, each call timed by itself. What the calls change stays changed."""
    program = bound.plan.program
    calls = [
        KernelCall(op.kernel.name, op.source, seconds, _nbytes(program, op), op.flops, parts)
        for op, seconds, parts in zip(program.ops, bound.seconds(REPEATS), bound.plan.parts, strict=True)
    ]
    return Profile(tuple(calls), *bound.limits())


def _nbytes(program: Program, op: LoweredOp) -> int:
    return sum(program.layout(v).touched for v in op.table)
