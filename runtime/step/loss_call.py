"""The point of a run at which a loss function is called, and what it may see of it: the context ``ctx``."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from inspect import Parameter, signature
from typing import Any, cast

import numpy as np

from ...arrays import Array, Arrays
from ...tape import AnyVar, Context, DomainError, GradientError, Random, Tape, Var

LossFn = Callable[..., Any]
"""``loss_fn(p, batch)`` or ``loss_fn(p, batch, ctx)``; returns a scalar Var, or ``(loss, new_state)``.

p maps parameter names to Vars, batch is the caller's with Vars for arrays, new_state maps names of ``ctx.state`` to
what they are after the step.
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


def call_loss(
    loss_fn: LossFn, p: Any, batch: Any, context: Callable[[], Context]
) -> tuple[AnyVar, Mapping[str, AnyVar]]:
    """The loss, and the state after the step where the function returns one, else no entries.

    ``context`` makes the context for a function that takes it. Raises GradientError for another result than a
    scalar Var with or without a new state, or if a state was updated and is not returned; what `Context.update`
    raises for a state of other names, shapes or dtypes.
    """
    if not takes_context(loss_fn):
        return _loss_of(loss_fn(p, batch)), {}
    ctx = context()
    result = loss_fn(p, batch, ctx)
    if not isinstance(result, tuple):
        if ctx.state.updated:
            updated = ", ".join(map(repr, sorted(ctx.state.updated)))
            raise GradientError(f"loss_fn: the model updated {updated}: expected (loss, ctx.state), got the loss alone")
        return _loss_of(result), {}
    loss, state = _pair(cast(Any, result))
    for name, value in state.items():
        ctx.update(name, value)
    return _loss_of(loss), dict(ctx.state)


def _pair(result: tuple[Any, ...]) -> tuple[Any, Mapping[str, Any]]:
    if len(result) != 2 or not isinstance(result[1], Mapping):
        kinds = ", ".join(type(part).__name__ for part in result)
        raise GradientError(f"loss_fn: expected it to return (loss, new_state), got ({kinds})")
    return result[0], cast(Mapping[str, Any], result[1])


def _loss_of(loss: Any) -> AnyVar:
    if not isinstance(loss, Var):
        raise GradientError(f"loss_fn: expected it to return a scalar Var, got {type(loss).__name__}")
    scalar: AnyVar = cast(Any, loss)
    return scalar
