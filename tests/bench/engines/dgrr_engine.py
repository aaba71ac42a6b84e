"""dgrr: a captured step, what its gradients cost, and where its time goes."""

from collections.abc import Callable
from typing import Any

from dgrr.runtime import Adam, CapturedStep, capture
from dgrr.tape import set_threads

from .dgrr_models import loss_fn_of, renamed
from .models import LEARNING_RATE, Batch, Model, Params


def captured(model: Model, params: Params) -> CapturedStep:
    """The captured step of a model with Adam."""
    return capture(loss_fn_of(model), renamed(params), Adam(lr=LEARNING_RATE), model.batches()[0])


def make(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """A training step that returns its loss."""
    set_threads(threads)
    step = captured(model, params)
    return lambda batch: float(step(batch))


def make_leaves(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """The gradients of the parameters alone, without an update. No loss is read."""
    set_threads(threads)
    return _without_loss(captured(model, params).gradients)


def make_dense(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """The gradients of every value, without an update. No loss is read."""
    set_threads(threads)
    return _without_loss(captured(model, params).grads)


def _without_loss(call: Callable[[Batch], Any]) -> Callable[[Batch], float]:
    def step(batch: Batch) -> float:
        call(batch)
        return 0.0

    return step
