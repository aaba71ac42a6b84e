"""Attention: the weights that queries give to keys, the softmax of masked scores, and their gradient."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any, TypeVar, overload

import numpy as np

from ...errors import DTypeError, ShapeError
from ...numerics.math.exact import inverse_root
from ...numerics.sizes import Sizes
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, call, permuted
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, Constant, F, N, Operand, S
from ...values.dtypes import boolean
from ...var.var import AnyVar, Var
from ..elementwise.arithmetic import add, mul, scale as scaled, sub
from ..linear.lowering import gemm
from ..linear.matmul import matmul
from ..reduce.reduce import broadcast_to, reduce_sum
from ..reduce.softmax import WORK
from ..shape.reshape import swap_last
from . import kernels, reference

Features = TypeVar("Features")
Keys = TypeVar("Keys")
Queries = TypeVar("Queries")


def scale_of(features: int, scale: float | None) -> float:
    """The scale given, or ``1 / sqrt(features)``."""
    return inverse_root(max(features, 1)) if scale is None else scale


def _lower_weights(query: Slot, key: Slot, mask: Slot | None, is_causal: bool, scale: float | None) -> Slot:
    rank = key.spec.rank
    scores = gemm(query, permuted(key, (*range(rank - 2), rank - 1, rank - 2)))
    *_, queries, keys = scores.shape
    rows = prod(scores.shape[:-1])
    mask_rows = 0 if mask is None else prod(mask.shape[:-1])
    return call(
        kernels.masked_softmax, [scores] if mask is None else [scores, mask], scores.shape,
        rows, keys, float(scale_of(query.shape[-1], scale)), queries, int(is_causal), mask_rows,
        work=WORK * scores.spec.size, aliases=(0,),
    )  # fmt: skip


def _by_products(g: Any, weights: Any, scale: float) -> Any:
    """`scaled_softmax_grad` for its own derivatives, which type checkers meet before they know its type."""
    return scaled_softmax_grad(g, weights, scale)


def _by_scores(g: Any, weights: Any, query_shape: Sizes, scale: float | None) -> Any:
    """The gradient of the weights by the products of queries and keys."""
    return _by_products(g, weights, scale_of(query_shape[-1], scale))


def attention_samples(make: Make) -> list[Sample]:
    """Pairs of queries and keys with and without masks, some rows of which keep nothing."""
    hole = make.mask(2, 4, 5)
    hole[1, 2], hole[0, 0] = False, True
    special = make(3, 4)
    special[0, 0], special[1, 1] = np.nan, np.inf
    return [
        Sample((make(4, 3), make(5, 3), None)),
        Sample((make(4, 3), make(5, 3), make.mask(4, 5))),
        Sample((make(2, 4, 3), make(2, 5, 3), hole)),
        Sample((make(2, 4, 3), make(2, 5, 3), make.mask(4, 5)), {"is_causal": True}),
        Sample((make(2, 3, 5, 2), make(2, 3, 5, 2), make.mask(2, 3, 5, 5)), {"scale": -1.5}),
        Sample((make(2, 3, 4, 2), make(2, 3, 3, 2), None), {"is_causal": True}),
        Sample((make(2, 70) * make.dtype.type(4), make(90, 70), make.mask(2, 90))),
        Sample((special, make(5, 4), make.mask(3, 5))),
        Sample((special, make(2, 4), None), {"is_causal": True}),
        Sample((make(1, 3, 0), make(1, 2, 0), None)),
        Sample((make(0, 3), make(2, 3), make.mask(0, 2))),
        Sample((make(2, 3, 4), make(2, 0, 4), make.mask(3, 0))),
        Sample((make(3, 2, 4).T, make(3, 5, 4).swapaxes(0, 2), make.mask(2, 5, 4).T[..., :2].swapaxes(1, 2))),
    ]


MASK = np.ones((3, 4), np.bool_)
"""A mask that does not fit."""


@overload
def attention_weights(
    query: Var[F, *Bs, Queries, Features],
    key: Var[F, *Bs, Keys, Features],
    mask: Operand[boolean, Queries, Keys] | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Var[F, *Bs, Queries, Keys]: ...
@overload
def attention_weights(
    query: Var[F, *Bs, Queries, Features],
    key: Var[F, *Bs, Keys, Features],
    mask: Operand[boolean, *Bs, Queries, Keys] | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Var[F, *Bs, Queries, Keys]: ...
@op(
    lower=_lower_weights,
    vjp=(
        lambda g, y, key, query_shape, scale: matmul(_by_scores(g, y, query_shape, scale), key),
        lambda g, y, query, query_shape, scale: matmul(swap_last(_by_scores(g, y, query_shape, scale)), query),
        NO_GRAD,
    ),
    jvp=lambda dquery, dkey, query, key, y, query_shape, scale: _by_scores(
        add(matmul(dquery, swap_last(key)), matmul(query, swap_last(dkey))), y, query_shape, scale
    ),
    reference=reference.attention_weights,
    samples=attention_samples,
    errors=(
        bad(ShapeError, "argument 'key': expected shape (Keys, 3), got (4, 2)", (2, 3), (4, 2), None),
        bad(ShapeError, "argument 'key': expected shape (5, Keys, 3), got (6, 4, 3)", (5, 2, 3), (6, 4, 3), None),
        bad(ShapeError, "argument 'mask': expected shape (2, 4), got (3, 4)", (2, 3), (4, 3), MASK),
        bad(DTypeError, "argument 'mask': expected bool, got float32", (2, 3), (4, 3), (2, 4)),
    ),
    batch_axis={"query": -3, "key": -3, "mask": -3},
    instead={"scale": "ops.attention_weights(query * scale, key, mask, is_causal, scale=1.0)"},
)
def attention_weights(
    query: AnyVar,
    key: AnyVar,
    mask: AnyVar | Constant | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> AnyVar:
    """The softmax over the keys of ``(query @ keyᵀ) * scale``, as one row of weights for each query.

    A key has weight 0 where the mask is false (true means keep), and with ``is_causal`` for the queries before its
    own position; a query that may see no key has no weights but 0, and no gradient. ``scale`` is 1 over the root of
    the number of features unless it is given.

    Source: Vaswani and others (2017), Attention is all you need, equation 1, without the values; ``mask`` and
        ``is_causal`` as in torch.nn.functional.scaled_dot_product_attention.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 0.0], [1.0, 0.0]])
    >>> ops.attention_weights(x, x, is_causal=True).numpy()
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    ...


