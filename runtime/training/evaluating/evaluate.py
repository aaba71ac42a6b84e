"""Figures of a model over batches, each of which counts by its samples."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from ....tape import DomainError
from ...data import Dataset, Epochs
from ...data.shares import of_groups
from ...ranks.exchange import Exchange
from ...ranks.rows import in_turn
from ...step.batch import batch_arrays
from ..batch_stream import require_batches
from .forwards import Forwards, Model

Metric = str | Callable[[Any, Any], Any]
"""A name, or ``metric(outputs, batch) -> number``."""

BATCH = 256
"""Samples at once, where nobody says how many."""


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
