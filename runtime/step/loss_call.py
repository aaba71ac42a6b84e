"""The point of a run at which a loss function is called, and what it may see of it: the context ``ctx``."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape import Context, DomainError, Random, Tape
from .loss_result import LossResult, taken_apart

LossFn = Callable[..., Any]
"""``loss_fn(p, batch)`` or ``loss_fn(p, batch, ctx)``.

p maps parameter names to Vars, batch is the caller's with Vars for arrays. It returns the loss, a scalar Var, or
``(loss, metrics)``, which maps names to scalar Vars to be shown; for a model with a state ``(loss, new_state)`` or
``(loss, new_state, metrics)``, where new_state maps names of ``ctx.state`` to what they are after the step.
"""


@dataclass(frozen=True)
class RunPoint:
    """A point of a run: how many steps came before, the seed of its draws, the state of the model."""

    step: int = 0
    seed: int = 0
    model_state: Arrays = field(default_factory=dict[str, Array])
    _: KW_ONLY
    training: bool = True
    micro_batch: int = 0

    def context(self, tape: Tape[Any]) -> Context:
        """The context on a tape, where its values become constants."""
        state = {name: tape.const(array, name=name) for name, array in self.model_state.items()}
        step = tape.const(np.int64(self.step), name="step")
        return Context(self.training, Random(step, self.seed, self.micro_batch), state, step)

    def after(self, model_state: Arrays) -> "RunPoint":
        """The next micro-batch of the same step."""
        return replace(self, model_state=model_state, micro_batch=self.micro_batch + 1)


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether a loss function or a model has a third argument for the context: one named ctx, or without a default."""
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    named = [p for p in signature(function).parameters.values() if p.kind in places]
    return len(named) > 2 and (named[2].name == "ctx" or named[2].default is Parameter.empty)


def require_use(loss_fn: LossFn, model_state: Arrays) -> None:
    """Raise DomainError for a state of the model that the loss function has no argument to take."""
    if model_state and not takes_context(loss_fn):
        names = ", ".join(map(repr, model_state))
        raise DomainError(f"model_state: expected loss_fn(p, batch, ctx) to use {names}, got a loss_fn without ctx")


def call_loss(loss_fn: LossFn, p: Any, batch: Any, context: Callable[[], Context]) -> LossResult:
    """Call a loss function and take its result apart; ``context`` makes the context for a function that takes it.

    Raises what `taken_apart` raises.
    """
    if not takes_context(loss_fn):
        return taken_apart(loss_fn(p, batch), None)
    ctx = context()
    return taken_apart(loss_fn(p, batch, ctx), ctx)
