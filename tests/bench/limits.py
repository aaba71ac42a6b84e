"""dgrr's steps beside what this machine can do: ``python tests/bench/limits.py`` (peers: ``pip install '.[bench]'``).

The limit of a kernel call is the longer of two times: of its arithmetic at the rate of fused multiply-adds, and of the
bytes that it touches at the rate of adding arrays of that size; both rates are measured first (`engines.ceiling`). The
limit of a step is the sum of those of its calls, one after the other. "of it" is the limit over the median round of the
whole step: 1 would be a step of which nothing is lost. Beside it stand the fastest peer, and the memory of dgrr, of
that peer, and of the peer that needs least, as `steps.py` has it.

AVX2 alone, for all engines: ``NUMBA_CPU_NAME=x86-64-v3 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2
MKL_ENABLE_INSTRUCTIONS=AVX2 XLA_FLAGS=--xla_cpu_max_isa=AVX2``, before the command.
"""

import argparse
import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import alone
import steps
from engines.ceiling import Ceiling
from engines.larger import NETWORKS
from rounds import Figures, measure

from dgrr.runtime.captured.profile import KernelCall

GOALS = ((1000.0, 0.80), (50.0, 0.65))
"""Steps of at least so many microseconds should reach that share of the limit."""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--engines", nargs="+", choices=steps.ENGINES, default=list(steps.ENGINES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one round")
    parser.add_argument("--kernels", action="store_true", help="each step kernel by kernel, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    return parser.parse_args()


def row(name: str, threads: int, args: argparse.Namespace, ceiling: Ceiling, empty: dict[str, float]) -> dict[str, Any]:
    """The figures of one step."""
    calls = alone.profile(name, threads)
    engines = steps.chosen(args.engines, NETWORKS[name])
    figures, absent = measure(engines, name, threads, args.rounds, args.seconds)
    ours, peers = figures.pop("dgrr"), figures
    limit = 1e6 * sum(least(ceiling, call) for call in calls)
    if args.kernels:
        steps.show_rows(f"{name}, threads: {threads}, kernel by kernel", kernels(ceiling, calls))
    return {
        "step": name,
        "limit us": limit,
        "dgrr us": ours.median,
        "fastest": ours.fastest,
        "of it": limit / ours.median,
        "goal": goal(ours.median),
        **beside(ours, peers),
        "MiB": ours.peak - empty["dgrr"],
        **memory(peers, empty),
        **({"absent": ", ".join(absent)} if absent else {}),
    }


def least(ceiling: Ceiling, call: KernelCall) -> float:
    """The seconds that a call takes at least."""
    return ceiling.least(call.flops, call.nbytes)


def goal(microseconds: float) -> float | str:
    """What share of the limit a step of this length should reach."""
    return next((share for length, share in GOALS if microseconds >= length), "")


def beside(ours: Figures, peers: dict[str, Figures]) -> dict[str, Any]:
    """The fastest peer by its median."""
    if not peers:
        return {}
    best = min(peers, key=lambda engine: peers[engine].median)
    return {"best peer": best, "peer us": peers[best].median, "over dgrr": peers[best].median / ours.median}


def memory(peers: dict[str, Figures], empty: dict[str, float]) -> dict[str, float]:
    """The memory of the fastest peer and of the smallest."""
    if not peers:
        return {}
    held = {engine: f.peak - empty[engine] for engine, f in peers.items()}
    return {"peer's MiB": held[min(peers, key=lambda engine: peers[engine].median)], "least MiB": min(held.values())}


def kernels(ceiling: Ceiling, calls: list[KernelCall]) -> list[dict[str, Any]]:
    """A row for each kernel, the one that loses most first."""
    grouped = defaultdict[str, list[KernelCall]](list)
    for call in calls:
        grouped[call.kernel].append(call)
    rows = [
        {
            "kernel": kernel,
            "calls": len(own),
            "us": 1e6 * (seconds := sum(call.seconds for call in own)),
            "lost us": 1e6 * (seconds - (limit := sum(least(ceiling, call) for call in own))),
            "of the limit": limit / seconds,
            "shared": sum(call.parts != 1 for call in own),
        }
        for kernel, own in grouped.items()
    ]
    return sorted(rows, key=lambda row: -row["lost us"])


def show(threads: int, ceiling: Ceiling, rows: list[dict[str, Any]]) -> None:
    """Print the table of a number of threads."""
    flops, most, least = (rate / 1e9 for rate in (ceiling.flops, max(ceiling.bandwidths), min(ceiling.bandwidths)))
    steps.show_rows(f"threads: {threads}; {flops:.0f} GFLOP/s, {most:.0f} to {least:.0f} GB/s", rows)


def main() -> None:
    args = arguments()
    results: dict[str, Any] = {"machine": steps.machine(max(args.threads))}
    for threads in args.threads:
        ceiling = alone.ceiling(threads)
        empty = steps.held_for_nothing(args.engines, threads)
        rows = [row(name, threads, args, ceiling, empty) for name in args.models]
        show(threads, ceiling, rows)
        results[f"threads: {threads}"] = {"ceiling": asdict(ceiling), "steps": rows}
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
