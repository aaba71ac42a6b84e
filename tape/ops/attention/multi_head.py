"""Attention of several heads, with the projections before and behind it."""

from typing import Any, TypeVar

import numpy as np

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, F, K, M, N
from ...values.dtypes import boolean
from ...var.var import AnyVar, Gradual, Var, shape_of
from ..elementwise.arithmetic import add
from ..linear.matmul import matmul
from ..reduce.reduce import broadcast_to
from ..shape.reshape import reshape, swapaxes
from . import reference
from .attention import attention_weights

D = TypeVar("D")
C = TypeVar("C")

NAME = "multi_head_attention"


def _require_heads(num_heads: int, width: int) -> None:
    if num_heads < 1 or width % num_heads:
        raise ShapeError(
            f"{NAME}: argument 'num_heads': expected a divisor of the {width} columns of wq, got {num_heads}"
        )


def _require_shape(argument: str, wanted: tuple[Sizes, ...], given: Sizes) -> None:
    if given not in wanted:
        said = " or ".join(map(str, dict.fromkeys(wanted)))
        raise ShapeError(f"{NAME}: argument {argument!r}: expected shape {said}, got {given}")


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


def _for_heads(mask: Any, num_heads: int) -> Any:
    """A mask for each matrix of scores of one head, repeated for all heads; one for all scores as it is."""
    *leading, n, m = shape_of(mask)
    if not leading:
        return mask
    return broadcast_to(reshape(mask, (*leading, 1, n, m)), (*leading, num_heads, n, m))


def _samples(make: Make) -> list[Sample]:
    w, wide = (make(4, 6), make(4, 6), make(4, 6), make(6, 4)), (make(4, 6), make(3, 6), make(3, 6), make(6, 4))
    none, biases = (None,) * 4, (make(6), make(6), make(6), make(4))
    mask = make.mask(2, 3, 3)
    mask[1, 2] = False
    context = make(2, 5, 3)
    return [
        Sample((make(3, 4), *w, None, *none, None), {"num_heads": 2}),
        Sample((make(2, 3, 4), *w, mask, *biases, None), {"num_heads": 3}),
        Sample((make(2, 3, 4), *w, make.mask(3, 3), None, make(6), None, None, None), {"num_heads": 1}),
        Sample((make(2, 3, 4), *w, None, *none, None), {"num_heads": 2, "is_causal": True}),
        Sample((make(2, 3, 4), *wide, make.mask(2, 3, 5), *biases, context), {"num_heads": 2, "is_causal": True}),
        Sample((make(1, 2, 3, 4), *wide, None, *none, make(1, 2, 1, 3)), {"num_heads": 6}),
        Sample((make(0, 3, 4), *w, None, *none, None), {"num_heads": 2}),
    ]


def _refused(text: str, **changed: Any) -> Any:
    """Arguments of which some do not fit."""
    given = {"x": (2, 3, 4), "wq": (4, 4), "wk": (4, 4), "wv": (4, 4), "wo": (4, 4), "num_heads": 2, **changed}
    names = ("x", "wq", "wk", "wv", "wo", "mask", "bq", "bk", "bv", "bo", "context")
    return bad(ShapeError, text, *map(given.get, names), num_heads=given["num_heads"])


ERRORS = (
    _refused("argument 'num_heads': expected a divisor of the 4 columns of wq, got 3", num_heads=3),
    _refused("argument 'num_heads': expected a divisor of the 4 columns of wq, got 0", num_heads=0),
    _refused("argument 'wq': expected shape (4, K), got (5, 4)", wq=(5, 4)),
    _refused("argument 'wk': expected shape (4, 4), got (5, 4)", wk=(5, 4), wv=(5, 4)),
    _refused("argument 'wv': expected shape (4, 4), got (4, 6)", wv=(4, 6)),
    _refused("argument 'wo': expected shape (4, 4), got (4, 5)", wo=(4, 5)),
    _refused("argument 'bq': expected shape (4,), got (1, 4)", bq=(1, 4)),
    _refused("argument 'context': expected shape (2, M, 4), got (1, 5, 4)", context=(1, 5, 4)),
    _refused("argument 'mask': expected shape (3, 3) or (2, 3, 3), got (3, 2)", mask=np.ones((3, 2), np.bool_)),
    _refused(
        "argument 'mask': expected shape (3, 5) or (2, 3, 5), got (2, 3, 3)",
        mask=np.ones((2, 3, 3), np.bool_),
        context=(2, 5, 4),
    ),
)


