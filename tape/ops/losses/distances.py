"""Distances and angles between vectors along the last axis, and losses of them."""

from typing import Any, Literal, TypeVar, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, DTypeError
from ...numerics.math import reference_sums
from ...numerics.math.exact import quotient
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import F, S
from ...values.dtypes import i64
from ...var.var import AnyVar, Var
from ..elementwise.arithmetic import div, mul, neg, power, relu, sqrt, sub
from ..elementwise.clamp import absolute, clamp, minimum
from ..elementwise.functions import shift, square
from ..reduce.reduce import reduce_sum
from .margins import by_sign, reference_relu, signs
from .reduction import SUMS, formula, mismatch, reduced, reference_reduced, require_reduction, unknown_reduction

N = TypeVar("N")
Total = Literal["mean", "sum"]
MOST_POWER = 1 << 20
"""The largest exponent of `power`."""
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


def _require_norm(name: str, p: float, eps: float) -> None:
    if not 0 < p <= MOST_POWER:
        raise DomainError(f"{name}: argument 'p': expected a positive number of at most 2**20, got {p!r}")
    if not 0 <= eps < float("inf"):
        raise DomainError(f"{name}: argument 'eps': expected a finite number of at least 0, got {eps!r}")


@composed(
    reference=_reference_distance,
    samples=lambda make: [
        Sample((make(3, 5), make(3, 5))),
        Sample((make(2, 3, 4), make(2, 3, 4)), {"p": 1.0}),
        Sample((make(2, 4), make(2, 4)), {"p": 3.0, "eps": 0.0}),
    ],
    errors=(
        mismatch("pairwise_distance", "b"),
        bad(DomainError, "argument 'p': expected a positive number of at most 2**20, got 0.0", (2, 3), (2, 3), p=0.0),
        bad(DomainError, "argument 'eps': expected a finite number of at least 0, got -1.0", (2, 3), (2, 3), eps=-1.0),
    ),
    batch_axis=ROWS,
)
def pairwise_distance(a: Var[F, *S, N], b: Var[F, *S, N], p: float = 2.0, eps: float = 1e-6) -> Var[F, *S]:
    """``sum(|a - b + eps| ** p) ** (1 / p)`` along the last axis: how far the vectors of a are from those of b.

    Source: torch.nn.functional.pairwise_distance.

    >>> from dgrr.tape import Tape, ops
    >>> ops.pairwise_distance(Tape().leaf([[3.0, 0.0]]), [[0.0, 4.0]], eps=0.0).numpy()
    array([5.])
    """
    _require_norm("pairwise_distance", p, eps)
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
    samples=lambda make: [
        Sample((make(3, 5), make(3, 5))),
        Sample((make(2, 3, 4), make(2, 3, 4)), {"eps": 2.0}),
    ],
    errors=(
        mismatch("cosine_similarity", "b"),
        bad(DomainError, "argument 'eps': expected a finite number of at least 0, got -1.0", (2, 3), (2, 3), eps=-1.0),
    ),
    batch_axis=ROWS,
)
def cosine_similarity(a: Var[F, *S, N], b: Var[F, *S, N], eps: float = 1e-8) -> Var[F, *S]:
    """``sum(a b) / (max(|a|, eps) max(|b|, eps))`` along the last axis: the cosine of the angle between vectors.

    Source: torch.nn.functional.cosine_similarity.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cosine_similarity(Tape().leaf([[3.0, 0.0], [1.0, 1.0]]), [[0.0, 4.0], [2.0, 2.0]]).numpy().round(4)
    array([0., 1.])
    """
    _require_norm("cosine_similarity", 1.0, eps)
    a, b = fitted("cosine_similarity", a, b)
    made: Var[F, *S] = _cosine(a, b, eps)
    return made


