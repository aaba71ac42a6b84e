"""Distances and angles between vectors along the last axis, and losses of them."""

from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...numerics.math.exact import quotient
from ...numerics.math.reference import sums as reference_sums
from ...record.composed import composed, fitted
from ...record.kinds.values import NOT_NEGATIVE
from ...record.samples import Sample
from ...record.types import F, N, Operand, S
from ...values.dtypes import i64
from ...var.var import Var
from ..elementwise.arithmetic import div, mul, neg, power, relu, sqrt, sub
from ..elementwise.clamp import absolute, clamp, minimum
from ..elementwise.functions import shift, square
from ..reduce.reduce import reduce_sum
from .loss import loss
from .margins import by_sign, reference_relu, signs
from .reduction import NORM, Each, Total, formula

ROWS = {"a": 0, "b": 0}


def _distance(a: Any, b: Any, p: float, eps: float) -> Any:
    difference: Any = shift(sub(a, b), eps)
    if p == 2:
        return sqrt(reduce_sum(square(difference), -1))
    total: Any = reduce_sum(power(absolute(difference), p), -1)
    return total if p == 1 else power(total, quotient(1.0, p))


def _reference_distance(a: Array, b: Array, p: float = 2.0, eps: float = 1e-6) -> Array:
    difference = (a - b) + a.dtype.type(eps)
    if p == 2:
        return np.asarray(formula("sqrt")(reference_sums.reduce_sum(difference * difference, -1)))
    total = reference_sums.reduce_sum(formula("power")(abs(difference), p), -1)
    return total if p == 1 else np.asarray(formula("power")(total, quotient(1.0, p)))


@composed(
    reference=_reference_distance,
    samples=lambda make: [
        Sample((make(3, 5), make(3, 5))),
        Sample((make(2, 3, 4), make(2, 3, 4)), {"p": 1.0}),
        Sample((make(2, 4), make(2, 4)), {"p": 3.0, "eps": 0.0}),
    ],
    kinds={"p": NORM, "eps": NOT_NEGATIVE},
    batch_axis=ROWS,
)
def pairwise_distance(a: Operand[F, *S, N], b: Operand[F, *S, N], p: float = 2.0, eps: float = 1e-6) -> Var[F, *S]:
    """``sum(|a - b + eps| ** p) ** (1 / p)`` along the last axis: how far the vectors of a are from those of b.

    Source: torch.nn.functional.pairwise_distance.

    >>> from dgrr.tape import Tape, ops
    >>> ops.pairwise_distance(Tape().leaf([[3.0, 0.0]]), [[0.0, 4.0]], eps=0.0).numpy()
    array([5.])
    """
    a, b = fitted("pairwise_distance", a, b)
    made: Var[F, *S] = _distance(a, b, p, eps)
    return made


def _cosine(a: Any, b: Any, eps: float) -> Any:
    sizes: list[Any] = [clamp(sqrt(reduce_sum(square(x), -1)), eps, float("inf")) for x in (a, b)]
    return div(reduce_sum(mul(a, b), -1), mul(sizes[0], sizes[1]))


def _reference_cosine(a: Array, b: Array, eps: float = 1e-8) -> Array:
    sums, size = reference_sums.reduce_sum, _reference_size
    with np.errstate(all="ignore"):
        return np.asarray(sums(a * b, -1) / (size(a, eps) * size(b, eps)))


def _reference_size(x: Array, eps: float) -> Array:
    size: Array = formula("sqrt")(reference_sums.reduce_sum(x * x, -1))
    least: Array = np.asarray(eps, x.dtype)
    return np.where(size <= least, least, size)


@composed(
    reference=_reference_cosine,
    samples=lambda make: [Sample((make(3, 5), make(3, 5))), Sample((make(2, 3, 4), make(2, 3, 4)), {"eps": 2.0})],
    kinds={"eps": NOT_NEGATIVE},
    batch_axis=ROWS,
)
def cosine_similarity(a: Operand[F, *S, N], b: Operand[F, *S, N], eps: float = 1e-8) -> Var[F, *S]:
    """``sum(a b) / (max(|a|, eps) max(|b|, eps))`` along the last axis: the cosine of the angle between vectors.

    Source: torch.nn.functional.cosine_similarity.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cosine_similarity(Tape().leaf([[3.0, 0.0], [1.0, 1.0]]), [[0.0, 4.0], [2.0, 2.0]]).numpy().round(4)
    array([0., 1.])
    """
    a, b = fitted("cosine_similarity", a, b)
    made: Var[F, *S] = _cosine(a, b, eps)
    return made


# ------------------------------------------------------------------ losses


def _reference_triplet(
    anchor: Array, positive: Array, negative: Array, margin: float, p: float, eps: float, swap: bool
) -> Array:
    near, far = (_reference_distance(anchor, x, p, eps) for x in (positive, negative))
    if swap:
        far = np.minimum(far, _reference_distance(positive, negative, p, eps))
    return reference_relu((near - far) + anchor.dtype.type(margin))


@overload
def triplet_margin_loss(
    anchor: Operand[F, *S, N], positive: Operand[F, *S, N], negative: Operand[F, *S, N], margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6, swap: bool = False, reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def triplet_margin_loss(
    anchor: Operand[F, *S, N], positive: Operand[F, *S, N], negative: Operand[F, *S, N], margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6, swap: bool = False, *, reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    _reference_triplet,
    kinds={"p": NORM, "eps": NOT_NEGATIVE},
    settings=({"p": 1.0}, {"swap": True, "margin": 0.5}),
)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool
) -> Any:
    """The mean of ``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``, d the `pairwise_distance`.

    With ``swap`` the negative is as far as it is from the nearer of anchor and positive.

    Source: Balntas, Riba, Ponsa and Mikolajczyk (2016); torch.nn.functional.triplet_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[0.0, 0.0]])
    >>> ops.triplet_margin_loss(x, [[3.0, 4.0]], [[0.0, 1.0]], eps=0.0).item()
    5.0
    """
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, _distance(positive, negative, p, eps))
    return relu(shift(sub(near, far), margin))


def _reference_embedding(a: Array, b: Array, targets: Array, margin: float) -> Array:
    cosine, one, least = _reference_cosine(a, b), np.asarray(1, a.dtype), np.asarray(margin, a.dtype)
    return np.where(targets > 0, np.asarray(one - cosine), reference_relu(np.asarray(cosine - least)))


@overload
def cosine_embedding_loss(
    a: Operand[F, *S, N],
    b: Operand[F, *S, N],
    targets: Operand[i64, *S],
    margin: float = 0.0,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def cosine_embedding_loss(
    a: Operand[F, *S, N], b: Operand[F, *S, N], targets: Operand[i64, *S], margin: float = 0.0, *, reduction: Each
) -> Var[F, *S]: ...
@loss(_reference_embedding, draw={"targets": signs}, settings=({"margin": 0.25},))
def cosine_embedding_loss(a: Any, b: Any, targets: Any, margin: float) -> Any:
    """The mean of ``1 - c`` where the target is 1, ``max(c - margin, 0)`` where it is -1; c the `cosine_similarity`.

    Source: torch.nn.functional.cosine_embedding_loss.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 0.0], [1.0, 0.0]])
    >>> ops.cosine_embedding_loss(x, [[1.0, 0.0], [1.0, 0.0]], [1, -1]).item()
    0.5
    """
    cosine = _cosine(a, b, 1e-8)
    return by_sign(targets, shift(neg(cosine), 1.0), relu(shift(cosine, -margin)))
