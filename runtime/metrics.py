"""Figures of a model over a whole data set."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tape import AnyVar, DomainError, Tape
from .data import Dataset
from .evaluate import Array, Arrays, LossFn, on_tape

Model = Callable[[Any, AnyVar], AnyVar]
BATCH = 256


def mean_loss(loss_fn: LossFn, params: Arrays, data: Dataset) -> float:
    """The mean of a loss that is a mean over samples."""

    def loss(batch: Any) -> float:
        tape: Tape[Any] = Tape()
        return float(loss_fn(_constants(tape, params), on_tape(tape, batch)).item())

    return _mean(data, loss)


def accuracy(model: Model, params: Arrays, data: Dataset) -> float:
    """The share of samples whose label has the largest output. Raises DomainError but for inputs and labels."""

    def share(batch: Any) -> float:
        if len(batch) != 2:
            raise DomainError(f"evaluate: argument 'data': expected inputs and labels, got {len(batch)} arrays")
        inputs, labels = batch
        tape: Tape[Any] = Tape()
        chosen: Array = model(_constants(tape, params), tape.const(inputs)).numpy().argmax(axis=-1)
        return int(np.count_nonzero(chosen == labels)) / len(labels)

    return _mean(data, share)


def _constants(tape: Tape[Any], params: Arrays) -> dict[str, AnyVar]:
    return {name: tape.const(value) for name, value in params.items()}


def _mean(data: Dataset, measure: Callable[[Any], float]) -> float:
    total = sum(measure(batch) * len(batch[0]) for batch in data.batches(BATCH))
    return total / len(data)
