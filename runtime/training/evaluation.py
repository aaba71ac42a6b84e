"""Forward passes of a trainer's functions over batches: figures of a model on other data, and its predictions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import ismethod
from typing import Any, cast

import numpy as np

from ...base.arrays import Array
from ...tape import AnyVar, DomainError, ShapeError
from ..captured.captured_forward import CapturedForward
from ..captured.kept import PLAN_BYTES
from ..data import Dataset, Epochs
from ..data.shares import of_groups
from ..optim.averages import averaged
from ..ranks.exchange import Exchange
from ..ranks.rows import in_turn
from ..step.batch import batch_arrays, map_batch
from ..step.forward import Forward, eager_forward, loss_forward, model_forward
from ..step.training_step import TrainingStep
from .batch_stream import require_batches

Metric = str | Callable[[Any, Any], Any]
"""A name, or ``metric(outputs, batch) -> number``."""

Model = Callable[..., AnyVar]
"""``model(p, x)`` or ``model(p, x, ctx)``."""

BATCH = 256
"""Samples at once, where nobody says how many."""

MODELS_KEPT = 8
"""Models whose tables are kept."""


class Forwards:
    """Forward passes over the arrays of a step: op by op, or captured at the first batch of each signature.

    With ``averages`` they take the running averages of the parameters. ``ranks`` are those that share the batches.
    """

    def __init__(
        self,
        step: TrainingStep,
        *,
        eager: bool,
        averages: bool = False,
        ranks: Exchange | None = None,
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        self._plan_bytes = plan_bytes
        self._step, self._eager, self._averages, self.ranks = step, eager, averages, ranks
        self._models: dict[Any, tuple[Any, Callable[[Any], Any]]] = {}

    @cached_property
    def loss(self) -> Callable[[Any], Any]:
        """A batch -> the loss and the metrics by name."""
        return self._of(loss_forward(self._step.loss_fn))

    def model(self, model: Model) -> Callable[[Any], Any]:
        """Inputs -> the outputs of a model: views that are valid until the next call."""
        key = (id(model.__self__), model.__func__) if ismethod(model) else id(model)
        known = self._models.get(key)
        if known is None:
            if len(self._models) == MODELS_KEPT:
                del self._models[next(iter(self._models))]
            known = self._models[key] = model, self._of(model_forward(model))
        return known[1]

    def _of(self, function: Forward) -> Callable[[Any], Any]:
        step = self._step
        if self._averages and step.own is not None:
            raise DomainError(
                "averages: expected a trainer without ranks, each of which keeps a share of the averages; save the run "
                "and load it in one process, or take trainer.averaged"
            )
        params = averaged(step.params, step.state) if self._averages else step.params
        if not self._eager:
            arrays = {**step.arrays, "params": params}
            return _settled(step, CapturedForward(function, arrays, step.seed, self._plan_bytes))
        return lambda batch: eager_forward(function, params, batch, replace(step.point, training=False))


def _settled(step: TrainingStep, forward: CapturedForward) -> Callable[[Any], Any]:
    """A forward pass over the arrays of a step, which may train elsewhere."""

    def run(batch: Any) -> Any:
        step.settle()
        return forward(batch)

    return run


def measured(
    forwards: Forwards, where: str, data: object, between: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """The mean loss and the mean of every metric that the loss function returns, each batch weighed by its samples.

    ``between`` is called after every batch.
    """

    loss = forwards.loss

    def figures(batch: Any) -> dict[str, float]:
        found = {name: float(value[()]) for name, value in loss(batch).items()}
        between()
        return found

    return _means(forwards.ranks, where, data, figures)


def evaluated(forwards: Forwards, data: object, metric: Metric, model: Model | None) -> float:
    """One figure over batches. Raises DomainError for a name that nothing has, or a model that is missing."""
    where = "evaluate: argument 'data'"
    if callable(metric):
        return _weighed(forwards, where, data, metric, _required(model, "a metric that is a function"))
    if metric == "accuracy" and model is not None:
        return _weighed(forwards, where, data, _share_of_right, model)
    found = measured(forwards, where, data)
    if metric in found:
        return found[metric]
    if metric == "accuracy":
        _required(model, "'accuracy'")
    names = ", ".join(map(repr, {"loss": None, "accuracy": None, **found}))
    raise DomainError(f"evaluate: argument 'metric': expected one of {names}, or a function, got {metric!r}")


def _means(
    ranks: Exchange | None, where: str, data: object, figures: Callable[[Any], dict[str, float]]
) -> dict[str, float]:
    """The means of figures over the samples of all batches, added in the order of the batches."""
    totals, samples = dict[str, float](), dict[str, int]()
    for size, found in _rows(ranks, where, data, figures):
        for name, value in found.items():
            totals[name] = totals.get(name, 0.0) + value * size
            samples[name] = samples.get(name, 0) + size
    return {name: _mean(total, samples[name]) for name, total in totals.items()}


def _rows(
    ranks: Exchange | None, where: str, data: object, figures: Callable[[Any], dict[str, float]]
) -> Sequence[tuple[int, dict[str, float]]]:
    """Samples and figures of each batch, in order; of several ranks each computes its share, and all get all.

    Raises DomainError for no batch.
    """
    own = [(_size(batch), figures(batch)) for batch in _batches(where, data, ranks)]
    rows = own if ranks is None else in_turn(ranks, own)
    if not rows:
        raise DomainError(f"{where}: expected at least one batch, got none; an iterator is used up after one pass")
    return rows


def _batches(where: str, data: object, ranks: Exchange | None) -> Iterator[Any]:
    """The batches of a data set, of the first epoch of its batches, or as they are given; of ranks one in turn each.

    What has epochs is not iterated, so that its next epoch is what it was. Raises DomainError.
    """
    given: Any = cast(Any, data)
    if isinstance(data, Dataset):
        given = given.batches(BATCH)
    require_batches(where, given)
    epochs = isinstance(data, Dataset | Epochs)
    if ranks is None:
        return cast(Iterator[Any], given.epoch(0) if epochs else iter(given))
    own = (ranks.rank,)
    if epochs:
        return cast(Iterator[Any], given.share(ranks.size, own, rest=True).epoch(0))
    return of_groups(iter(given), ranks.size, own, rest=True)


def predicted(forward: Callable[[Any], Any], inputs: Any, batch: int) -> Any:
    """What a model gives for inputs of any length, computed in batches; arrays in place of its Vars.

    Raises DomainError for inputs of different lengths, ShapeError for outputs that are not one per sample.
    """
    n = _length(inputs)
    if n <= batch:
        return _copied(forward(inputs), n)
    parts = list[Any]()
    for start in range(0, n, batch):
        part = _slice(inputs, start, batch)
        parts.append(_copied(forward(part), min(batch, n - start)))
    columns = {where: [_leaves(part)[where] for part in parts] for where in _leaves(parts[0])}
    return map_batch(lambda where, leaf: np.concatenate(columns[where]), parts[0])


def _copied(outputs: Any, n: int) -> Any:
    """The outputs as arrays of the caller's own, each of ``n`` samples."""

    def copied(where: str, array: Array) -> Array:
        if array.shape[:1] != (n,):
            raise ShapeError(
                f"predict: {where.replace('batch', 'output', 1)}: expected {n} samples along the first axis, got shape "
                f"{array.shape}; use evaluate for figures of a whole batch"
            )
        return array.copy()

    return map_batch(copied, outputs) if outputs.__class__ is not np.ndarray else copied("batch", outputs)


