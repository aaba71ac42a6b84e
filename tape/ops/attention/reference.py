"""The living definition of the bits of attention, one row after the other.

As in `reference`, nothing here is shared with the kernels.
"""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference.functions import exp, tanh
from ...numerics.math.reference.sums import matmul, row_max, row_sum


def attention_weights(
    query: Array, key: Array, mask: Array | None = None, is_causal: bool = False, scale: float | None = None
) -> Array:
    """The softmax of ``(query @ keyᵀ) * scale`` over the keys that are kept; the others have weight +0."""
    return masked_softmax(_scores(query, key, scale), mask, is_causal)


def _scores(query: Array, key: Array, scale: float | None) -> Array:
    with np.errstate(all="ignore"):
        products = matmul(query, key.swapaxes(-1, -2))
        return np.asarray(products * query.dtype.type(default_scale(query.shape[-1]) if scale is None else scale))


def masked_softmax(scores: Array, mask: Array | None = None, is_causal: bool = False) -> Array:
    """Row by row over what is kept; the others have weight +0."""
    kept = np.ones(scores.shape, np.bool_) if mask is None else np.broadcast_to(mask, scores.shape)
    out: Array = np.zeros_like(scores)
    for at in np.ndindex(scores.shape[:-1]):
        seen = [bool(k) and (j <= at[-1] or not is_causal) for j, k in enumerate(kept[at])]
        out[at] = _softmax_of(scores[at], np.array(seen, np.bool_))
    return out


def _softmax_of(row: Array, kept: Array) -> Array:
    """``exp(x - m) / s`` where it is kept: the maximum over what is kept, +0 in the sum for what is not."""
    numerators = np.zeros_like(row)
    if kept.any():
        numerators[kept] = exp(row[kept] - row_max(row[kept]))
    weights = np.zeros_like(row)
    weights[kept] = numerators[kept] / row_sum(numerators)
    return weights


def default_scale(features: int) -> float:
    """``1 / sqrt(features)``, rounded to nearest from 60 decimals; 1 for none."""
    with localcontext() as context:
        context.prec = 60
        return float(Decimal(1) / Decimal(max(features, 1)).sqrt())


def scaled_softmax_grad(g: Array, weights: Array, scale: float) -> Array:
    """``w * (g - sum(g * w)) * scale`` along the last axis."""
    out = np.empty_like(g)
    for at in np.ndindex(g.shape[:-1]):
        total = row_sum(g[at] * weights[at])
        out[at] = weights[at] * (g[at] - total) * g.dtype.type(scale)
    return out


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
) -> Array:
    """The contraction of weights and values; the cap before the mask, as the scores are made."""
    scores, real = _scores(query, key, scale), query.dtype.type
    if softcap is not None:
        with np.errstate(all="ignore"):
            scores = np.asarray(tanh(scores * real(1 / softcap)) * real(softcap))
    kept = np.ones(scores.shape, np.bool_)
    if mask is not None and mask.dtype == np.bool_:
        kept = kept & mask
    elif mask is not None:
        with np.errstate(all="ignore"):
            scores = scores + np.broadcast_to(mask, scores.shape)
        kept = kept & (mask != -np.inf)
    if window is not None:
        queries, keys = (np.arange(n, dtype=np.int64) for n in scores.shape[-2:])
        apart: Any = np.subtract.outer(queries, keys)
        kept = kept & np.asarray(abs(apart) < window)
    return matmul(masked_softmax(scores, kept, is_causal), value)


def multi_head_attention(
    x: Array,
    wq: Array,
    wk: Array,
    wv: Array,
    wo: Array,
    mask: Array | None = None,
    bq: Array | None = None,
    bk: Array | None = None,
    bv: Array | None = None,
    bo: Array | None = None,
    context: Array | None = None,
    value: Array | None = None,
    key_mask: Array | None = None,
    *,
    num_heads: int,
    is_causal: bool = False,
    num_kv_heads: int | None = None,
    softcap: float | None = None,
    window: int | None = None,
) -> Array:
    """Attention of each head on its own columns of the projections, the heads' results side by side."""
    source = x if context is None else context
    query, key = _projected(x, wq, bq), _projected(source, wk, bk)
    values = _projected(source if value is None else value, wv, bv)
    width, group = wq.shape[1] // num_heads, num_heads // (num_kv_heads or num_heads)
    joined = np.empty_like(query)
    for head in range(num_heads):
        columns, shared = (slice(h * width, (h + 1) * width) for h in (head, head // group))
        parts = (query[..., columns], key[..., shared], values[..., shared])
        kept = _of_head(mask, head, x.ndim)
        if key_mask is not None:
            hidden = key_mask[..., None, :]
            kept = hidden if kept is None else kept & hidden if kept.dtype == np.bool_ else _hide(kept, hidden)
        joined[..., columns] = scaled_dot_product_attention(*parts, kept, is_causal, None, softcap, window)
    return _projected(joined, wo, bo)


def _of_head(mask: Array | None, head: int, rank: int) -> Array | None:
    """The mask of one head, of a mask that has an axis for the heads."""
    if mask is None or mask.ndim <= rank:
        return mask
    return np.asarray(mask[..., head if mask.shape[-3] > 1 else 0, :, :])


def _hide(added: Array, kept: Array) -> Array:
    return np.asarray(np.where(kept, added, added.dtype.type(-np.inf)))


def _projected(x: Array, w: Array, b: Array | None) -> Array:
    with np.errstate(all="ignore"):
        return matmul(x, w) if b is None else matmul(x, w) + b
