"""JAX: one jitted function with donated buffers; numpy batches go straight in, the fastest way there is."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .models import LEARNING_RATE, Array, Batch, Model

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def loss_of(params: Any, batch: Any, *, loss: str) -> Any:
    """The loss of a batch; weights are (in, out), JAX's custom and the faster way here."""
    x, targets = batch
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    out = x @ weight + bias
    if loss == "mse":
        return jnp.mean((out - targets) ** 2)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), targets[:, None], axis=1))


def adam(params: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    """Adam as PyTorch has it."""
    m, v, t = state
    t = t + 1
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)
    rate, root = LEARNING_RATE / (1 - BETA1**t), 1 / jnp.sqrt(1 - BETA2**t)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) * root + EPS), params, m, v)
    return params, (m, v, t)


@partial(jax.jit, donate_argnums=(0, 1), static_argnames="loss")
def train(params: Any, state: Any, batch: Any, *, loss: str) -> tuple[Any, Any, Any]:
    """One step: the loss, the new parameters, the new state."""
    value, grads = jax.value_and_grad(loss_of)(params, batch, loss=loss)
    return value, *adam(params, grads, state)


def make(model: Model, params: list[tuple[Array, Array]], threads: int) -> Callable[[Batch], float]:
    """A training step that returns its loss. XLA takes its threads from the process's cores and XLA_FLAGS."""
    current: Any = [(jnp.array(weight.T), jnp.array(bias)) for weight, bias in params]
    zeros = partial(jax.tree.map, jnp.zeros_like)
    state: Any = (zeros(current), zeros(current), jnp.float32(0))

    def step(batch: Batch) -> float:
        nonlocal current, state
        loss, current, state = train(current, state, batch, loss=model.loss)
        return float(loss)

    return step


def make_synchronous(model: Model, params: list[tuple[Array, Array]], threads: int) -> Callable[[Batch], float]:
    """A step that runs in the calling thread: no hand-over to another, which counts where steps are short."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return make(model, params, threads)
