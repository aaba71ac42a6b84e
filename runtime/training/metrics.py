"""Figures of a model over a whole data set."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...tape import AnyVar, DomainError, Tape
from ..data import Dataset
from ..step.evaluate import on_tape
from ..step.loss_call import Array, Arrays, LossFn, Moment, call_loss, takes_context

Metric = Literal["loss", "accuracy"]

Model = Callable[..., AnyVar]
"""``model(p, x)`` or ``model(p, x, ctx)``."""

BATCH = 256


def evaluated(
    metric: Metric, loss_fn: LossFn, model: Model | None, params: Arrays, data: Dataset, moment: Moment
) -> float:
    """The figure of that name. Raises DomainError for another name, or accuracy without a model."""
    if metric == "loss":
        return mean_loss(loss_fn, params, data, moment)
    if metric != "accuracy":
        raise DomainError(f"evaluate: argument 'metric': expected 'loss' or 'accuracy', got {metric!r}")
    if model is None:
        raise DomainError("evaluate: argument 'model': expected model(p, x) for 'accuracy', got None")
    return accuracy(model, params, data, moment)


def mean_loss(loss_fn: LossFn, params: Arrays, data: Dataset, moment: Moment) -> float:
    """The mean of a loss that is a mean over samples."""

    def loss(batch: Any) -> float:
        tape: Tape[Any] = Tape()
        p = _constants(tape, params)
        return float(call_loss(loss_fn, p, on_tape(tape, batch), lambda: moment.context(tape))[0].item())

    return _mean(data, loss)


def accuracy(model: Model, params: Arrays, data: Dataset, moment: Moment) -> float:
    """The share of samples whose label has the largest output. Raises DomainError but for inputs and labels."""

    def share(batch: Any) -> float:
        if len(batch) != 2:
            raise DomainError(f"evaluate: argument 'data': expected inputs and labels, got {len(batch)} arrays")
        inputs, labels = batch
        tape: Tape[Any] = Tape()
        ctx = (moment.context(tape),) if takes_context(model) else ()
        chosen: Array = model(_constants(tape, params), tape.const(inputs), *ctx).numpy().argmax(axis=-1)
        return int(np.count_nonzero(chosen == labels)) / len(labels)

    return _mean(data, share)


def _constants(tape: Tape[Any], params: Arrays) -> dict[str, AnyVar]:
    return {name: tape.const(value) for name, value in params.items()}


def _mean(data: Dataset, measure: Callable[[Any], float]) -> float:
    total = sum(measure(batch) * len(batch[0]) for batch in data.batches(BATCH))
    return total / len(data)
