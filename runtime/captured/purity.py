"""A captured step stands for its loss function only if that does the same at every call: it is recorded again to see.

Capturing freezes what a loss function reads besides its arguments: a counter, ``np.random``, the clock, an array that
somebody changes. Eagerly each step would see the new value, captured all see the first.
"""

from collections.abc import Callable
from typing import Any

from ...tape import DgrrError
from ..ir.difference import first_difference
from ..ir.graph import IRGraph
from ..ir.record import Recorded, loss_graph, record, record_loss, step_graph
from ..step.eager import TrainingStep


class CaptureError(DgrrError, RuntimeError):
    """A loss function that does another thing when it is called again: no captured step can stand for it."""


CURE = (
    "what is captured keeps the first for ever; take what changes from ctx.step (the count of steps), from ctx.random "
    'or from an array of the batch, or run the step with mode="eager"'
)


class Looks:
    """Counts runs, and looks at the captured function again before the 2nd, 4th, 8th, …

    So n runs cost log2(n) looks, and what changes is found before there are twice as many runs.
    """

    def __init__(self, look: Callable[[str], None]) -> None:
        self.runs, self._next, self._look = 0, 2, look

    def count(self, runs: int = 1) -> None:
        """Count runs that are about to be. Raises what the look does."""
        self.runs += runs
        if self.runs >= self._next:
            self._look(f"at run {self.runs} of what was captured")
            self._next = 1 << self.runs.bit_length()


def require_same(graph: IRGraph, step: TrainingStep, example: Any, when: str) -> None:
    """Record the loss function of ``step`` once more on a batch like ``example``; it must give ``graph`` again.

    Raises CaptureError naming the first op that differs, with both its forms and the user's line. ``when`` says in
    the error when that was.
    """
    recording = record(step.loss_fn, step.params, example, step.recipe, step.model_state, step.seed)
    again, _ = step_graph(recording, step.recipe, step.state)
    require_equal("loss_fn", graph, again, recording, when)


def require_same_loss(graph: IRGraph, step: TrainingStep, example: Any, when: str) -> None:
    """The same up to the loss of the first micro-batch, in a fifth of the time; ``graph`` is its `loss_graph`."""
    recorded = record_loss(step.loss_fn, step.params, example, step.recipe, step.model_state, step.seed)
    require_equal("loss_fn", graph, loss_graph(recorded, len(recorded.tape)), recorded, when)


def require_equal(what: str, graph: IRGraph, again: IRGraph, recording: Recorded, when: str) -> None:
    """Raise CaptureError if a function, recorded again as ``recording``, gave another graph."""
    found = None if graph == again else first_difference(graph, again)
    if found is None:
        return
    node = recording.tape.node(found.value) if found.value < len(recording.tape) else None
    place = f" at {node.location}" if node is not None and node.location is not None else ""
    name = f" of {node.scope!r}" if node is not None and node.scope else ""
    raise CaptureError(
        f"capture: {what} does another thing when it is called again{place}: value %{found.value}{name} was recorded "
        f"as {found.first}, but {when} as {found.second}; {CURE}"
    )
