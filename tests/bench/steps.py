"""Whole training steps beside PyTorch and JAX: ``python tests/bench/steps.py`` (peers: ``pip install '.[bench]'``).

A step takes a numpy batch and gives back its loss as a number. Every engine has a process of its own and the same
number of threads; rounds alternate. PyTorch's Adam is the fused one but in "torch eager". The tables show the
microseconds of a step in the median round and in the fastest, the peers' times over dgrr's (above 1, dgrr is faster),
and the memory that an engine's process holds at most, beyond what it holds for `SMALLEST`. Before timing, the losses of
the first steps are compared: a check of this program, not of anyone's accuracy.
On a busy machine many short rounds find quiet moments.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import alone
from engines.larger import NETWORKS, Net
from engines.models import MODELS, Model
from rich.console import Console
from rich.table import Table
from rounds import Figures, measure

ENGINES = {
    "dgrr": "dgrr_engine:make",
    "torch eager": "torch_engine:make_eager",
    "torch eager, fused Adam": "torch_engine:make_fused",
    "torch eager, channels last": "torch_engine:make_channels_last",
    "torch.compile": "torch_engine:make_compiled",
    "torch.compile, autotuned": "torch_engine:make_autotuned",
    "torch.compile, channels last": "torch_engine:make_compiled_channels_last",
    "jax.jit": "jax_engine:make",
    "jax.jit, synchronous": "jax_engine:make_synchronous",
}
OF_JAX = ("jax.jit", "jax.jit, synchronous")
OF_IMAGES = ("torch eager, channels last", "torch.compile, channels last")
GRADIENTS = {
    "dgrr": {"parameters only": "dgrr_engine:make_leaves", "every value": "dgrr_engine:make_dense"},
    "torch": {"parameters only": "torch_engine:make_leaves", "every value": "torch_engine:make_retained"},
}
"""What gradients are taken: in PyTorch every value's by ``retain_grad()``."""
SMALLEST = "8-8-8"
PACKAGES = ("dgrr", "numpy", "numba", "llvmlite", "torch", "jax", "jaxlib")
console = Console(width=None if sys.stdout.isatty() else 170)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--threads", type=int, default=cores, help="of every engine; default: the process's cores")
    parser.add_argument("--models", nargs="+", choices=NETWORKS, default=list(MODELS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    parser.add_argument("--first-step", action="store_true", help="the time to the first step instead")
    parser.add_argument("--grads", action="store_true", help="the gradient of every value instead, beside PyTorch's")
    parser.add_argument("--chains", action="store_true", help="dgrr's time and memory per node of a graph instead")
    return parser.parse_args()


def speed(args: argparse.Namespace) -> dict[str, Any]:
    """Steps of every model in every engine."""
    results = dict[str, Any]()
    empty = held_for_nothing(args.engines, args.threads)
    for name in args.models:
        figures, absent = measure(chosen(args.engines, NETWORKS[name]), name, args.threads, args.rounds, args.seconds)
        if "dgrr" in absent:
            raise SystemExit(f"dgrr did not run: {absent['dgrr']}")
        for engine, each in figures.items():
            each.peak -= empty[engine]
        reached = ratios(figures)
        show_speed(name, figures, absent, reached)
        results[name] = {"goal": NETWORKS[name].goal, "ratios": reached, "engines": plain(figures), "absent": absent}
    return results


def held_for_nothing(engines: Sequence[str], threads: int) -> dict[str, float]:
    """The MiB that each engine's process holds for a network of next to nothing."""
    figures, _ = measure({e: ENGINES[e] for e in engines}, SMALLEST, threads, rounds=1, seconds=0.05)
    return {engine: each.peak for engine, each in figures.items()}


def chosen(engines: Sequence[str], model: Model) -> dict[str, str]:
    """The makers of those engines that differ on a model and have it: how images lie matters to those that have any."""
    absent = (*(() if model.of_images else OF_IMAGES), *(OF_JAX if isinstance(model, Net) else ()))
    return {e: ENGINES[e] for e in engines if e not in absent}


def gradients(args: argparse.Namespace) -> list[dict[str, Any]]:
    """What the gradients of every value cost over those of the parameters alone."""
    return [
        {"model": name, "engine": engine, **tax(name, makers, args)}
        for name in args.models
        for engine, makers in GRADIENTS.items()
    ]


def tax(name: str, makers: Mapping[str, str], args: argparse.Namespace) -> dict[str, Any]:
    """Microseconds of both kinds of gradients and their ratio, or why there are none."""
    figures, absent = measure(makers, name, args.threads, args.rounds, args.seconds)
    if absent:
        return {"parameters only": f"absent: {next(iter(absent.values()))}"}
    times = {case: f.median for case, f in figures.items()}
    return {**times, "ratio": times["every value"] / times["parameters only"]}


def plain(figures: Mapping[str, Figures]) -> dict[str, Any]:
    """Figures for a file."""
    return {
        engine: {"median_us": f.median, "fastest_us": f.fastest, "peak_mib": f.peak, "losses": f.losses}
        for engine, f in figures.items()
    }


def ratios(figures: Mapping[str, Figures]) -> dict[str, float]:
    """The best peer's time over dgrr's, by median and by fastest round; empty unless both were measured."""
    ours, peers = figures.get("dgrr"), [f for engine, f in figures.items() if engine != "dgrr"]
    if ours is None or not peers:
        return {}
    return {
        "median": min(f.median for f in peers) / ours.median,
        "fastest": min(f.fastest for f in peers) / ours.fastest,
    }


def show_speed(
    name: str, figures: Mapping[str, Figures], absent: Mapping[str, str], reached: Mapping[str, float]
) -> None:
    """Print the table of one model."""
    model = NETWORKS[name]
    title = f"{name}, {model.what}, Adam"
    table = Table("engine", "step [us]", "fastest [us]", "over dgrr", "memory [MiB]", title=title)
    ours = figures["dgrr"].median if "dgrr" in figures else None
    for engine, f in figures.items():
        over = f"{f.median / ours:.2f}" if ours else ""
        table.add_row(engine, f"{f.median:.1f}", f"{f.fastest:.1f}", over, f"{f.peak:.0f}")
    for engine, reason in absent.items():
        table.add_row(engine, "absent", "", "", reason)
    if reached:
        verdict = "met" if reached["median"] >= model.goal else "not met"
        table.caption = "best peer over dgrr: {median:.2f} by median, {fastest:.2f} by fastest; ".format(**reached)
        table.caption += f"goal {model.goal:g}: {verdict}"
    console.print(table)


def show_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print records as a table; a column is a key of any."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*keys, title=title)
    for row in rows:
        table.add_row(*(written(row.get(key, "")) for key in keys))
    console.print(table)


def written(value: Any) -> str:
    """A figure as tables show it."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


def machine(threads: int) -> dict[str, Any]:
    """Where and with what the figures were taken."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: installed(package) for package in PACKAGES},
    }


def installed(package: str) -> str | None:
    """A package's version, None if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main() -> None:
    args = arguments()
    results: dict[str, Any] = {"machine": machine(args.threads)}
    console.print(", ".join(f"{key} {value}" for key, value in results["machine"].items()))
    if args.first_step:
        makers = {name: chosen(args.engines, NETWORKS[name]) for name in args.models}
        results["first_step"] = alone.first_steps(makers, args.threads)
        show_rows("seconds to the first step, each in a fresh process", results["first_step"])
    if args.grads:
        results["grads"] = gradients(args)
        show_rows("microseconds in the median round", results["grads"])
    if args.chains:
        results["chains"] = alone.chains()
        for task, rows in results["chains"].items():
            show_rows(f"{task} a chain: microseconds and bytes a node, each in a fresh process", rows)
    if not (args.first_step or args.grads or args.chains):
        results["steps"] = speed(args)
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