def _leaves(outputs: Any) -> dict[str, Array]:
    found = dict[str, Array]()
    map_batch(found.__setitem__, outputs)
    return found


def _slice(inputs: Any, start: int, batch: int) -> Any:
    return map_batch(lambda where, array: np.asarray(array)[start : start + batch], inputs)


def _length(inputs: Any) -> int:
    if inputs.__class__ is np.ndarray and inputs.ndim:
        return len(inputs)
    shapes = [np.shape(array) for array in batch_arrays(inputs)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or None in lengths:
        raise DomainError(f"predict: argument 'inputs': expected arrays of as many samples, got shapes {shapes}")
    return cast(int, lengths.pop())


def _weighed(forwards: Forwards, where: str, data: object, metric: Callable[[Any, Any], Any], model: Model) -> float:
    """The mean of ``metric(outputs, batch)`` over samples."""
    forward = forwards.model(model)

    def figure(batch: Any) -> dict[str, float]:
        return {"metric": float(metric(forward(_inputs(batch)), batch))}

    return _means(forwards.ranks, where, data, figure)["metric"]


def _share_of_right(outputs: Any, batch: Any) -> float:
    """The share of samples whose label has the largest output."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:  # pyright: ignore[reportUnknownArgumentType]
        got = f"{len(list(batch_arrays(batch)))} arrays"
        raise DomainError(f"evaluate: argument 'data': expected inputs and labels, got {got}")
    chosen, labels = outputs.argmax(axis=-1), np.asarray(cast(Any, batch[1]))  # pyright: ignore[reportUnknownArgumentType]
    return int(np.count_nonzero(chosen == labels)) / labels.size


def _inputs(batch: Any) -> Any:
    """What a model takes of a batch: the first of several parts in order, else all of it."""
    return cast(Any, batch[0]) if isinstance(batch, tuple | list) else batch


def _size(batch: Any) -> int:
    """How many samples a batch has: the length of its first array; 1 for a number."""
    shape = np.shape(next(batch_arrays(batch), 0.0))
    return shape[0] if shape else 1


def _mean(total: float, samples: int) -> float:
    return total / samples if samples else float("nan")


def _required(model: Model | None, what: str) -> Model:
    if model is None:
        raise DomainError(f"evaluate: argument 'model': expected model(p, x) for {what}, got None")
    return model
