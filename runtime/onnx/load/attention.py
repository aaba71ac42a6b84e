"""Attention as one operator, and positions by rotation."""

from math import sqrt
from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ....tape import AnyVar, ops
from ....tape.values.dtypes import boolean
from .operator import Operator, imports

BEFORE_CAP, CAPPED, MASKED, WEIGHTS = range(4)
"""Which scores the fourth output holds."""


def _heads(n: Operator, x: AnyVar, count: int | None) -> AnyVar:
    """(batch, heads, places, features), of that or of (batch, places, heads · features)."""
    if len(x.shape) == 4:
        return x
    if count is None:
        raise n.error(f"expected a number of heads for three axes, got none for shape {tuple(x.shape)}")
    batch, places, features = x.shape
    return ops.permute(ops.reshape(x, (batch, places, count, features // count)), (0, 2, 1, 3))


def _near(n: Operator, queries: int, keys: int) -> Array | None:
    """Which keys a query may see by its place: (queries, keys), or one for each of a batch; None for all."""
    past = tuple(n.var(4).shape)[2] if n.has(4) else 0
    lengths = n.constant(6).reshape(-1, 1, 1, 1) if n.has(6) else None
    first = past if lengths is None or n.has(4) else lengths - queries
    ahead = np.arange(keys) - (np.arange(queries)[:, None] + first)
    left, right = n.get("left_window_size", -1), n.get("right_window_size", -1)
    seen = np.ones((queries, keys), np.bool_)
    if n.get("is_causal", 0):
        seen = seen & (ahead <= 0)
    seen = seen if left < 0 else seen & (-ahead <= left)
    seen = seen if right < 0 else seen & (ahead <= right)
    seen = seen if lengths is None else seen & (np.arange(keys) < lengths)
    return None if seen.all() else seen


def _masks(n: Operator, queries: int, keys: int) -> tuple[AnyVar | None, AnyVar | None]:
    """What is added to the scores, and which keys are seen: None for nothing, and for all."""
    near = _near(n, queries, keys)
    seen = None if near is None else n.on_tape(near)
    if not n.has(3):
        return None, seen
    mask = n.var(3)
    missing = keys - tuple(mask.shape)[-1]
    if missing:
        widths = ((0, 0),) * (len(mask.shape) - 1) + ((0, missing),)
        mask = ops.pad(mask, widths, value=False if mask.dtype == boolean.dtype else -np.inf)
    given = mask if mask.dtype == boolean.dtype else mask > -np.inf
    return None if mask.dtype == boolean.dtype else mask, given if seen is None else given & seen


@imports("Attention")
def _attention(n: Operator) -> Any:
    query, key, value = (
        _heads(n, n.var(place), n.get(f"{which}_num_heads", None)) for place, which in enumerate(("q", "kv", "kv"))
    )
    present = [ops.append(n.var(place), x, 2) if n.has(place) else x for place, x in ((4, key), (5, value))]
    shared = tuple(query.shape)[1] // tuple(key.shape)[1]
    key, value = (ops.repeat(x, shared, 1) if shared > 1 else x for x in present)
    scale, cap = n.get("scale", None), n.get("softcap", 0.0)
    factor = sqrt(1 / sqrt(tuple(query.shape)[-1]) if scale is None else scale)
    scores = ops.matmul(query * factor, ops.swapaxes(key * factor, -1, -2))
    mode = n.get("qk_matmul_output_mode", BEFORE_CAP)
    if n.outputs > 3 and cap and mode == BEFORE_CAP:
        raise n.error("expected scores behind the cap to be asked for, got those before it")
    if n.get("softmax_precision", 1) not in (1, 11):
        raise n.error("expected a softmax of float32 or float64, got another type")
    scores = ops.tanh(scores / cap) * cap if cap else scores
    bias, seen = _masks(n, *tuple(scores.shape)[-2:])
    biased = scores if bias is None else scores + bias
    sizes = tuple(biased.shape)
    seen = None if seen is None else ops.broadcast_to(seen, sizes)
    weights = ops.softmax(biased, -1) if seen is None else ops.masked_softmax(biased, seen)
    hidden = biased if seen is None else cast(Any, ops.where)(seen, biased, -np.inf)
    y = ops.matmul(weights, value)
    if len(n.var(0).shape) == 3:
        y = ops.flatten(ops.permute(y, (0, 2, 1, 3)), 2)
    return y, *present, {BEFORE_CAP: scores, CAPPED: scores, MASKED: hidden, WEIGHTS: weights}[mode]


@imports("RotaryEmbedding", constants=(1, 2))
def _rotary_embedding(n: Operator) -> Any:
    given, count = n.var(0), n.get("num_heads", 0)
    x = _heads(n, given, count or None)
    features = n.get("rotary_embedding_dim", 0) or tuple(x.shape)[-1]
    cos, sin = (ops.take(n.var(place), n.var(3)) if n.has(3) else n.var(place) for place in (1, 2))
    cos, sin = cos[:, None], sin[:, None]
    turned, rest = x[..., :features], x[..., features:]
    halves = (
        (turned[..., ::2], turned[..., 1::2])
        if n.get("interleaved", 0)
        else (turned[..., : features // 2], turned[..., features // 2 :])
    )
    real, imaginary = halves[0] * cos - halves[1] * sin, halves[0] * sin + halves[1] * cos
    if n.get("interleaved", 0):
        made = ops.reshape(ops.stack([real, imaginary], -1), tuple(turned.shape))
    else:
        made = ops.append(real, imaginary, -1)
    made = ops.append(made, rest, -1)
    return made if len(given.shape) == 4 else ops.flatten(ops.permute(made, (0, 2, 1, 3)), 2)
