"""JAX: one jitted function with donated buffers; numpy batches go straight in, the fastest way there is."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .jax_models import LOSSES, turned
from .models import LEARNING_RATE, Batch, Model, Params

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def loss_of(params: Any, batch: Any, *, model: Model) -> Any:
    """The loss of a batch."""
    return LOSSES[type(model)](model, params, *batch)


def adam(params: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    """Adam as PyTorch has it."""
    m, v, t = state
    t = t + 1
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)
    rate, root = LEARNING_RATE / (1 - BETA1**t), 1 / jnp.sqrt(1 - BETA2**t)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) * root + EPS), params, m, v)
    return params, (m, v, t)


@partial(jax.jit, donate_argnums=(0, 1), static_argnames="model")
def train(params: Any, state: Any, batch: Any, *, model: Model) -> tuple[Any, Any, Any]:
    """One step: the loss, the new parameters, the new state."""
    value, grads = jax.value_and_grad(loss_of)(params, batch, model=model)
    return value, *adam(params, grads, state)


def make(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """A training step that returns its loss. XLA takes its threads from the process's cores and XLA_FLAGS."""
    current: Any = {name: jnp.array(array) for name, array in turned(model, params).items()}
    zeros = partial(jax.tree.map, jnp.zeros_like)
    state: Any = (zeros(current), zeros(current), jnp.float32(0))

    def step(batch: Batch) -> float:
        nonlocal current, state
        loss, current, state = train(current, state, batch, model=model)
        return float(loss)

    return step


def make_synchronous(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """A step that runs in the calling thread: no hand-over to another, which counts where steps are short."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return make(model, params, threads)
