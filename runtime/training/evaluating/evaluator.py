"""What can be asked of trained parameters as they are, without a step."""

from collections.abc import Iterable
from typing import Any

from ....tape import DomainError
from ....tape.values.unique import Unique
from ...data import Dataset
from .evaluate import BATCH, Metric, evaluated
from .forwards import Forwards, Model
from .predict import predicted


class Evaluator(Unique):
    """What a `Trainer` answers about its parameters: figures over data, and a model's outputs."""

    _forwards: Forwards
    _averaged: Forwards

    def evaluate(
        self,
        data: Dataset | Iterable[Any],
        metric: Metric = "loss",
        model: Model | None = None,
        *,
        averages: bool = False,
    ) -> float:
        """One figure over a data set or batches, with ``training=False`` and without gradients; changes nothing.

        Args:
            data: a data set; batches, of which epoch 0 is taken and none is used up; or any batches. Each counts by
                its samples, the length of its first array.
            metric: "loss", or the name of a metric that the loss function returns: their means. "accuracy": the share
                of samples whose label has the largest of the model's outputs, for batches of (inputs, labels). Or a
                function ``metric(outputs, batch) -> number`` of arrays.
            model: ``model(p, x)`` or ``model(p, x, ctx)``, for "accuracy" and functions. It takes the first part of a
                batch, or all of one that has no parts in order.
            averages: whether to take the running averages of the parameters, of a trainer with ``ema``.

        Raises:
            DomainError: another metric, a missing model, no batch, samples in place of batches, or averages that are
                not kept.
        """
        return evaluated(self._averaged if averages else self._forwards, data, metric, model)

    def predict(self, inputs: Any, *, model: Model, batch: int = BATCH, averages: bool = False) -> Any:
        """What a model gives for inputs of any length, with ``training=False`` and without gradients.

        Args:
            inputs: an array, or a tuple, list or dict of arrays, whose first axis counts samples; what the model takes
                as ``x``.
            model: ``model(p, x)`` or ``model(p, x, ctx)``; it returns one row per sample.
            batch: how many samples are computed at once, the last time fewer. In every mode but "eager" the model is
                captured once for each such number.
            averages: as for `evaluate`.

        Returns:
            An array of the caller's own in place of each Var that the model returns.

        Raises:
            DomainError: a ``batch`` below 1, or arrays of different lengths; ShapeError for outputs that are not one
                row per sample; TapeError if the model reads a value while it is captured.

        >>> from dgrr.runtime import SGD, Trainer
        >>> from dgrr.tape import ops
        >>> def model(p, x):
        ...     return ops.linear(x, p["w"])
        >>> trainer = Trainer(lambda p, batch: model(p, batch[0]).mean(), {"w": np.ones((1, 2))}, SGD(0.1))
        >>> trainer.predict(np.arange(6.0).reshape(3, 2), model=model, batch=2)
        array([[1.],
               [5.],
               [9.]])
        """
        if batch < 1:
            raise DomainError(f"predict: argument 'batch': expected a whole number of at least 1, got {batch!r}")
        forwards = self._averaged if averages else self._forwards
        return predicted(forwards.model(model), inputs, batch)
