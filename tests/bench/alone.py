"""What is measured in fresh processes, one by one: first steps, the kernels of a step, and long graphs."""

import json
import subprocess
import sys
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

from engines.ceiling import Ceiling
from rounds import BENCH, EngineError, Figures, start

from dgrr.runtime.captured.profile import KernelCall

WARM_STARTS = 3
CHAINS = [
    (task, kind, n)
    for task, most in (("differentiate", 10**6), ("capture", 10**5))
    for kind in ("scale", "relu")
    for n in (10**3, 10**4, 10**5, 10**6)
    if n <= most
]
"""Up to as many nodes as take a minute and two gigabytes."""


def first_steps(makers: Mapping[str, Mapping[str, str]], threads: int) -> list[dict[str, Any]]:
    """Seconds to the first step of engines by model, with empty caches of compiled code and with those it left."""
    return [row for model, own in makers.items() for name in own for row in _starts(name, own[name], model, threads)]


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


def chains() -> dict[str, list[dict[str, Any]]]:
    """Time and memory of chains of nodes by task; linear means the same time per node."""
    rows = [(task, {"chain": kind, "nodes": n, **chain(task, kind, n)}) for task, kind, n in CHAINS]
    return {task: [row for of, row in rows if of == task] for task, _ in rows}


def chain(task: str, kind: str, n: int) -> dict[str, float]:
    """The figures of `engines.chain`. Raises EngineError."""
    figures: dict[str, float] = _answer("engines.chain", task, kind, str(n))
    return figures


def profile(model: str, threads: int) -> list[KernelCall]:
    """The kernel calls of dgrr's captured step. Raises EngineError."""
    return [KernelCall(**call) for call in _answer("engines.profile", model, str(threads))]


def ceiling(threads: int) -> Ceiling:
    """What this machine can do at most. Raises EngineError."""
    return Ceiling(**_answer("engines.ceiling", str(threads)))


def _answer(module: str, *arguments: str) -> Any:
    """What a module prints as JSON in a fresh process. Raises EngineError."""
    ran = subprocess.run([sys.executable, "-m", module, *arguments], cwd=BENCH, capture_output=True, text=True)
    if ran.returncode:
        raise EngineError(f"{' '.join([module, *arguments])}: {ran.stderr.strip().rpartition(chr(10))[2]}")
    return json.loads(ran.stdout)
