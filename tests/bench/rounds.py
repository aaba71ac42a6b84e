"""Engines measured side by side: each in a process of its own, taking turns.

Two engines in one process would stall each other, because the threads of both spin; and engines measured one
after the other would each meet another state of the machine. So every engine's process is started and warmed up
once, and then told in turn to run one round; the others sleep meanwhile, blocked on their pipes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

BENCH = Path(__file__).parent
RELATIVE_TOLERANCE = 1e-3
"""Between two engines' losses: their sums have other orders, so float32 differs in the last places."""


class EngineError(Exception):
    """An engine that did not start; the last line of what it wrote."""


@dataclass
class Figures:
    """What an engine took on a model."""

    seconds: Mapping[str, float]
    """Of the import, of making the step (for dgrr: capturing it) and of the first step."""
    losses: list[float]
    """Of the first steps."""
    rounds: list[float] = field(default_factory=list)
    """The median microseconds of a step in each round."""
    peak: float = 0.0
    """MiB that the process held at most in its rounds."""

    @property
    def median(self) -> float:
        """Microseconds of a step in the median round."""
        return median(self.rounds)

    @property
    def fastest(self) -> float:
        """Microseconds of a step in the fastest round."""
        return min(self.rounds)


class Worker:
    """The running process of one engine on one model."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors

    def start(self) -> Figures:
        """Wait for the first steps. Raises EngineError."""
        return Figures(**self._answer())

    def round(self, seconds: float, figures: Figures) -> None:
        """Add the median time of a step, and what memory it took. Raises EngineError."""
        assert self._process.stdin is not None
        print(seconds, file=self._process.stdin, flush=True)
        microseconds, figures.peak = self._answer()
        figures.rounds.append(microseconds)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self._errors.seek(0)
        raise EngineError(self._errors.read().strip().rpartition("\n")[2])


@contextmanager
def running(engine: str, model: str, threads: int, **variables: str) -> Iterator[Worker]:
    """The process of an engine, named "module:function", until the end of the block."""
    with (
        TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "engines.worker", engine, model, str(threads)],
            cwd=BENCH,
            env=environment(threads, **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        yield Worker(process, errors)


def environment(threads: int, **more: str) -> dict[str, str]:
    """Variables under which every engine's libraries use the same number of threads."""
    pools = ("OMP", "MKL", "OPENBLAS", "NUMBA")
    one = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {}
    return {**os.environ, **{f"{pool}_NUM_THREADS": str(threads) for pool in pools}, **one, **more}


def start(engine: str, model: str, threads: int, **variables: str) -> Figures:
    """What the first steps take in a fresh process. Raises EngineError."""
    with running(engine, model, threads, **variables) as worker:
        return worker.start()


def measure(
    engines: Mapping[str, str], model: str, threads: int, rounds: int, seconds: float
) -> tuple[dict[str, Figures], dict[str, str]]:
    """Figures by engine, and the reason by engine that did not start.

    Raises EngineError if the engines disagree about the first losses.
    """
    figures, absent, workers = dict[str, Figures](), dict[str, str](), dict[str, Worker]()
    with ExitStack() as stack:
        for name, maker in engines.items():
            worker = stack.enter_context(running(maker, model, threads))
            try:
                figures[name] = worker.start()
                workers[name] = worker
            except EngineError as error:
                absent[name] = str(error)
        require_equal_losses(figures)
        for _ in range(rounds):
            for name, worker in workers.items():
                worker.round(seconds, figures[name])
    return figures, absent


def require_equal_losses(figures: Mapping[str, Figures]) -> None:
    """Check the benchmark itself: all engines train the same model on the same batches. Raises EngineError."""
    losses = {name: f.losses for name, f in figures.items()}
    for mine in losses.values():
        if not np.allclose(mine, next(iter(losses.values())), rtol=RELATIVE_TOLERANCE, atol=0):
            raise EngineError(f"the losses of the first steps differ: {losses}")
