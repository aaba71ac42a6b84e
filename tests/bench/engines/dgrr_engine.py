"""dgrr: a captured step, and what its gradients cost."""

from collections.abc import Callable
from typing import Any

from dgrr.runtime import Adam, capture
from dgrr.tape import AnyVar, nn, ops, set_threads

from .models import LEARNING_RATE, Array, Batch, Model


def captured(model: Model, params: list[tuple[Array, Array]]) -> Any:
    """The captured step of a model with Adam."""
    layers: list[nn.Layer] = []
    for weight, _ in params:
        layers += [nn.ReLU()] * bool(layers) + [nn.Linear(weight.shape[1], weight.shape[0])]
    network = nn.Sequential(*layers)
    loss = {"mse": ops.mse_loss, "cross entropy": ops.cross_entropy}[model.loss]

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        inputs, targets = batch
        return loss(network(p, inputs), targets)

    flat = [array for layer in params for array in layer]
    named = dict(zip(network.parameters(), flat, strict=True))
    return capture(loss_fn, named, Adam(lr=LEARNING_RATE), model.batches()[0])


def make(model: Model, params: list[tuple[Array, Array]], threads: int) -> Callable[[Batch], float]:
    """A training step that returns its loss."""
    set_threads(threads)
    step = captured(model, params)
    return lambda batch: float(step(batch))


def make_leaves(model: Model, params: list[tuple[Array, Array]], threads: int) -> Callable[[Batch], float]:
    """The gradients of the parameters alone, without an update. No loss is read."""
    set_threads(threads)
    return _without_loss(captured(model, params).gradients)


def make_dense(model: Model, params: list[tuple[Array, Array]], threads: int) -> Callable[[Batch], float]:
    """The gradients of every value, without an update. No loss is read."""
    set_threads(threads)
    return _without_loss(captured(model, params).grads)


def _without_loss(call: Callable[[Batch], Any]) -> Callable[[Batch], float]:
    def step(batch: Batch) -> float:
        call(batch)
        return 0.0

    return step
