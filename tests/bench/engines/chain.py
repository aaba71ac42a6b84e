"""A long graph in a fresh process: ``python -m engines.chain TASK KIND N`` prints its figures as JSON.

TASK "differentiate" builds a tape and takes every node's gradient; "capture" captures it as a step and runs that.
The peak of memory is of the task alone: above what the process took for its imports and a short chain.
"""

import json
import resource
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from dgrr.runtime import SGD, capture
from dgrr.tape import AnyVar, Tape, ops

FACTOR = 0.999
SHORT = 20
REPLAYS = 20
START = np.ones(4, np.float32)
MEBIBYTE_OF_RSS = 2**20 if sys.platform == "darwin" else 2**10


def chain(x: AnyVar, kind: str, n: int) -> AnyVar:
    """n nodes one after the other: "scale", x = x * c, or "relu", this and x = relu(x) in turn."""
    for i in range(n):
        x = ops.relu(x) if kind == "relu" and i % 2 else x * FACTOR
    return x


def differentiate(kind: str, n: int) -> dict[str, float]:
    """Seconds of building a tape and of the gradients of all its nodes."""
    began = perf_counter()
    tape: Tape[Any] = Tape()
    loss = chain(tape.param(START, name="x"), kind, n).sum()
    built = perf_counter()
    tape.backward_dense(loss)
    return {"build s": built - began, "backward s": perf_counter() - built}


def capture_and_step(kind: str, n: int) -> dict[str, float]:
    """Seconds of capturing and of one step; nanoseconds of a kernel call on four elements, all included."""
    batch = (START,)
    began = perf_counter()
    step = capture(lambda p, b: (chain(p["x"], kind, n) * b[0]).sum(), {"x": START}, SGD(1e-3), batch)
    captured = perf_counter()
    step(batch)
    first = perf_counter()
    replay = min(seconds(step.replay) for _ in range(REPLAYS)) / len(step.lowered.ops)
    return {"capture s": captured - began, "step s": first - captured, "ns a call": replay * 1e9}


def seconds(run: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = perf_counter()
    run()
    return perf_counter() - began


TASKS: dict[str, Callable[[str, int], dict[str, float]]] = {
    "differentiate": differentiate,
    "capture": capture_and_step,
}


def peak() -> float:
    """Most memory this process ever held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTE_OF_RSS


def main() -> None:
    task, kind, n = TASKS[sys.argv[1]], sys.argv[2], int(sys.argv[3])
    task(kind, SHORT)  # kernels load
    before = peak()
    figures = task(kind, n)
    built = sum(value for name, value in figures.items() if name.endswith(" s"))
    print(json.dumps({**figures, "us a node": built / n * 1e6, "MiB": peak() - before}))


if __name__ == "__main__":
    main()
