"""Attention of several heads, with the projections before and behind it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...errors import DomainError, DTypeError, ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, Constant, F, K, M, N, Operand
from ...values.dtypes import boolean
from ...var.var import AnyVar, Gradual, Var, shape_of
from ..elementwise.arithmetic import add, sub
from ..elementwise.integer import logical_and
from ..elementwise.select import equal, greater, less_equal, where
from ..linear.matmul import matmul
from ..reduce.reduce import broadcast_to
from ..shape.reshape import reshape, swapaxes
from . import reference
from .masks import SCORES, require_mask
from .scaled_dot_product import weights_of

D = TypeVar("D")
C = TypeVar("C")
L = TypeVar("L")
V = TypeVar("V")

NAME = "multi_head_attention"


def _require_heads(num_heads: int, num_kv_heads: int, width: int) -> None:
    if num_heads < 1 or width % num_heads:
        raise ShapeError(
            f"{NAME}: argument 'num_heads': expected a divisor of the {width} columns of wq, got {num_heads}"
        )
    if num_kv_heads < 1 or num_heads % num_kv_heads:
        raise ShapeError(
            f"{NAME}: argument 'num_kv_heads': expected a divisor of num_heads {num_heads}, got {num_kv_heads}"
        )


def _require_shape(argument: str, wanted: Sizes, x: Any) -> None:
    if x is not None and shape_of(x) != wanted:
        raise ShapeError(f"{NAME}: argument {argument!r}: expected shape {wanted}, got {shape_of(x)}")


def _require_mask(mask: Any, scores: Sizes, dtype: Any) -> None:
    """The mask for all heads, or with an axis for them; one of keys alone is another argument."""
    *leading, _, n, m = scores
    if mask is None or len(shape_of(mask)) == len(scores):
        return require_mask(NAME, mask, scores, dtype)
    of_keys = shape_of(mask) == (*leading, m) and leading != [n]
    advice = "; pass a mask of keys as key_mask" if of_keys else ""
    return require_mask(NAME, mask, (*leading, n, m), dtype, advice=advice)


def _projected(x: Any, w: Any, b: Any) -> Any:
    """``x @ w + b``."""
    y = matmul(x, w)
    return y if b is None else add(y, broadcast_to(b, shape_of(y)))


def _heads(x: Any, num_heads: int) -> Any:
    """(*Bs, n, H * dh) as (*Bs, H, n, dh): the columns are split first, then the axes change places."""
    *leading, width = shape_of(x)
    return swapaxes(reshape(x, (*leading, num_heads, width // num_heads)), -3, -2)


def _joined(x: Any) -> Any:
    """The inverse of `_heads`."""
    *leading, heads, n, width = shape_of(x)
    return reshape(swapaxes(x, -3, -2), (*leading, n, heads * width))


def _for_heads(mask: Any, rank: int) -> Any:
    """A mask of the rank of x or less with an axis for the heads; one matrix, and one that has it, as they are."""
    *leading, n, m = (1, *shape_of(mask)) if len(shape_of(mask)) == 1 else shape_of(mask)
    return reshape(mask, (*leading, 1, n, m)) if 2 < len(mask.shape) <= rank else mask


def _for_queries(key_mask: Any) -> Any:
    """A mask of keys with axes for the heads and the queries."""
    *leading, m = shape_of(key_mask)
    return reshape(key_mask, (*leading, 1, 1, m))


def _shared(x: Any, num_heads: int) -> Any:
    """Keys or values (*Bs, G, m, dh) for more heads: each serves as many neighbours."""
    *leading, groups, m, width = shape_of(x)
    if groups == num_heads:
        return x
    wide = broadcast_to(reshape(x, (*leading, groups, 1, m, width)), (*leading, groups, num_heads // groups, m, width))
    return reshape(wide, (*leading, num_heads, m, width))


def _samples(make: Make) -> list[Sample]:
    w, wide = (make(4, 6), make(4, 6), make(4, 6), make(6, 4)), (make(4, 6), make(3, 6), make(3, 6), make(6, 4))
    none, biases = (None,) * 4, (make(6), make(6), make(6), make(4))
    mask = make.mask(2, 3, 3)
    mask[1, 2] = False
    context = make(2, 5, 3)
    few = (make(4, 6), make(3, 3), make(2, 3), make(6, 4), make.mask(2, 1, 5), make(6), make(3), make(3), make(4))
    seen = np.arange(5) < np.array([[5], [3]])
    return [
        Sample((make(3, 4), *w, None, *none, None, None, None), {"num_heads": 2}),
        Sample((make(2, 3, 4), *w, mask, *biases, None, None, None), {"num_heads": 3}),
        Sample((make(2, 3, 4), *w, make.mask(3, 3), None, make(6), None, None, None, None, None), {"num_heads": 1}),
        Sample((make(2, 3, 4), *w, None, *none, None, None, None), {"num_heads": 2, "is_causal": True}),
        Sample(
            (make(2, 3, 4), *wide, make.mask(2, 3, 5), *biases, context, None, None),
            {"num_heads": 2, "is_causal": True},
        ),
        Sample((make(1, 2, 3, 4), *wide, None, *none, make(1, 2, 1, 3), None, None), {"num_heads": 6}),
        Sample((make(0, 3, 4), *w, None, *none, None, None, None), {"num_heads": 2}),
        Sample((make(2, 3, 4), *few, context, make(2, 5, 2), seen), {"num_heads": 6, "num_kv_heads": 3, "window": 3}),
        Sample((make(2, 3, 4), *w, make(2, 3, 3), *none, None, None, seen[:, 2:]), {"num_heads": 2, "softcap": 2.0}),
    ]


def _refused(text: str, error: type[Exception] = ShapeError, **changed: Any) -> Any:
    """Arguments of which some do not fit."""
    given = {"x": (2, 3, 4), "wq": (4, 4), "wk": (4, 4), "wv": (4, 4), "wo": (4, 4), "num_heads": 2, **changed}
    names = ("x", "wq", "wk", "wv", "wo", "mask", "bq", "bk", "bv", "bo", "context", "value", "key_mask")
    return bad(error, text, *[given.pop(name, None) for name in names], **given)


def _bools(*shape: int) -> Any:
    return np.ones(shape, np.bool_)


ERRORS = (
    _refused("argument 'num_heads': expected a divisor of the 4 columns of wq, got 3", num_heads=3),
    _refused("argument 'num_heads': expected a divisor of the 4 columns of wq, got 0", num_heads=0),
    _refused("argument 'num_kv_heads': expected a divisor of num_heads 4, got 3", num_heads=4, num_kv_heads=3),
    _refused("argument 'wq': expected shape (4, K), got (5, 4)", wq=(5, 4)),
    _refused("argument 'wk': expected shape (4, 4), got (5, 4)", wk=(5, 4), wv=(5, 4)),
    _refused("argument 'wk': expected shape (4, 2), got (4, 4)", num_kv_heads=1),
    _refused("argument 'wv': expected shape (V, 4), got (4, 6)", wv=(4, 6)),
    _refused("argument 'wo': expected shape (4, 4), got (4, 5)", wo=(4, 5)),
    _refused("argument 'bq': expected shape (4,), got (1, 4)", bq=(1, 4)),
    _refused("argument 'context': expected shape (2, M, 4), got (1, 5, 4)", context=(1, 5, 4)),
    _refused("argument 'value': expected shape (2, 3, 4), got (2, 5, 4)", value=(2, 5, 4)),
    _refused("argument 'mask': expected a shape that can be repeated to (2, 3, 3), got (3, 2)", mask=_bools(3, 2)),
    _refused(
        "argument 'mask': expected a shape that can be repeated to (2, 3, 5), got (2, 3, 3)",
        mask=_bools(2, 3, 3),
        context=(2, 5, 4),
    ),
    _refused(
        "argument 'mask': expected a shape that can be repeated to (2, 2, 3, 3), got (2, 3, 3, 3)",
        mask=_bools(2, 3, 3, 3),
    ),
    _refused("got (2, 3); pass a mask of keys as key_mask", mask=_bools(2, 3)),
    _refused("argument 'mask': expected bool or float32, got int64", DTypeError, mask=np.ones((3, 3), np.int64)),
    _refused("argument 'key_mask': expected shape (2, 3), got (3,)", key_mask=_bools(3)),
    _refused("argument 'window': expected at least 1 or None, got 0", DomainError, window=0),
)


@composed(
    reference=reference.multi_head_attention,
    samples=_samples,
    errors=ERRORS,
    covers=(NAME,),
    batch_axis={"x": -3, "context": -3, "value": -3, "mask": -3, "key_mask": -2},
    kinds=SCORES,
)
def multi_head_attention(
    x: Var[F, *Bs, N, D],
    wq: Operand[F, D, K],
    wk: Var[F, C, L],
    wv: Var[F, V, L],
    wo: Operand[F, K, D],
    num_heads: int,
    mask: Gradual[Any] | Constant | None = None,
    is_causal: bool = False,
    bq: Operand[F, K] | None = None,
    bk: Operand[F, L] | None = None,
    bv: Operand[F, L] | None = None,
    bo: Operand[F, D] | None = None,
    context: Var[F, *Bs, M, C] | None = None,
    value: Var[F, *Bs, M, V] | None = None,
    key_mask: Gradual[boolean] | Constant | None = None,
    num_kv_heads: int | None = None,
    softcap: float | None = None,
    window: int | None = None,
) -> Var[F, *Bs, N, D]:
    """Attention of ``num_heads`` heads of K / num_heads features each: ``heads(x @ wq, x @ wk, x @ wv) @ wo``.

    Keys and values come from ``context`` if it is given (cross attention), else from x; values from ``value`` if it is
    given. The mask, of any shape that can be repeated to (*Bs, N, M), or (*Bs, H, N, M) for each head, is true where a
    query may see a key; one of floats is added to the scores. ``key_mask`` is true for the keys that any query may see.
    ``is_causal``, ``softcap`` and ``window`` are those of `scaled_dot_product_attention`; all that is given holds
    together, and a query that may see no key gets zeros instead of values. With fewer ``num_kv_heads`` G, L is G K / H,
    and H / G neighbouring heads share keys and values. The biases are added behind the products. The weights of the
    heads are a node of the tape, of shape (*Bs, H, N, M).

    Source: Vaswani and others (2017), Attention is all you need, section 3.2.2; grouped queries of Ainslie and others
        (2023).
    Shapes: x (*Bs, N, D), wq (D, K), wk (C, L), wv (V, L), wo (K, D) -> (*Bs, N, D); with ``mask`` (...), ``bq`` (K,),
        ``bk`` and ``bv`` (L,), ``bo`` (D,), ``context`` (*Bs, M, C), without which M is N and C is D, ``value``
        (*Bs, M, V), without which V is C, ``key_mask`` (*Bs, M)
    Dtypes: x, weights, biases, context, value and the result float32 or float64, all alike; mask bool, or as they are;
        key_mask bool.

    >>> from dgrr.tape import Tape, ops
    >>> x, w = Tape().leaf([[1.0, 0.0], [0.0, 1.0]]), np.eye(2)
    >>> ops.multi_head_attention(x, w, w, w, w, num_heads=2, is_causal=True).numpy()[0]
    array([1., 0.])
    """
    weights, values = weights_and_values(
        x, wq, wk, wv, wo, num_heads, mask, is_causal, bq, bk, bv, bo, context, value, key_mask, num_kv_heads, softcap,
        window,
    )  # fmt: skip
    result: Var[F, *Bs, N, D] = joined_heads(weights, values, wo, bo)
    return result


def weights_and_values(
    x: Any,
    wq: Any,
    wk: Any,
    wv: Any,
    wo: Any,
    num_heads: int,
    mask: Any,
    is_causal: bool,
    bq: Any,
    bk: Any,
    bv: Any,
    bo: Any,
    context: Any,
    value: Any,
    key_mask: Any,
    num_kv_heads: int | None,
    softcap: float | None,
    window: int | None,
    placed: Callable[[Any], Any] | None = None,
) -> tuple[AnyVar, AnyVar]:
    """The weights (*Bs, H, N, M) and the values (*Bs, H, M, K / H) of the heads of `multi_head_attention`.

    ``placed`` is what queries and keys, (*Bs, H, n, K / H), are put through before their products.
    """
    x, wq, wk, wv, wo, mask, bq, bk, bv, bo, context, value, key_mask = fitted(
        NAME, x, wq, wk, wv, wo, mask, bq, bk, bv, bo, context, value, key_mask
    )
    source: Any = x if context is None else context
    values: Any = source if value is None else value
    *leading, n, _ = shape_of(x)
    *_, m, features = shape_of(source)
    width, groups = shape_of(wq)[1], num_heads if num_kv_heads is None else num_kv_heads
    _require_heads(num_heads, groups, width)
    narrow = width // num_heads * groups
    _require_shape("wk", (features, narrow), wk)
    _require_shape("wv", (shape_of(values)[-1], narrow), wv)
    _require_shape("value", (*leading, m, shape_of(values)[-1]), value)
    _require_shape("key_mask", (*leading, m), key_mask)
    _require_mask(mask, (*leading, num_heads, n, m), x.dtype)
    query, key = _heads(_projected(x, wq, bq), num_heads), _heads(_projected(source, wk, bk), groups)
    held = _shared(_heads(_projected(values, wv, bv), groups), num_heads)
    query, key = (query, key) if placed is None else (placed(query), placed(key))
    mask = None if mask is None else _for_heads(mask, len(leading) + 2)
    seen = None if key_mask is None else _for_queries(key_mask)
    return weights_of(query, _shared(key, num_heads), mask, is_causal, None, softcap, window, seen), held


def next_weights_and_values(
    x: Any,
    weights: Sequence[Any],
    biases: Sequence[Any],
    heads: tuple[int, int],
    kept: tuple[Any, Any],
    position: Any,
    softcap: float | None,
    window: int | None,
    placed: Callable[[Any], Any],
) -> tuple[AnyVar, AnyVar, tuple[Any, Any]]:
    """The weights and values of heads for one more place, and the keys and values kept with its own.

    ``kept`` are (*Bs, G, length, K / H), of which those before ``position`` are there, an int64 without axes. The query
    and the key of the place are put through ``placed``.
    """
    num_heads, groups = heads
    query, key, value = (
        _heads(_projected(x, w, b), count)
        for w, b, count in zip(weights, biases, (num_heads, groups, groups), strict=True)
    )
    query, new = placed(query), (placed(key), value)
    length = shape_of(kept[0])[-2]
    places: Any = np.arange(length)
    here = broadcast_to(position, (length,))
    own = reshape(equal(places, here), (length, 1))
    keys, values = (where(own, one, before) for one, before in zip(new, kept, strict=True))
    seen: Any = less_equal(places, here)
    if window is not None:
        nearest: Any = np.full(length, window)
        seen = logical_and(seen, greater(places, sub(here, nearest)))
    found = weights_of(query, _shared(keys, num_heads), reshape(seen, (1, length)), False, None, softcap, None)
    return found, _shared(values, num_heads), (keys, values)


def joined_heads(weights: AnyVar, value: AnyVar, wo: Any, bo: Any) -> Any:
    """What the heads attend to, side by side, after the last projection."""
    return _projected(_joined(matmul(weights, value)), wo, bo)
