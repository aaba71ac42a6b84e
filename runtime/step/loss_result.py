"""What a loss function returns: a loss, and beside it the new state of the model, or metrics, or both."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from ...base.runs.completed_step import VALIDATION
from ...tape import AnyVar, Context, DomainError, GradientError, ShapeError, TapeError, Var

FIGURES = ("step", "epoch", "loss", "lr", "gradient_norm", "seconds")
"""What a fit knows by name besides metrics; with `VALIDATION` before it, what it knows of other data."""

_FORMS = {True: "(loss, new_state) or (loss, new_state, metrics)", False: "a loss or (loss, metrics)"}
"""What a loss function returns, by whether the model has a state."""


class LossResult(NamedTuple):
    """What a loss function has returned."""

    loss: AnyVar
    state: Mapping[str, AnyVar]
    """The model's state after the step where the function returns one, else no entries."""
    metrics: Mapping[str, AnyVar]
    """Scalars to be shown, by name."""


def taken_apart(result: Any, ctx: Context | None) -> LossResult:
    """The parts of what a loss function has returned.

    The second of two is the new state of a model that has one, and the metrics of a model that has none: what a
    mapping is follows from the run, not from its names.

    Raises:
        GradientError: another form, or a state was updated and is not returned.
        DomainError: a metric that is no Var, or has the name of something else; metrics in place of the new state.
        ShapeError: a metric that is no scalar, or, as DTypeError, a state of another shape.
        TapeError: a metric of another tape.
    """
    names = [] if ctx is None else list(ctx.state)
    first, state, metrics = _parts(result, stateful=bool(names))
    if ctx is not None and state is None and ctx.state.updated:
        updated = ", ".join(map(repr, sorted(ctx.state.updated)))
        raise GradientError(f"loss_fn: the model updated {updated}: expected (loss, ctx.state), got the loss alone")
    after = {} if state is None else _updated(ctx, state, names)
    loss = _loss_of(first)
    return LossResult(loss, after, {name: _metric(name, value, loss) for name, value in metrics.items()})


def _parts(result: Any, *, stateful: bool) -> tuple[Any, Mapping[str, Any] | None, Mapping[str, Any]]:
    """The loss, the new state if there is one, the metrics."""
    if not isinstance(result, tuple):
        return result, None, {}
    parts: tuple[Any, ...] = tuple(cast(Any, result))
    loss, *rest = parts
    if not all(isinstance(part, Mapping) for part in rest) or not 1 <= len(rest) <= 2:
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise GradientError(f"loss_fn: expected it to return {_FORMS[stateful]}, got ({kinds})")
    if len(rest) == 2:
        return loss, rest[0], rest[1]
    return (loss, rest[0], {}) if stateful else (loss, None, rest[0])


def _updated(ctx: Context | None, state: Mapping[str, AnyVar], names: Sequence[str]) -> dict[str, AnyVar]:
    """The whole state after the step."""
    other = [name for name in state if name not in names]
    if other:
        raise DomainError(
            f"loss_fn: expected the new state of {', '.join(map(repr, names)) or 'a model without one'}, got "
            f"{', '.join(map(repr, other))}; return metrics behind it: (loss, ctx.state, metrics)"
        )
    if ctx is None:
        return {}
    for name, value in state.items():
        ctx.update(name, value)
    return dict(ctx.state)


def _metric(name: str, value: Any, loss: AnyVar) -> AnyVar:
    """A metric that was found to be one."""
    where = f"loss_fn: metric {name!r}"
    if name in FIGURES or name.startswith(VALIDATION):
        names = ", ".join(FIGURES)
        raise DomainError(f"{where}: expected a name of its own, not {names} or {VALIDATION}…; choose another")
    if not isinstance(value, Var):
        raise DomainError(f"{where}: expected a scalar Var, got {type(value).__name__}; compute it with ops")
    metric: AnyVar = cast(Any, value)
    if metric.tape is not loss.tape:
        raise TapeError(f"{where}: expected a Var of the loss's tape, got one of another; compute it from p and batch")
    if tuple(metric.shape) != ():
        raise ShapeError(
            f"{where}: expected a scalar, got shape {tuple(metric.shape)}; take its mean(), or, if it is the model's "
            "state, give the trainer model_state"
        )
    return metric


def _loss_of(loss: Any) -> AnyVar:
    if not isinstance(loss, Var):
        raise GradientError(f"loss_fn: expected it to return a scalar Var, got {type(loss).__name__}")
    scalar: AnyVar = cast(Any, loss)
    return scalar
