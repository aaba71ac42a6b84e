"""A long graph in a fresh process: ``python -m engines.chain TASK KIND N`` prints its figures as JSON.

TASK "differentiate" builds a tape and takes every node's gradient; "capture" captures it as a step and runs that.
Microseconds are of a node of the chain, which a captured step has twice: forth and back. The peak of memory is of the
task alone: above what the process took for its imports and a short chain.
"""

import json
import resource
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from dgrr.runtime import SGD, capture
from dgrr.runtime.captured import plans
from dgrr.runtime.lower import compile, lower
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
    """Seconds of the forward pass on a tape and of the gradients of all its nodes."""
    began = perf_counter()
    tape: Tape[Any] = Tape()
    loss = chain(tape.param(START, name="x"), kind, n).sum()
    built = perf_counter()
    tape.backward_dense(loss)
    return {"forward": built - began, "backward": perf_counter() - built}


class Parts:
    """Seconds of the parts of a capture, each of which calls one of these functions, or several times."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        for part, owner, name in (
            ("recording, twice", plans, "record"),
            ("recording, twice", plans, "record_loss"),
            ("graphs", plans, "step_graph"),
            ("comparing", plans, "require_equal"),
            ("passes", compile, "_lowered"),
            ("lowering", lower.Lowering, "run"),
            ("memory", compile, "plan"),
            ("binding", plans, "bound_on"),
        ):
            setattr(owner, name, self._timed(part, getattr(owner, name)))

    def _timed(self, part: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = perf_counter()
            result = run(*args, **kwargs)
            self.seconds[part] = self.seconds.get(part, 0.0) + perf_counter() - began
            return result

        return timed

    def taken(self) -> dict[str, float]:
        """What was measured since the last time; passes run before and behind the lowering."""
        taken, self.seconds = self.seconds, {}
        return {**taken, "passes": taken["passes"] - taken["lowering"]}


def capture_and_step(kind: str, n: int) -> dict[str, float]:
    """Seconds of capturing, of its parts and of one step."""
    batch = (START,)
    began = perf_counter()
    step = capture(lambda p, b: (chain(p["x"], kind, n) * b[0]).sum(), {"x": START}, SGD(1e-3), batch)
    captured = perf_counter()
    step(batch)
    first = perf_counter()
    replay = min(seconds(step.replay) for _ in range(REPLAYS))
    return {"capture": captured - began, **PARTS.taken(), "first step": first - captured, "replay": replay}


def seconds(run: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = perf_counter()
    run()
    return perf_counter() - began


PARTS = Parts()

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
    bytes_a_node = (peak() - before) * 2**20 / n
    print(json.dumps({**{name: value / n * 1e6 for name, value in figures.items()}, "bytes": bytes_a_node}))


if __name__ == "__main__":
    main()
