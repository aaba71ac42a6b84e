"""The living definition of the bits of attention, one row after the other.

As in `reference`, nothing here is shared with the kernels.
"""

from decimal import Decimal, localcontext

import numpy as np

from ....arrays import Array
from ...numerics.math.reference import exp
from ...numerics.math.reference_sums import matmul, row_max, row_sum


def attention_weights(
    query: Array, key: Array, mask: Array | None = None, is_causal: bool = False, scale: float | None = None
) -> Array:
    """The softmax of ``(query @ keyᵀ) * scale`` over the keys that are kept; the others have weight +0."""
    real, features = query.dtype.type, query.shape[-1]
    with np.errstate(all="ignore"):
        scores = matmul(query, key.swapaxes(-1, -2)) * real(default_scale(features) if scale is None else scale)
    kept = np.ones(scores.shape, np.bool_) if mask is None else np.broadcast_to(mask, scores.shape)
    out: Array = np.zeros_like(scores)
    for at in np.ndindex(scores.shape[:-1]):
        seen = [bool(k) and (j <= at[-1] or not is_causal) for j, k in enumerate(kept[at])]
        out[at] = masked_softmax(scores[at], np.array(seen, np.bool_))
    return out


def masked_softmax(row: Array, kept: Array) -> Array:
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
) -> Array:
    """The contraction of weights and values."""
    return matmul(attention_weights(query, key, mask, is_causal, scale), value)


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
    *,
    num_heads: int,
    is_causal: bool = False,
) -> Array:
    """Attention of each head on its own columns of the projections, the heads' results side by side."""
    source = x if context is None else context
    query, key, value = _projected(x, wq, bq), _projected(source, wk, bk), _projected(source, wv, bv)
    width = wq.shape[1] // num_heads
    joined = np.empty_like(query)
    for head in range(num_heads):
        columns = slice(head * width, (head + 1) * width)
        parts = (query[..., columns], key[..., columns], value[..., columns])
        joined[..., columns] = scaled_dot_product_attention(*parts, mask, is_causal)
    return _projected(joined, wo, bo)


def _projected(x: Array, w: Array, b: Array | None) -> Array:
    with np.errstate(all="ignore"):
        return matmul(x, w) if b is None else matmul(x, w) + b
