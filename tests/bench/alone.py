"""What is measured in fresh processes, one by one: first steps, and long graphs."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from tempfile import TemporaryDirectory
from typing import Any

from rounds import BENCH, EngineError, Figures, start

WARM_STARTS = 3
CHAINS = [
    (task, kind, n)
    for task in ("differentiate", "capture")
    for kind in ("scale", "relu")
    for n in (10**3, 10**4, 10**5)
]


def first_steps(engines: Mapping[str, str], models: Iterable[str], threads: int) -> list[dict[str, Any]]:
    """Seconds to the first step, with empty caches of compiled code and with those that this left."""
    return [row for model in models for name, maker in engines.items() for row in _starts(name, maker, model, threads)]


def _starts(name: str, maker: str, model: str, threads: int) -> list[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        caches = {"NUMBA_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        try:
            cold = start(maker, model, threads, **caches)
            warm = [start(maker, model, threads, **caches) for _ in range(WARM_STARTS)]
        except EngineError as error:
            return [{"model": model, "engine": name, "cache": f"absent: {error}"}]
    best = min(warm, key=_total)
    return [
        {"model": model, "engine": name, "cache": cache, **f.seconds, "total": _total(f)}
        for cache, f in (("cold", cold), ("warm", best))
    ]


def _total(figures: Figures) -> float:
    return sum(figures.seconds.values())


def chains() -> list[dict[str, Any]]:
    """Time and memory of chains of nodes; linear means the same time per node."""
    return [{"task": task, "chain": kind, "nodes": n, **chain(task, kind, n)} for task, kind, n in CHAINS]


def chain(task: str, kind: str, n: int) -> dict[str, float]:
    """The figures of `engines.chain`. Raises EngineError."""
    command = [sys.executable, "-m", "engines.chain", task, kind, str(n)]
    ran = subprocess.run(command, cwd=BENCH, capture_output=True, text=True)
    if ran.returncode:
        raise EngineError(f"a chain of {n} nodes: {ran.stderr.strip().rpartition(chr(10))[2]}")
    figures: dict[str, float] = json.loads(ran.stdout)
    return figures
