"""A forward pass: what a function of parameters and a batch returns, without gradients and without training."""

from collections.abc import Callable
from typing import Any

from ...base.arrays import Arrays
from ...tape import Context, DomainError, Tape, Var
from .batch import map_batch
from .evaluate import on_tape
from .loss_call import LossFn, RunPoint, call_loss, takes_context

Forward = Callable[[Any, Any, Callable[[], Context]], Any]
"""``forward(p, batch, context)``: Vars in tuples, lists and dicts; ``context()`` makes the context, if it is needed."""


def loss_forward(loss_fn: LossFn) -> Forward:
    """The loss and the metrics by name."""

    def forward(p: Any, batch: Any, context: Callable[[], Context]) -> Any:
        loss, _, metrics = call_loss(loss_fn, p, batch, context)
        return {"loss": loss, **metrics}

    return forward


def model_forward(model: Callable[..., Any]) -> Forward:
    """What ``model(p, x)`` or ``model(p, x, ctx)`` returns."""
    wants = takes_context(model)

    def forward(p: Any, batch: Any, context: Callable[[], Context]) -> Any:
        return model(p, batch, context()) if wants else model(p, batch)

    return forward


def eager_forward(function: Forward, params: Arrays, batch: Any, point: RunPoint) -> Any:
    """What a function returns, computed op by op, with an array in place of each Var: views that never change."""
    tape: Tape[Any] = Tape()
    p = {name: tape.const(value) for name, value in params.items()}
    made = function(p, on_tape(tape, batch), lambda: point.context(tape))
    return map_batch(lambda where, var: require_var(where, var).numpy(), made, "result")


def require_var(where: str, value: Any) -> Any:
    """The Var that a function has returned at a place of its result. Raises DomainError for anything else."""
    if not isinstance(value, Var):
        raise DomainError(f"forward pass: {where}: expected a Var, got {type(value).__name__}; compute it with ops")
    return value  # pyright: ignore[reportUnknownVariableType]
