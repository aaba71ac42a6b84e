"""Small models on the handwritten digits: a perceptron, a convolution with statistics of batches, a transformer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime.data import Dataset, digits
from dgrr.tape import nn, ops

SEED, BATCH = 5, 3
SYMBOLS, TOKENS, WIDTH = 17, 8, 6

MLP = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))
CNN = nn.Sequential(
    nn.Conv(1, 3, (3, 3), padding=1),
    nn.BatchNorm(3),
    nn.ReLU(),
    nn.MaxPool((4, 4)),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(12, 10),
)
BLOCK = nn.Sequential(nn.TransformerBlock(WIDTH, 2, 8, dropout=0.1, causal=True), nn.Linear(WIDTH, SYMBOLS))


def mlp_loss(p: Any, batch: Any) -> Any:
    logits = MLP(p, batch[0])
    right = ops.cast(ops.argmax(logits, axis=-1) == batch[1], "float64").mean()
    return ops.cross_entropy(logits, batch[1]), {"accuracy": right}


def cnn_loss(p: Any, batch: Any, ctx: Any) -> Any:
    return ops.cross_entropy(CNN(p, batch[0].reshape((-1, 1, 8, 8)), ctx), batch[1]), ctx.state


def transformer_loss(p: Any, batch: Any, ctx: Any) -> Any:
    logits = BLOCK(p, ops.embedding(p["embedding"], batch[0]), ctx)
    return ops.cross_entropy(logits.reshape((-1, SYMBOLS)), batch[1].reshape((-1,)))


@dataclass(frozen=True)
class Model:
    """What is trained, on what."""

    loss_fn: Callable[..., Any]
    params: dict[str, Any]
    model_state: dict[str, Any]
    data: Dataset[Any]


def model(name: str, dtype: str) -> Model:
    """One of the three in float32 or float64."""
    return MODELS[name](np.dtype(dtype))


def mlp(dtype: Any) -> Model:
    return Model(mlp_loss, cast(MLP.init(SEED), dtype), {}, images(dtype))


def cnn(dtype: Any) -> Model:
    return Model(cnn_loss, cast(CNN.init(SEED), dtype), cast(CNN.init_state(), dtype), images(dtype))


def transformer(dtype: Any) -> Model:
    pixels = (digits()[0].take(66)[:][0] * 16).astype(np.int64)[:, 20 : 21 + TOKENS]
    params = {"embedding": nn.Embedding(SYMBOLS, WIDTH).init(SEED)["weight"], **BLOCK.init(SEED)}
    return Model(transformer_loss, cast(params, dtype), {}, Dataset(pixels[:, :-1], pixels[:, 1:]))


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer}


def images(dtype: Any) -> Dataset[Any]:
    pixels, labels = digits()[0].take(66)[:]
    return Dataset(pixels.astype(dtype), labels)


def cast(arrays: Any, dtype: Any) -> dict[str, Any]:
    return {name: a.astype(dtype) if a.dtype.kind == "f" else a for name, a in arrays.items()}