def _along_keys(x: Any) -> Any:
    return broadcast_to(reduce_sum(x, -1, keepdims=True), tuple(x.shape))


def _through_weights(d: Any, spread: Any, along: Any, upstream: Any, weights: Any, scale: float) -> Any:
    """``(d * (g - sum(g * w)) - spread * sum(d * along)) * scale``: how a softmax's gradient follows its weights."""
    centred = sub(upstream, _along_keys(mul(upstream, weights)))
    return scaled(sub(mul(d, centred), mul(spread, _along_keys(mul(d, along)))), scale)


def _lower_grad(g: Slot, weights: Slot, scale: float) -> Slot:
    n = g.shape[-1]
    rows, work = prod(g.shape[:-1]), 5 * g.spec.size
    return call(kernels.scaled_softmax_grad, [g, weights], g.shape, rows, n, float(scale), work=work, aliases=(0, 1))


@op(
    lower=_lower_grad,
    vjp=(
        lambda g, weights, scale: _by_products(g, weights, scale),
        lambda g, upstream, weights, scale: _through_weights(g, upstream, weights, upstream, weights, scale),
    ),
    jvp=lambda dupstream, dweights, upstream, weights, scale: add(
        _by_products(dupstream, weights, scale),
        _through_weights(dweights, weights, upstream, upstream, weights, scale),
    ),
    reference=reference.scaled_softmax_grad,
    samples=lambda make: [
        Sample((make(3, 5), make.unit(3, 5)), {"scale": 0.5}),
        Sample((make(2, 3, 70), make(2, 3, 70)), {"scale": -3}),
        Sample((make(2, 0), make(2, 0)), {"scale": 1.0}),
    ],
    batch_axis={"upstream": -2, "weights": -2},
    private=True,
)
def scaled_softmax_grad(upstream: Var[F, *S, N], weights: Var[F, *S, N], scale: float) -> Var[F, *S, N]:
    """``w * (g - sum(g * w)) * scale`` along the last axis: the gradient by scores of the softmax of scaled scores."""
    ...


def _lower_softmax(scores: Slot, mask: Slot | None, is_causal: bool) -> Slot:
    *_, queries, keys = scores.shape
    rows, mask_rows = prod(scores.shape[:-1]), 0 if mask is None else prod(mask.shape[:-1])
    inputs, words = [scores] if mask is None else [scores, mask], (rows, keys, 1.0, queries, int(is_causal), mask_rows)
    return call(kernels.masked_softmax, inputs, scores.shape, *words, work=WORK * scores.spec.size, aliases=(0,))


@overload
def masked_softmax(
    scores: Var[F, *Bs, Queries, Keys], mask: Operand[boolean, Queries, Keys] | None = None, is_causal: bool = False
) -> Var[F, *Bs, Queries, Keys]: ...
@overload
def masked_softmax(
    scores: Var[F, *Bs, Queries, Keys],
    mask: Operand[boolean, *Bs, Queries, Keys] | None = None,
    is_causal: bool = False,
) -> Var[F, *Bs, Queries, Keys]: ...
@op(
    lower=_lower_softmax,
    vjp=(lambda g, y: scaled_softmax_grad(g, y, 1.0), NO_GRAD),
    jvp=lambda dscores, y: scaled_softmax_grad(dscores, y, 1.0),
    reference=reference.masked_softmax,
    samples=lambda make: [
        Sample((make(2, 3, 5), make.mask(2, 3, 5))),
        Sample((make(2, 4, 40), make.mask(4, 40)), {"is_causal": True}),
        Sample((make(3, 3), np.tri(3, k=-1, dtype=np.bool_))),  # the first row keeps nothing
        Sample((make(0, 3), None)),
    ],
    errors=(
        bad(ShapeError, "argument 'mask': expected shape (2, 4), got (3, 4)", (2, 4), MASK),
        bad(DTypeError, "argument 'mask': expected bool, got float32", (2, 4), (2, 4)),
    ),
    batch_axis={"scores": -3, "mask": -3},
)
def masked_softmax(scores: AnyVar, mask: AnyVar | Constant | None = None, is_causal: bool = False) -> AnyVar:
    """The softmax along the last axis over what the mask keeps (true means keep); 0 elsewhere.

    With ``is_causal`` a row sees nothing behind its own position besides. A row that keeps nothing is 0, and has no
    gradient.

    Source: torch.softmax of scores that are -inf where they are masked.

    >>> from dgrr.tape import Tape, ops
    >>> ops.masked_softmax(Tape().leaf([[0.0, 0.0, 9.0]]), [[True, True, False]]).numpy()
    array([[0.5, 0.5, 0. ]])
    """
    ...
