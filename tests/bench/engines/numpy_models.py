"""The networks' losses in numpy and float64: what every engine's first loss is held against."""

from collections.abc import Callable
from math import erf

import numpy as np

from .models import Array, Batch, Cnn, Mlp, Model, Params, Transformer

EPS = 1e-5
"""Of the norms."""


def first_loss(model: Model) -> float:
    """The loss of the first batch before training."""
    params = {name: array.astype(np.float64) for name, array in model.params().items()}
    return LOSSES[type(model)](model, params, model.batches()[0])


def mlp_loss(model: Mlp, p: Params, batch: Batch) -> float:
    x, targets = batch
    for layer in model.layers[:-1]:
        x = np.maximum(linear(p, layer, x), 0)
    out = linear(p, model.layers[-1], x)
    return float(np.mean((out - targets) ** 2)) if model.loss == "mse" else cross_entropy(out, targets)


def cnn_loss(model: Cnn, p: Params, batch: Batch) -> float:
    x, labels = batch
    for layer in model.layers:
        x = np.maximum(conv(x, p[f"{layer}.weight"]) + p[f"{layer}.bias"][:, None, None], 0)
        if model.pooling == "max":
            x = np.max([x[..., i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=0)
    seen = x.reshape(len(x), -1) if model.pooling == "max" else x.mean((2, 3))
    return cross_entropy(linear(p, "linear", seen), labels)


def conv(x: Array, weight: Array) -> Array:
    """The sum over the nine taps of what each adds to every pixel."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [(i, j, padded[:, :, i : i + height, j : j + width]) for i in range(3) for j in range(3)]
    y: Array = np.sum([np.einsum("nchw,oc->nohw", seen, weight[:, :, i, j]) for i, j, seen in taps], axis=0)
    return y


def transformer_loss(model: Transformer, p: Params, batch: Batch) -> float:
    read, expected = batch
    x = p["embedding"][read] + p["positions"]
    for block in model.layers:
        q, k, v = np.split(linear(p, f"{block}.qkv", norm(p, f"{block}.norm1", x)), 3, axis=-1)
        slices = np.split(np.arange(model.width), model.heads)
        heads = [attention(q[..., part], k[..., part], v[..., part]) for part in slices]
        x = x + linear(p, f"{block}.out", np.concatenate(heads, axis=-1))
        inner = linear(p, f"{block}.linear1", norm(p, f"{block}.norm2", x))
        x = x + linear(p, f"{block}.linear2", inner * (1 + np.vectorize(erf)(inner / np.sqrt(2))) / 2)
    logits = linear(p, "linear", norm(p, "norm", x))
    return cross_entropy(logits.reshape(-1, model.symbols), expected.reshape(-1))


def attention(q: Array, k: Array, v: Array) -> Array:
    """One head; no token sees a later one."""
    seen = np.tri(q.shape[1]) * np.exp(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2]))
    weighted: Array = seen / seen.sum(2, keepdims=True) @ v
    return weighted


def linear(p: Params, layer: str, x: Array) -> Array:
    y: Array = x @ p[f"{layer}.weight"].T + p[f"{layer}.bias"]
    return y


def norm(p: Params, layer: str, x: Array) -> Array:
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPS)
    y: Array = scaled * p[f"{layer}.weight"] + p[f"{layer}.bias"]
    return y


def cross_entropy(logits: Array, labels: Array) -> float:
    log_total = np.log(np.exp(logits).sum(axis=1))
    return float(np.mean(log_total - logits[np.arange(len(labels)), labels]))


LOSSES: dict[type[Model], Callable[..., float]] = {Mlp: mlp_loss, Cnn: cnn_loss, Transformer: transformer_loss}
