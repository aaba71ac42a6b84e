"""A process of one engine: ``python -m engines.worker ENGINE MODEL THREADS``, driven over its standard input.

It imports the engine, makes the step, runs the first `CHECKED` steps and writes what that took and the losses as
a line of JSON. Then each line it reads is a number of seconds, for which it runs steps; it answers with the
median time of a step in microseconds and the most memory that the process has held since the first steps, in MiB, 0
where Linux is not there to tell. Between two lines it is blocked on the pipe.
"""

import ctypes
import gc
import json
import os
import sys
from importlib import import_module
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any

CHECKED = 3
LEAST_STEPS = 3
"""In a round, however slow they are."""
WARM_UP = 0.2
"""Share of a round's time that runs before it, unmeasured: threads wake up, caches fill."""


def started(engine: str, name: str, threads: int) -> tuple[Any, Any, dict[str, Any]]:
    """The step, its batches, and the report: seconds of import, of making, and of the first step, and losses."""
    began = perf_counter()
    module, _, maker = engine.partition(":")
    imports = import_module(f"engines.{module}")
    make = getattr(imports, maker)
    imported = perf_counter()
    from engines.larger import NETWORKS  # numpy's import belongs to the engine's

    model = getattr(imports, "MODELS", NETWORKS)[name]
    params, batches = model.params(), cycle(model.batches())
    prepared = perf_counter()
    step = make(model, params, threads)
    made = perf_counter()
    losses = [step(next(batches))]
    first = perf_counter()
    losses += [step(next(batches)) for _ in range(CHECKED - 1)]
    seconds = {"import": imported - began, "make": made - prepared, "first step": first - made}
    return step, batches, {"seconds": seconds, "losses": losses}


def run_for(seconds: float, step: Any, batches: Any) -> list[int]:
    """Run steps; the nanoseconds of each."""
    marks = [perf_counter_ns()]
    end = marks[0] + seconds * 1e9
    while marks[-1] < end or len(marks) <= LEAST_STEPS:
        step(next(batches))
        marks.append(perf_counter_ns())
    return [after - before for before, after in pairwise(marks)]


def keep_to(threads: int) -> None:
    """Leave the process as many cores as it has threads; XLA knows no other way."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def forget_peak() -> None:
    """Give back what making the step has left, and let the peak of memory begin at what the process holds now."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    """MiB."""
    if sys.platform != "linux":
        return 0.0
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what an engine prints is no answer
    engine, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    keep_to(threads)
    step, batches, report = started(engine, model, threads)
    forget_peak()
    print(json.dumps(report), file=answers, flush=True)
    for line in sys.stdin:
        run_for(WARM_UP * float(line), step, batches)
        microseconds = median(run_for(float(line), step, batches)) / 1e3
        print(json.dumps([microseconds, peak()]), file=answers, flush=True)


if __name__ == "__main__":
    main()
