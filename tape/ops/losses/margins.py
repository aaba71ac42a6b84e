"""Losses with a margin: of pairs and signs, and of scores of classes."""

from math import prod
from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, DomainError, DTypeError, ShapeError
from ...numerics.math import reference_sums
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import C, F, S
from ...values.dtypes import i64
from ...var.var import AnyVar, Var, shape_of
from ..elementwise.activation import softplus
from ..elementwise.arithmetic import divide, mul, neg, relu, sub
from ..elementwise.functions import shift, square
from ..elementwise.select import equal, greater, where
from ..reduce.reduce import broadcast_to, reduce_mean, reduce_sum
from ..shape.reshape import reshape
from .nll_rows import flat_rows, nll_rows
from .reduction import SUMS, formula, mismatch, reduced, reference_reduced, require_reduction, unknown_reduction

Total = Literal["mean", "sum"]


def reference_relu(x: Array) -> Array:
    """The positive part, 0 for -0."""
    return np.where(x <= 0, x.dtype.type(0), x)


def signs(make: Make, *shape: int) -> Array:
    """Targets of 1 and -1."""
    return np.where(make.mask(*shape), 1, -1)


def by_sign(targets: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the target is above 0, else ``no``."""
    nothing: Any = np.zeros(shape_of(targets), np.int64)
    made: Any = where(greater(targets, nothing), yes, no)
    return made


def _reference_ranking(a: Array, b: Array, targets: Array, margin: float = 0.0, reduction: str = "mean") -> Array:
    return reference_reduced(reference_relu(targets * (b - a) + a.dtype.type(margin)), reduction)


def _reference_hinge(x: Array, targets: Array, margin: float = 1.0, reduction: str = "mean") -> Array:
    return reference_reduced(np.where(targets > 0, x, reference_relu(-x + x.dtype.type(margin))), reduction)


@overload
def margin_ranking_loss(
    a: Var[F, *S], b: Var[F, *S], targets: Var[F, *S], margin: float = 0.0, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def margin_ranking_loss(
    a: Var[F, *S], b: Var[F, *S], targets: Var[F, *S], margin: float = 0.0, *, reduction: Literal["none"]
) -> Var[F, *S]: ...
@composed(
    reference=_reference_ranking,
    samples=lambda make: [
        Sample((make(6), make(6), signs(make, 6).astype(make.dtype))),
        Sample((make(3, 4), make(3, 4), signs(make, 3, 4).astype(make.dtype)), {"margin": 0.5, "reduction": "none"}),
    ],
    errors=(
        mismatch("margin_ranking_loss", "b", (3, 1)),
        unknown_reduction("margin_ranking_loss", (2,), (2,), (2,)),
    ),
    excused=SUMS,
)
def margin_ranking_loss(a: AnyVar, b: AnyVar, targets: AnyVar, margin: float = 0.0, reduction: str = "mean") -> AnyVar:
    """The mean of ``max(t (b - a) + margin, 0)``: a is to be above b where t is 1, below where it is -1.

    ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.margin_ranking_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.margin_ranking_loss(Tape().leaf([1.0, 1.0]), [3.0, 3.0], [1.0, -1.0]).item()
    1.0
    """
    require_reduction("margin_ranking_loss", reduction)
    a, b, targets = fitted("margin_ranking_loss", a, b, targets)
    return reduced(relu(shift(mul(targets, sub(b, a)), margin)), reduction)


@overload
def hinge_embedding_loss(
    x: Var[F, *S], targets: Var[i64, *S], margin: float = 1.0, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def hinge_embedding_loss(
    x: Var[F, *S], targets: Var[i64, *S], margin: float = 1.0, *, reduction: Literal["none"]
) -> Var[F, *S]: ...
@composed(
    reference=_reference_hinge,
    samples=lambda make: [
        Sample((make(6), signs(make, 6))),
        Sample((make(3, 4), signs(make, 3, 4)), {"margin": 0.5, "reduction": "none"}),
    ],
    errors=(
        bad(ShapeError, "argument 'targets': expected shape (2,), got (3,)", (2,), np.ones(3, np.int64)),
        bad(DTypeError, "argument 'targets': expected int64, got float32; convert with ops.cast", (2,), (2,)),
        unknown_reduction("hinge_embedding_loss", (2,), np.ones(2, np.int64)),
    ),
    excused=SUMS,
)
def hinge_embedding_loss(x: AnyVar, targets: AnyVar, margin: float = 1.0, reduction: str = "mean") -> AnyVar:
    """The mean of x where the target is 1, of ``max(margin - x, 0)`` where it is -1, for distances x.

    ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.hinge_embedding_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.hinge_embedding_loss(Tape().leaf([0.5, 0.5]), [1, -1], reduction="none").numpy()
    array([0.5, 0.5])
    """
    require_reduction("hinge_embedding_loss", reduction)
    x, targets = fitted("hinge_embedding_loss", x, targets)
    return reduced(by_sign(targets, x, relu(shift(neg(x), margin))), reduction)


def _reference_soft(x: Array, targets: Array, reduction: str = "mean") -> Array:
    return reference_reduced(formula("softplus")(-(targets * x)), reduction)


@overload
def soft_margin_loss(x: Var[F, *S], targets: Var[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def soft_margin_loss(x: Var[F, *S], targets: Var[F, *S], reduction: Literal["none"]) -> Var[F, *S]: ...
@composed(
    reference=_reference_soft,
    samples=lambda make: [
        Sample((make(6), signs(make, 6).astype(make.dtype))),
        Sample((make(3, 4), signs(make, 3, 4).astype(make.dtype)), {"reduction": "none"}),
    ],
    errors=(mismatch("soft_margin_loss", "targets"), unknown_reduction("soft_margin_loss", (2,), (2,))),
    excused=SUMS,
)
def soft_margin_loss(x: AnyVar, targets: AnyVar, reduction: str = "mean") -> AnyVar:
    """The mean of ``log(1 + exp(-t x))``, for targets t of 1 and -1; finite for finite x of any size.

    ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.soft_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.soft_margin_loss(Tape().leaf([0.0, 1000.0]), [1.0, 1.0]).item(), 4)
    0.3466
    """
    require_reduction("soft_margin_loss", reduction)
    x, targets = fitted("soft_margin_loss", x, targets)
    return reduced(softplus(neg(mul(targets, x))), reduction)


# ------------------------------------------------------------------ scores of classes


def _reference_multi(
    scores: Array, labels: Array, weight: Any = None, p: int = 1, margin: float = 1.0, reduction: str = "mean"
) -> Array:
    real, classes = scores.dtype.type, scores.shape[-1]
    terms = np.zeros(labels.shape, scores.dtype)
    for at in np.ndindex(*labels.shape):
        label = labels[at]
        over = reference_relu((scores[at] - scores[at][label]) + real(margin))
        over[label] = 0
        term = reference_sums.reduce_sum(over if p == 1 else over * over, -1) / real(classes)
        terms[at] = term if weight is None else term * weight[label]
    return reference_reduced(terms, reduction)


@overload
def multi_margin_loss(
    scores: Var[F, *S, C],
    labels: Var[i64, *S],
    p: int = 1,
    margin: float = 1.0,
    weight: Var[F, C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def multi_margin_loss(
    scores: Var[F, *S, C],
    labels: Var[i64, *S],
    p: int = 1,
    margin: float = 1.0,
    weight: Var[F, C] | None = None,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_multi,
    samples=lambda make: [
        Sample((make(6, 5), make.indices(5, 6), None)),
        Sample((make(2, 3, 4), make.indices(4, 2, 3), make.positive(4)), {"p": 2, "margin": 0.5, "reduction": "none"}),
        Sample((make(3), np.array(1), make.positive(3)), {"reduction": "sum"}),
    ],
    errors=(
        bad(BoundsError, "multi_margin_loss: argument 'labels': expected a class from 0 to 2, got 3 at position 1",
            (2, 3), np.array([0, 3])),
        bad(ShapeError, "argument 'labels': expected shape (2,), got (3,)", (2, 3), np.array([0, 1, 1])),
        bad(ShapeError, "multi_margin_loss: argument 'weight': expected shape (3,), got (2,)", (2, 3), np.array([0, 1]),
            (2,)),
        bad(DomainError, "multi_margin_loss: argument 'p': expected 1 or 2, got 3", (2, 3), np.array([0, 1]), p=3),
        unknown_reduction("multi_margin_loss", (2, 3), np.array([0, 1])),
    ),
    excused=SUMS,
)  # fmt: skip
def multi_margin_loss(
    scores: AnyVar,
    labels: AnyVar,
    p: int = 1,
    margin: float = 1.0,
    weight: AnyVar | None = None,
    reduction: str = "mean",
) -> AnyVar:
    """The mean of ``sum(max(margin - x[label] + x[c], 0) ** p) / classes`` over all classes c but the label.

    ``weight`` multiplies the term of each label; the mean divides by the number of rows all the same. The classes stand
    last, behind axes as those of labels. ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.multi_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.multi_margin_loss(Tape().leaf([[2.0, 0.0, 1.5, 4.0]]), [0]).item()
    0.875
    """
    name = "multi_margin_loss"
    require_reduction(name, reduction)
    if p not in (1, 2):
        raise DomainError(f"{name}: argument 'p': expected 1 or 2, got {p!r}")
    scores, labels, weight = fitted(name, scores, labels, weight)
    *leading, classes = shape_of(scores)
    shape = (prod(leading), classes)
    x, flat = flat_rows(scores, labels)
    own = _repeated(neg(nll_rows(x, flat, 0.0, None, name)), shape)
    over: Any = relu(shift(sub(x, own), margin))
    every: Any = np.broadcast_to(np.arange(classes), shape)
    nothing: Any = 0.0
    over = where(equal(_repeated(flat, shape), every), nothing, over)
    if p == 2:
        over = square(over)
    terms: Any = divide(reduce_sum(over, -1), max(classes, 1))
    if weight is not None:
        weights: Any = broadcast_to(weight, shape)
        terms = mul(terms, neg(nll_rows(weights, flat, 0.0, None, name)))
    return reduced(reshape(terms, tuple(leading)), reduction)


def _repeated(x: Any, shape: tuple[int, int]) -> Any:
    """An element for each row, as often as there are classes."""
    return broadcast_to(reshape(x, (shape[0], 1)), shape)


def _reference_multilabel(scores: Array, targets: Array, weight: Any = None, reduction: str = "mean") -> Array:
    terms = formula("softplus")(scores) - scores * targets
    if weight is not None:
        terms = terms * weight
    return reference_reduced(reference_sums.reduce_sum(terms, -1, mean=True), reduction)


@overload
def multilabel_soft_margin_loss(
    scores: Var[F, *S, C], targets: Var[F, *S, C], weight: Var[F, C] | None = None, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def multilabel_soft_margin_loss(
    scores: Var[F, *S, C], targets: Var[F, *S, C], weight: Var[F, C] | None = None, *, reduction: Literal["none"]
) -> Var[F, *S]: ...
@composed(
    reference=_reference_multilabel,
    samples=lambda make: [
        Sample((make(6, 5), make.mask(6, 5).astype(make.dtype), None)),
        Sample((make(2, 3, 4), make.unit(2, 3, 4), make.positive(4)), {"reduction": "none"}),
    ],
    errors=(
        mismatch("multilabel_soft_margin_loss", "targets"),
        bad(ShapeError, "multilabel_soft_margin_loss: argument 'weight': expected shape (3,), got (2,)", (2, 3), (2, 3),
            (2,)),
        unknown_reduction("multilabel_soft_margin_loss", (2, 3), (2, 3)),
    ),
    excused=SUMS,
)  # fmt: skip
def multilabel_soft_margin_loss(
    scores: AnyVar, targets: AnyVar, weight: AnyVar | None = None, reduction: str = "mean"
) -> AnyVar:
    """The mean over classes of the `binary_cross_entropy_with_logits` of each, then over the rows.

    Targets are 1 for the classes of a row, of which there may be several, and 0 for others. ``weight`` multiplies the
    term of each class. ``reduction="sum"`` adds the terms of the rows up, ``"none"`` gives them.

    Source: torch.nn.functional.multilabel_soft_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.multilabel_soft_margin_loss(Tape().leaf([[0.0, 0.0]]), [[1.0, 0.0]]).item(), 4)
    0.6931
    """
    name = "multilabel_soft_margin_loss"
    require_reduction(name, reduction)
    scores, targets, weight = fitted(name, scores, targets, weight)
    terms: Any = sub(softplus(scores), mul(scores, targets))
    if weight is not None:
        terms = mul(terms, broadcast_to(weight, shape_of(terms)))
    return reduced(reduce_mean(terms, -1), reduction)
