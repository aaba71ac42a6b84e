"""A small language model of JAX, with a place for every mistake that the tests plant."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from dgrr.trace import record_jax

jax: Any = pytest.importorskip("jax", reason="these tests need JAX: pip install -e '.[test,jax]'")
jnp, tree = jax.numpy, jax.tree

WIDTH, LENGTH, WORDS = 8, 6, 12
RIGHT: dict[str, Any] = {
    "base": 10000.0,
    "scale": 0.35,
    "masked": 0,
    "eps": 1e-5,
    "gelu": True,
    "shift": 1,
    "mean": True,
    "clip": 0.5,
    "residual": 1.0,
    "drop": 0.1,
}


def start() -> Any:
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal(shape).astype("f") / 4)

    names = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "up": (WIDTH, 16), "down": (16, WIDTH)}
    return {
        "words": weight(WORDS, WIDTH),
        "blocks": {name: weight(2, *shape) for name, shape in names.items()},
        "out": weight(WIDTH, WORDS),
    }


def norm(x: Any, eps: float) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + eps)


def attend(p: Any, x: Any, how: Any) -> Any:
    scores = (x @ p["q"]) @ (x @ p["k"]).T * how["scale"]
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH)), how["masked"])
    return jax.nn.softmax(jnp.where(mask > 0, scores, -1e9)) @ (x @ p["v"])


def block(x: Any, p: Any, how: Any) -> Any:
    with jax.named_scope("attention"):
        x = x * how["residual"] + attend(p, norm(x, how["eps"]), how)
    with jax.named_scope("mlp"):
        return x + jax.nn.gelu(norm(x, how["eps"]) @ p["up"], approximate=how["gelu"]) @ p["down"]


def loss_fn(params: Any, words: Any, key: Any, how: Any) -> Any:
    x = params["words"][words[:-1]]
    x = x + jnp.sin(jnp.arange(LENGTH)[:, None] / how["base"] ** (jnp.arange(WIDTH) / WIDTH))
    x = x * jax.random.bernoulli(key, 1 - how["drop"], x.shape)
    x, _ = jax.lax.scan(lambda x, p: (jax.checkpoint(partial(block, how=how))(x, p), None), x, params["blocks"])
    wanted = words[1:] if how["shift"] else words[:-1]
    losses = -jnp.take_along_axis(jax.nn.log_softmax(x @ params["out"]), wanted[:, None], 1)
    return losses.mean() if how["mean"] else losses.sum()


def step_of(how: Any) -> Any:
    """The step, jitted, with these mistakes."""

    @jax.jit
    def step(params: Any, words: Any, key: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_fn)(params, words, key, how)
        size = jnp.sqrt(sum(jnp.sum(g**2) for g in tree.leaves(grads)))
        grads = tree.map(lambda g: g * jnp.minimum(1, how["clip"] / size), grads)
        return tree.map(lambda p, g: p - 0.1 * g, params, grads), loss, grads

    return step


def train(path: Any, **mistakes: Any) -> None:
    """One step."""
    params, words = start(), np.random.default_rng(0).integers(0, WORDS, LENGTH + 1)
    with record_jax(params, path, rule="sgd@1", hyper={"lr": 0.1}, level="op") as run:
        params, loss, grads = run.call(step_of({**RIGHT, **mistakes}), params, words, jax.random.key(0))
        run.step(params, grads, loss, batch=words)
