"""A loss function on a batch: its value, its gradients, and the tape that holds both."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.runs.completed_step import Order
from ...screen.panels import ShownAsPanel
from ...screen.showing import LIMIT, counted, more
from ...tape import (
    AnyTensor,
    AnyVar,
    Context,
    NonFiniteError as NonFiniteError,  # for those who have it from here
    Tape,
)
from ...tape.graph.backward import DenseGrads
from ...tape.values.tables import norm
from .batch import map_batch
from .loss_call import LossFn, RunPoint, call_loss

START = RunPoint()


@dataclass(frozen=True, repr=False)
class Evaluation(ShownAsPanel):
    """One forward and backward pass."""

    tape: Tape[Any]
    loss: Array
    dense: DenseGrads[AnyTensor]
    grads: dict[str, Array]
    """The gradient of every parameter that the loss depends on, in the order of the parameters."""
    model_state: dict[str, Array]
    """The state of the model after the step."""
    updated: dict[str, Array]
    """The entries of it that the loss function has changed."""
    metrics: dict[str, float]
    """What the loss function gave to be shown."""

    def _title(self) -> str:
        return f"Evaluation: loss {self.loss.item():.6g}, {counted(len(self.tape), 'node')}"

    def about(self) -> dict[str, object]:
        """A summary for people: loss, metrics, and the norm of each parameter's gradient."""
        shown = list(self.grads.items())[:LIMIT]
        found: dict[str, object] = {"loss": f"{self.loss.item():.9g}"}
        found |= {name: f"{x:.6g}" for name, x in self.metrics.items()}
        found |= {f"|gradient| of {name}": f"{norm(grad):.4g}" for name, grad in shown}
        return found | ({"and": more(len(self.grads) - LIMIT)} if len(self.grads) > LIMIT else {})

    def require_finite(self) -> None:
        """Raise NonFiniteError if the loss or a gradient is infinite or NaN."""
        if np.isfinite(self.loss) and all(np.isfinite(g).all() for g in self.grads.values()):
            return
        raise NonFiniteError(self._first_nonfinite())

    def _first_nonfinite(self) -> str:
        """Where the run left the finite numbers: the first such value, else the first such gradient on the way back."""
        value = self.tape.first_nonfinite()
        return str(value) if value else f"the values are finite; {self.dense.first_nonfinite()}"


def on_tape(tape: Tape[Any], batch: Any) -> Any:
    """A batch with its arrays as constants of a tape; tuples, lists and dicts keep their form."""
    return map_batch(lambda where, array: tape.const(AnyTensor.leaf(array, where)), batch)


def evaluate(
    loss_fn: LossFn, params: Arrays, batch: Any, point: RunPoint = START, frozen: Collection[str] = ()
) -> Evaluation:
    """The loss on a batch and the gradient of every node, computed op by op on a fresh tape.

    The parameters named in ``frozen`` are constants there: no gradient of them is computed.

    Raises GradientError if ``loss_fn`` does not return a Var or it depends on no parameter, ShapeError if the
    Var is no scalar, TapeError if it is of another tape; what `call_loss` raises for a new state or metrics.
    """
    tape: Tape[Any] = Tape()
    p = tape.params(params) if not frozen else _some_frozen(tape, params, frozen)
    given = dict[str, int]()

    def context() -> Context:
        made = point.context(tape)
        given.update({name: var.id for name, var in made.state.items()})
        return made

    loss, state, metrics = call_loss(loss_fn, p, on_tape(tape, batch), context)
    shown = {name: float(var.item()) for name, var in metrics.items()}
    dense = tape.backward_scalar(loss)
    reached = {name: dense[var] for name, var in p.items()}
    grads = {name: g.array for name, g in reached.items() if g is not None}
    updated = {name: var.numpy() for name, var in state.items() if var.id != given[name]}
    return Evaluation(tape, loss.numpy(), dense, grads, {**point.model_state, **updated}, updated, shown)


def evaluations(
    loss_fn: LossFn,
    params: Arrays,
    micro_batches: Iterable[Any],
    point: RunPoint,
    frozen: Collection[str],
    order: Order,
) -> Iterator[Evaluation]:
    """`evaluate` for micro-batches of a step in turn, each when it is asked for.

    In a chain each begins with the state of the model that the one before it left, in a tree with that of ``point``.
    """
    for micro in micro_batches:
        made = evaluate(loss_fn, params, micro, point, frozen)
        yield made
        point = point.after(made.model_state if order == "chain" else point.model_state)


def _some_frozen(tape: Tape[Any], params: Arrays, frozen: Collection[str]) -> dict[str, AnyVar]:
    """Every parameter, those of some names as constants."""
    return {n: tape.const(a, name=n) if n in frozen else tape.param(a, name=n) for n, a in params.items()}


def gradients(loss_fn: LossFn, params: Arrays, batch: Any, point: RunPoint = START) -> tuple[Array, dict[str, Array]]:
    """The loss (0-d) and the gradients by parameter name; absent where the loss does not depend on one.

    >>> import numpy as np
    >>> loss, grads = gradients(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, np.array([3.0, 4.0]))
    >>> float(loss), grads["w"]
    (7.0, array([3., 4.]))
    """
    made = evaluate(loss_fn, params, batch, point)
    return made.loss, made.grads