@composed(
    reference=reference.multi_head_attention,
    samples=_samples,
    errors=ERRORS,
    covers=(NAME,),
    batch_axis={"x": -3, "context": -3, "mask": -3},
)
def multi_head_attention(
    x: Var[F, *Bs, N, D],
    wq: Var[F, D, K],
    wk: Var[F, C, K],
    wv: Var[F, C, K],
    wo: Var[F, K, D],
    num_heads: int,
    mask: Gradual[boolean] | None = None,
    is_causal: bool = False,
    bq: Var[F, K] | None = None,
    bk: Var[F, K] | None = None,
    bv: Var[F, K] | None = None,
    bo: Var[F, D] | None = None,
    context: Var[F, *Bs, M, C] | None = None,
) -> Var[F, *Bs, N, D]:
    """Attention of ``num_heads`` heads of K / num_heads features each: ``heads(x @ wq, x @ wk, x @ wv) @ wo``.

    Keys and values come from ``context`` if it is given (cross attention), else from x. The mask, (N, M) or
    (*Bs, N, M), is true where a query may see a key, for all heads; with ``is_causal`` a query sees no key behind
    its own position either. The biases are added behind the products. The weights of the heads are a node of the
    tape, of shape (*Bs, H, N, M).

    Source: Vaswani and others (2017), Attention is all you need, section 3.2.2.
    Shapes: x (*Bs, N, D), wq (D, K), wk (C, K), wv (C, K), wo (K, D) -> (*Bs, N, D); with ``mask`` (N, M) or (*Bs, N,
        M), ``bq``, ``bk`` and ``bv`` (K,), ``bo`` (D,), ``context`` (*Bs, M, C), without which M is N and C is D

    >>> from dgrr.tape import Tape, ops
    >>> x, w = Tape().leaf([[1.0, 0.0], [0.0, 1.0]]), np.eye(2)
    >>> ops.multi_head_attention(x, w, w, w, w, num_heads=2, is_causal=True).numpy()[0]
    array([1., 0.])
    """
    weights, value = weights_and_values(x, wq, wk, wv, wo, num_heads, mask, is_causal, bq, bk, bv, bo, context)
    result: Var[F, *Bs, N, D] = joined_heads(weights, value, wo, bo)
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
) -> tuple[AnyVar, AnyVar]:
    """The weights (*Bs, H, N, M) and the values (*Bs, H, M, K / H) of the heads of `multi_head_attention`."""
    x, wq, wk, wv, wo, mask, bq, bk, bv, bo, context = fitted(NAME, x, wq, wk, wv, wo, mask, bq, bk, bv, bo, context)
    source: Any = x if context is None else context
    *leading, n, _ = shape_of(x)
    *_, m, features = shape_of(source)
    width = shape_of(wq)[1]
    _require_heads(num_heads, width)
    _require_shape("wk", ((features, width),), shape_of(wk))
    if mask is not None:
        _require_shape("mask", ((n, m), (*leading, n, m)), shape_of(mask))
        mask = _for_heads(mask, num_heads)
    query, key = _heads(_projected(x, wq, bq), num_heads), _heads(_projected(source, wk, bk), num_heads)
    value = _heads(_projected(source, wv, bv), num_heads)
    return attention_weights(query, key, mask, is_causal), value


def joined_heads(weights: AnyVar, value: AnyVar, wo: Any, bo: Any) -> Any:
    """What the heads attend to, side by side, after the last projection."""
    return _projected(_joined(matmul(weights, value)), wo, bo)
