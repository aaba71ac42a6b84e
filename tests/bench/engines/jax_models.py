"""The networks in JAX, as XLA runs them fastest on CPUs: weights (in, out), images with their channels last."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .models import Array, Cnn, Mlp, Model, Params, Transformer

IMAGES = ("NHWC", "HWIO", "NHWC")
EPS = 1e-5
"""Of the norms."""


def mlp_loss(model: Mlp, p: Any, x: Any, targets: Any) -> Any:
    for layer in model.layers[:-1]:
        x = jax.nn.relu(linear(p, layer, x))
    out = linear(p, model.layers[-1], x)
    return jnp.mean((out - targets) ** 2) if model.loss == "mse" else cross_entropy(out, targets)


def cnn_loss(model: Cnn, p: Any, x: Any, labels: Any) -> Any:
    x = jnp.moveaxis(x, 1, -1)
    for layer in model.layers:
        weight, bias = p[f"{layer}.weight"], p[f"{layer}.bias"]
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=IMAGES) + bias)
        if model.pooling == "max":
            x = largest(x)
    seen = x.reshape(len(x), -1) if model.pooling == "max" else x.mean((1, 2))
    return cross_entropy(linear(p, "linear", seen), labels)


def largest(x: Any) -> Any:
    """2x2 maxima, one axis after the other; `jax.lax.reduce_window` has a gradient several times as slow."""
    of_rows = jnp.maximum(x[:, ::2], x[:, 1::2])
    return jnp.maximum(of_rows[:, :, ::2], of_rows[:, :, 1::2])


def transformer_loss(model: Transformer, p: Any, read: Any, expected: Any) -> Any:
    x = p["embedding"][read] + p["positions"]
    for block in model.layers:
        x = x + attention(model, p, block, norm(p, f"{block}.norm1", x))
        inner = jax.nn.gelu(linear(p, f"{block}.linear1", norm(p, f"{block}.norm2", x)), approximate=False)
        x = x + linear(p, f"{block}.linear2", inner)
    return cross_entropy(linear(p, "linear", norm(p, "norm", x)), expected)


def attention(model: Transformer, p: Any, block: str, x: Any) -> Any:
    batch, tokens, width = x.shape
    heads = linear(p, f"{block}.qkv", x).reshape(batch, tokens, 3, model.heads, -1)
    q, k, v = (heads[:, :, i] for i in range(3))
    scores = jnp.einsum("bnhd,bmhd->bhnm", q, k) * (width // model.heads) ** -0.5
    seen = jnp.where(jnp.tri(tokens, dtype=bool), scores, -jnp.inf)
    mixed = jnp.einsum("bhnm,bmhd->bnhd", jax.nn.softmax(seen), v)
    return linear(p, f"{block}.out", mixed.reshape(x.shape))


def linear(p: Any, layer: str, x: Any) -> Any:
    return x @ p[f"{layer}.weight"] + p[f"{layer}.bias"]


def norm(p: Any, layer: str, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + EPS)
    return scaled * p[f"{layer}.weight"] + p[f"{layer}.bias"]


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1))


LOSSES: dict[type[Model], Callable[..., Any]] = {
    Mlp: mlp_loss,
    Cnn: cnn_loss,
    Transformer: transformer_loss,
}


def turned(model: Model, params: Params) -> Params:
    """Start values in JAX's layouts."""
    turned = {name: _turned(name, array) for name, array in params.items()}
    if isinstance(model, Cnn):
        turned["linear.weight"] = _channels_last(turned["linear.weight"], model)
    return turned


def _turned(name: str, array: Array) -> Array:
    if not name.endswith(".weight") or array.ndim == 1:
        return array
    return array.T if array.ndim == 2 else array.transpose(2, 3, 1, 0)


def _channels_last(weight: Array, model: Cnn) -> Array:
    """The weight (in, out) of a layer that sees pixels (channel, y, x) as one that sees (y, x, channel)."""
    seen = weight.reshape(model.channels[-1], model.left, model.left, -1)
    return np.moveaxis(seen, 0, 2).reshape(weight.shape)
