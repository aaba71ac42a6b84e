"""Rows of norms and attention."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .row import Arguments, Arrays, Attrs, Draw, Row


def eps(draw: Draw) -> float:
    return float(draw.one_of(1e-5, draw.real(1e-6, 0.1)))


def of_rows(*parameters: str) -> Arguments:
    """Rows of at least two elements, and parameters along them, which may be missing."""

    def arguments(draw: Draw) -> tuple[Arrays, Attrs]:
        shape = (*draw.shape((0, 3), (1, 4)), draw.integer(2, 40))
        given = {name: draw.optional(draw.normal(shape[-1])) for name in parameters}
        return {"x": draw.normal(*shape), **given}, {"eps": eps(draw)}

    return arguments


def of_channels(draw: Draw) -> tuple[Arrays, Attrs]:
    axis = draw.integer(0, 1)
    channels = draw.integer(1, 4)
    shape = (
        [draw.integer(2, 4), channels, *draw.shape((0, 3), (1, 4))] if axis else [channels, *draw.shape((1, 3), (2, 4))]
    )
    parameters = {name: draw.optional(draw.normal(channels)) for name in ("weight", "bias")}
    return {"x": draw.normal(*shape), **parameters}, {"eps": eps(draw), "channel_axis": axis}


def of_known_channels(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = of_channels(draw)
    x = arrays["x"]
    assert x is not None
    channels = x.shape[attrs["channel_axis"]]
    return {**arrays, "mean": draw.normal(channels), "var": draw.positive(channels)}, attrs


def of_groups(draw: Draw) -> tuple[Arrays, Attrs]:
    groups, size = draw.integers(2, 1, 3)
    weight = draw.optional(draw.normal(groups * size))
    bias = None if weight is None else draw.optional(draw.normal(groups * size))
    x = draw.normal(draw.integer(1, 3), groups * size, *draw.shape((1, 3), (2, 4)))
    return {"x": x, "weight": weight, "bias": bias}, {"num_groups": groups, "eps": eps(draw)}


def of_instances(draw: Draw) -> tuple[Arrays, Attrs]:
    channels = draw.integer(1, 4)
    x = draw.normal(draw.integer(1, 3), channels, *draw.shape((1, 3), (2, 4)))
    parameters = {name: draw.optional(draw.normal(channels)) for name in ("weight", "bias")}
    return {"x": x, **parameters}, {"eps": eps(draw)}


def seen(draw: Draw, queries: int, keys: int) -> Any:
    """Which keys a query may see: its own place and the first always, since we decide that seeing none means zeros."""
    mask = draw.mask(queries, keys) | np.eye(queries, keys, dtype=np.bool_)
    mask[:, 0] = True
    return draw.optional(mask)


def masked(draw: Draw, batch: tuple[int, ...], queries: int, keys: int) -> Any:
    """A mask of bools for all, or one that is added, perhaps for each of a batch."""
    added = draw.normal(*draw.one_of((), batch), draw.one_of(1, queries), keys)
    return added if draw.one_of(False, True) else seen(draw, queries, keys)


def limited(draw: Draw, queries: int, keys: int) -> Attrs:
    """A cap of the scores, and a window: none where a query would see no key."""
    window = draw.one_of(None, draw.integer(1, 4)) if queries <= keys else None
    return {"softcap": draw.one_of(None, draw.real(0.5, 5.0)), "window": window}


def scored(draw: Draw) -> tuple[Arrays, Attrs]:
    batch = draw.shape((0, 2), (1, 3))
    queries, keys = draw.integers(2, 1, 6)
    return {"scores": draw.normal(*batch, queries, keys), "mask": seen(draw, queries, keys)}, {
        "is_causal": draw.one_of(False, True)
    }


def turned(draw: Draw) -> tuple[Arrays, Attrs]:
    x = draw.normal(*draw.shape((0, 2), (1, 3)), draw.integer(1, 5), 2 * draw.integer(1, 3))
    attrs = {"base": draw.one_of(10000.0, draw.real(2.0, 50.0)), "offset": draw.integer(0, 7)}
    return {"x": x}, {**attrs, "interleaved": draw.one_of(False, True)}


def attended(*values: str) -> Arguments:
    """Queries, keys and perhaps values."""

    def arguments(draw: Draw) -> tuple[Arrays, Attrs]:
        batch = draw.shape((0, 2), (1, 3))
        queries, keys, features, width = draw.integers(4, 1, 6)
        arrays: Arrays = {
            "query": draw.normal(*batch, queries, features),
            "key": draw.normal(*batch, keys, features),
            **{name: draw.normal(*batch, keys, width) for name in values},
            "mask": masked(draw, batch, queries, keys) if values else seen(draw, queries, keys),
        }
        attrs = {"is_causal": draw.one_of(False, True), "scale": draw.one_of(None, draw.real(0.1, 2.0))}
        return arrays, {**attrs, **limited(draw, queries, keys)} if values else attrs

    return arguments


def headed(draw: Draw) -> tuple[Arrays, Attrs]:
    batch = draw.shape((0, 2), (1, 3))
    n, m, model, other, heads, features = draw.integers(6, 1, 4)
    context = draw.optional(draw.normal(*batch, m, other))
    rows, width = (n, model) if context is None else (m, other)
    groups = draw.one_of(None, *(g for g in range(1, heads + 1) if heads % g == 0))
    inner, narrow = heads * features, (groups or heads) * features
    value = draw.optional(draw.normal(*batch, rows, other))
    key_mask = draw.mask(*batch, rows)
    key_mask[..., 0] = True
    arrays: Arrays = {
        "x": draw.normal(*batch, n, model),
        "wq": draw.normal(model, inner),
        "wk": draw.normal(width, narrow),
        "wv": draw.normal(width if value is None else other, narrow),
        "wo": draw.normal(inner, model),
        "mask": masked(draw, batch, n, rows),
        "bq": draw.optional(draw.normal(inner)),
        **{name: draw.optional(draw.normal(narrow)) for name in ("bk", "bv")},
        "bo": draw.optional(draw.normal(model)),
        "context": context,
        "value": value,
        "key_mask": draw.optional(key_mask),
    }
    attrs = {"num_heads": heads, "num_kv_heads": groups, "is_causal": draw.one_of(False, True)}
    return arrays, {**attrs, "softcap": draw.one_of(None, draw.real(0.5, 5.0))}


def batch_norm(t: Any, x: Any, weight: Any, bias: Any, eps: float, channel_axis: int) -> Any:
    given = x if channel_axis else x[None]
    made = t.nn.functional.batch_norm(given, None, None, weight, bias, training=True, eps=eps)
    return made if channel_axis else made[0]


def batch_norm_inference(
    t: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float, channel_axis: int
) -> Any:
    """Written out: the peer gives no gradient by the statistics."""
    sizes = [-1 if axis == channel_axis else 1 for axis in range(x.ndim)]
    mean, var, weight, bias = (p if p is None else p.reshape(sizes) for p in (mean, var, weight, bias))
    made = (x - mean) / t.sqrt(var + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def allowed(t: Any, mask: Any, is_causal: bool, queries: int, keys: int, window: int | None = None) -> Any:
    """The peer takes one of them only."""
    kept = t.ones(queries, keys, dtype=t.bool) if mask is None else mask
    if window is not None:
        near = (t.arange(queries)[:, None] - t.arange(keys)).abs() < window
        kept = kept & near if kept.dtype == t.bool else kept.masked_fill(~near, -np.inf)
    if not is_causal:
        return kept
    before = t.ones(queries, keys, dtype=t.bool).tril()
    return kept & before if kept.dtype == t.bool else kept.masked_fill(~before, -np.inf)


def attention(
    t: Any, query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: Any, softcap: Any, window: Any = None
) -> Any:
    """Written out where the peer has no cap."""
    kept = allowed(t, mask, is_causal, query.shape[-2], key.shape[-2], window)
    if softcap is None:
        return t.nn.functional.scaled_dot_product_attention(query, key, value, kept, scale=scale)
    scores = softcap * t.tanh(query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale) / softcap)
    scores = scores.masked_fill(~kept, -np.inf) if kept.dtype == t.bool else scores + kept
    return t.softmax(scores, -1) @ value


def masked_softmax(t: Any, scores: Any, mask: Any, is_causal: bool) -> Any:
    kept = allowed(t, mask, is_causal, scores.shape[-2], scores.shape[-1])
    return t.softmax(scores.masked_fill(~kept, -np.inf), -1)


def rotary(t: Any, x: Any, base: float, offset: int, interleaved: bool) -> Any:
    """As a product of complex numbers."""
    n, half = x.shape[-2], x.shape[-1] // 2
    angles = t.outer(t.arange(n, dtype=t.float64) + offset, base ** (-t.arange(half, dtype=t.float64) / half))
    pairs = x.unflatten(-1, (half, 2)) if interleaved else x.unflatten(-1, (2, half)).mT
    made = t.view_as_real(t.view_as_complex(pairs.contiguous()) * t.polar(t.ones_like(angles), angles))
    return (made if interleaved else made.mT).flatten(-2)


def attention_weights(t: Any, query: Any, key: Any, mask: Any, is_causal: bool, scale: Any) -> Any:
    kept = allowed(t, mask, is_causal, query.shape[-2], key.shape[-2])
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    return t.softmax(scores.masked_fill(~kept, -np.inf), -1)


def multi_head(t: Any, x: Any, wq: Any, wk: Any, wv: Any, wo: Any, num_heads: int, **others: Any) -> Any:
    source = x if others["context"] is None else others["context"]

    values = source if others["value"] is None else others["value"]
    groups = others["num_kv_heads"] or num_heads

    def heads(a: Any, w: Any, bias: Any, count: int) -> Any:
        made = t.nn.functional.linear(a, w.T, bias)
        return made.unflatten(-1, (count, -1)).transpose(-2, -3).repeat_interleave(num_heads // count, -3)

    q, k = heads(x, wq, others["bq"], num_heads), heads(source, wk, others["bk"], groups)
    v, mask, hidden = heads(values, wv, others["bv"], groups), others["mask"], others["key_mask"]
    mask = mask if mask is None or mask.ndim == 2 else mask.unsqueeze(-3)
    if hidden is not None:
        kept = hidden[..., None, None, :]
        mask = kept if mask is None else mask & kept if mask.dtype == t.bool else mask.masked_fill(~kept, -np.inf)
    made = attention(t, q, k, v, mask, others["is_causal"], None, others["softcap"])
    return t.nn.functional.linear(made.transpose(-2, -3).flatten(-2), wo.T, others["bo"])


def by_name(name: str) -> Callable[..., Any]:
    """A function of the peer whose arguments have our names."""
    return lambda t, x, **given: getattr(t.nn.functional, name)(x, **given)


MISSING = "a query that sees no key: zeros"

ROWS = [
    Row("layer_norm", lambda t, x, weight, bias, eps: t.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps),
        of_rows("weight", "bias")),
    Row("rms_norm", lambda t, x, weight, eps: t.nn.functional.rms_norm(x, x.shape[-1:], weight, eps),
        of_rows("weight")),
    Row("batch_norm", batch_norm, of_channels, "a channel of one element, which the peer refuses"),
    Row("batch_norm_inference", batch_norm_inference, of_known_channels),
    Row("group_norm", by_name("group_norm"), of_groups,
        "a bias without a weight, whose gradient the peer cannot compute"),
    Row("instance_norm", by_name("instance_norm"), of_instances, "positions of one element, which the peer refuses"),
    Row("scaled_dot_product_attention", attention, attended("value"), MISSING),
    Row("attention_weights", attention_weights, attended(), MISSING),
    Row("multi_head_attention", multi_head, headed, MISSING),
    Row("masked_softmax", masked_softmax, scored, MISSING),
    Row("rotary", rotary, turned),
]  # fmt: skip
