"""Attention of queries to keys and values, under masks of every shape that broadcasts."""

from typing import Any, TypeVar

import numpy as np

from ...errors import DTypeError, ShapeError
from ...numerics.math.exact import quotient
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, Constant, F, Operand
from ...var.var import AnyVar, Gradual, Var, shape_of
from ..elementwise.arithmetic import add, scale as scaled
from ..elementwise.exponential import tanh
from ..linear.matmul import matmul
from ..shape.reshape import swap_last
from . import reference
from .attention import MASK, attention_samples, attention_weights, masked_softmax, scale_of
from .masks import SCORES, added_and_kept, require_mask

Features = TypeVar("Features")
Keys = TypeVar("Keys")
Queries = TypeVar("Queries")
Values = TypeVar("Values")

NAME = "scaled_dot_product_attention"


def weights_of(
    query: Any,
    key: Any,
    mask: Any,
    is_causal: bool,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    seen: Any = None,
) -> AnyVar:
    """The weights of keys for queries, under masks that fit: one op, unless the scores are capped or added to."""
    shape = (*shape_of(query)[:-1], shape_of(key)[-2])
    added, kept = added_and_kept(mask, window, shape, seen)
    if softcap is None and added is None:
        return attention_weights(query, key, kept, is_causal, scale)
    scores: Any = scaled(matmul(query, swap_last(key)), scale_of(shape_of(query)[-1], scale))
    if softcap is not None:
        scores = scaled(tanh(scaled(scores, quotient(1.0, softcap))), float(softcap))
    total: Any = scores if added is None else add(scores, added)
    weights: AnyVar = masked_softmax(total, kept, is_causal)
    return weights


def _samples(make: Make) -> list[Sample]:
    """Those of the weights, with values of another width; then what the weights alone do not take."""

    def with_values(query: Any, key: Any, mask: Any) -> tuple[Any, ...]:
        return query, key, make(*key.shape[:-1], 2), mask

    added = make(1, 3, 4, 5)
    added[0, 0, 1], added[0, 2, 2, 3] = -np.inf, -np.inf
    parts = make(2, 3, 4, 2), make(2, 3, 5, 2), make(2, 3, 5, 3)
    return [
        *(Sample(with_values(*sample.arrays), sample.attrs) for sample in attention_samples(make)),
        Sample((*parts, make.mask(2, 3, 1, 5)), {"window": 2, "is_causal": True}),
        Sample((*parts, added), {"softcap": 1.5}),
        Sample((*parts, make(4, 5)), {"is_causal": True}),
        Sample((*parts, None), {"window": 1, "softcap": 3}),
    ]


@composed(
    reference=reference.scaled_dot_product_attention,
    samples=_samples,
    errors=(
        bad(
            ShapeError,
            "argument 'mask': expected a shape that can be repeated to (2, 4), got (3, 4)",
            (2, 3), (4, 3), (4, 2), MASK,
        ),
        bad(
            DTypeError,
            "argument 'mask': expected bool or float32, got int64; convert with ops.cast",
            (2, 3), (4, 3), (4, 2), np.ones((2, 4), np.int64),
        ),
    ),
    batch_axis={"query": -3, "key": -3, "value": -3, "mask": -3},
    instead={"scale": "ops.scaled_dot_product_attention(query * scale, key, value, mask, is_causal, scale=1.0)"},
    kinds=SCORES,
)  # fmt: skip
def scaled_dot_product_attention(
    query: Var[F, *Bs, Queries, Features],
    key: Operand[F, *Bs, Keys, Features],
    value: Var[F, *Bs, Keys, Values],
    mask: Gradual[Any] | Constant | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
) -> Var[F, *Bs, Queries, Values]:
    """The values of the keys, weighted for each query by the softmax of ``(query @ keyᵀ) * scale``.

    The mask has any shape that can be repeated to (*Bs, Queries, Keys). One of bools is true where a query may see a
    key; one of floats is added to the scores, and its -inf is what false is. With ``is_causal`` a query sees no key
    behind its own position, with ``window`` none that stands ``window`` places or more from it; what is given
    together holds together. ``softcap`` c takes ``c tanh(score / c)`` for the score, before the mask. A query that may
    see no key gets zeros, and has no gradient. ``scale`` is 1 over the root of the number of features unless it is
    given. The tape shows the weights as a node of their own.

    Source: Vaswani and others (2017), Attention is all you need, equation 1;
        torch.nn.functional.scaled_dot_product_attention; the window of Beltagy, Peters and Cohan (2020), the cap of
        Gemma 2 (2024).
    Shapes: query (*Bs, Queries, Features), key (*Bs, Keys, Features), value (*Bs, Keys, Values), mask (...) or None ->
        (*Bs, Queries, Values)
    Dtypes: query, key, value and the result float32 or float64, all alike; mask bool, or as they are.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 0.0], [0.0, 1.0]])
    >>> ops.scaled_dot_product_attention(x, x, x, is_causal=True).numpy()[0]
    array([1., 0.])
    """
    query, key, value, mask = fitted(NAME, query, key, value, mask)
    require_mask(NAME, mask, (*shape_of(query)[:-1], shape_of(key)[-2]), query.dtype)
    weighted: Var[F, *Bs, Queries, Values] = matmul(
        weights_of(query, key, mask, is_causal, scale, softcap, window), value
    )
    return weighted
