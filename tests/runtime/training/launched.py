"""A model, its data, loss functions and the state that some of them have, for runs in launches."""

from typing import Any

import numpy as np

from dgrr.runtime import Dataset
from dgrr.tape import nn, ops

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RNG = np.random.default_rng(8)
X, LABELS = RNG.standard_normal((130, 3)).astype(np.float32), RNG.integers(0, 2, 130)
DATA = Dataset(X, LABELS)
NAMED = Dataset(x=X, y=LABELS)
PAIRS = [(X[i : i + 5], LABELS[i : i + 5]) for i in range(0, 130, 5)]


def plain(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def metrics(p: Any, batch: Any) -> Any:
    loss = plain(p, batch)
    return loss, {"twice": loss * 2, "ones": (batch[1] == 1).astype(np.float32).mean()}


def of_types(p: Any, batch: Any) -> Any:
    """With an infinity or NaN now and then, and a zero with its sign."""
    loss, ones = plain(p, batch), ops.reduce_sum((batch[1] == 1).astype(np.float64))
    whole = ones.astype(np.int64)
    odd = {"infinity": 1.0 / (ones - 1.0), "nan": 0.0 * ones / (ones - 1.0), "zero": ones * -0.0}
    return loss, {"count": whole, "any": whole > 2, **odd, "f32": loss}


def named(p: Any, batch: Any) -> Any:
    return plain(p, (batch["x"], batch["y"]))


def of_context(p: Any, batch: Any, ctx: Any) -> Any:
    inputs, labels = batch
    if ctx.training:
        ctx.update("mean", ctx.state["mean"] * 0.9 + ops.reduce_mean(inputs, 0) * 0.1)
        inputs = ctx.random.dropout(inputs, 0.5)
    share = ops.cast(ctx.step, np.float32) / 100
    return plain(p, (inputs - ctx.state["mean"], labels)) * share, ctx.state, {"share": share}


def one_array(p: Any, batch: Any) -> Any:
    return plain(p, (batch, np.zeros(len(batch.shape) * 0 + batch.shape[0], np.int64)))


STATE: dict[str, Any] = {"model_state": {"mean": np.zeros(3, np.float32)}, "seed": 5}