def _reference_triplet(
    anchor: Array, positive: Array, negative: Array, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Array:  # fmt: skip
    near, far = (_reference_distance(anchor, x, p, eps) for x in (positive, negative))
    if swap:
        far = np.minimum(far, _reference_distance(positive, negative, p, eps))
    terms = (near - far) + anchor.dtype.type(margin)
    return reference_reduced(reference_relu(terms), reduction)


def _triplets(make: Make) -> list[Sample]:
    return [
        Sample((make(4, 5), make(4, 5), make(4, 5))),
        Sample((make(2, 3, 4), make(2, 3, 4), make(2, 3, 4)), {"swap": True, "margin": 0.5, "reduction": "sum"}),
        Sample((make(3, 4), make(3, 4), make(3, 4)), {"p": 1.0, "reduction": "none"}),
    ]


@overload
def triplet_margin_loss(
    anchor: Var[F, *S, N],
    positive: Var[F, *S, N],
    negative: Var[F, *S, N],
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def triplet_margin_loss(
    anchor: Var[F, *S, N],
    positive: Var[F, *S, N],
    negative: Var[F, *S, N],
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_triplet,
    samples=_triplets,
    errors=(
        mismatch("triplet_margin_loss", "positive", (3, 1)),
        bad(
            DomainError,
            "argument 'p': expected a positive number of at most 2**20, got -2.0",
            (2, 3),
            (2, 3),
            (2, 3),
            p=-2.0,
        ),
        unknown_reduction("triplet_margin_loss", (2, 3), (2, 3), (2, 3)),
    ),
    excused=SUMS,
)
def triplet_margin_loss(
    anchor: AnyVar,
    positive: AnyVar,
    negative: AnyVar,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> AnyVar:
    """The mean of ``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``, d the `pairwise_distance`.

    With ``swap`` the negative is as far as it is from the nearer of anchor and positive. ``reduction="sum"`` adds the
    terms up, ``"none"`` gives them.

    Source: Balntas, Riba, Ponsa and Mikolajczyk (2016); torch.nn.functional.triplet_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[0.0, 0.0]])
    >>> ops.triplet_margin_loss(x, [[3.0, 4.0]], [[0.0, 1.0]], eps=0.0).item()
    5.0
    """
    name = "triplet_margin_loss"
    require_reduction(name, reduction)
    _require_norm(name, p, eps)
    anchor, positive, negative = fitted(name, anchor, positive, negative)
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, _distance(positive, negative, p, eps))
    return reduced(relu(shift(sub(near, far), margin)), reduction)


def _reference_embedding(a: Array, b: Array, targets: Array, margin: float = 0.0, reduction: str = "mean") -> Array:
    cosine, one, least = _reference_cosine(a, b), np.asarray(1, a.dtype), np.asarray(margin, a.dtype)
    alike: Array = one - cosine
    return reference_reduced(np.where(targets > 0, alike, reference_relu(cosine - least)), reduction)


@overload
def cosine_embedding_loss(
    a: Var[F, *S, N], b: Var[F, *S, N], targets: Var[i64, *S], margin: float = 0.0, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def cosine_embedding_loss(
    a: Var[F, *S, N], b: Var[F, *S, N], targets: Var[i64, *S], margin: float = 0.0, *, reduction: Literal["none"]
) -> Var[F, *S]: ...
@composed(
    reference=_reference_embedding,
    samples=lambda make: [
        Sample((make(6, 5), make(6, 5), signs(make, 6))),
        Sample((make(4, 3), make(4, 3), signs(make, 4)), {"margin": 0.25, "reduction": "none"}),
        Sample((make(3), make(3), signs(make)), {"reduction": "sum"}),
    ],
    errors=(
        mismatch("cosine_embedding_loss", "b", np.ones(3, np.int64)),
        unknown_reduction("cosine_embedding_loss", (2, 3), (2, 3), np.ones(2, np.int64)),
        bad(DTypeError, "argument 'targets': expected int64, got float32; convert with ops.cast", (2, 3), (2, 3), (2,)),
    ),
    excused=SUMS,
)
def cosine_embedding_loss(
    a: AnyVar, b: AnyVar, targets: AnyVar, margin: float = 0.0, reduction: str = "mean"
) -> AnyVar:
    """The mean of ``1 - c`` where the target is 1, ``max(c - margin, 0)`` where it is -1; c the `cosine_similarity`.

    ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.cosine_embedding_loss.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 0.0], [1.0, 0.0]])
    >>> ops.cosine_embedding_loss(x, [[1.0, 0.0], [1.0, 0.0]], [1, -1]).item()
    0.5
    """
    name = "cosine_embedding_loss"
    require_reduction(name, reduction)
    a, b, targets = fitted(name, a, b, targets)
    cosine = _cosine(a, b, 1e-8)
    terms = by_sign(targets, shift(neg(cosine), 1.0), relu(shift(cosine, -margin)))
    return reduced(terms, reduction)
