"""Losses with a margin: of pairs and signs, and of scores of classes."""

from math import prod
from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError
from ...numerics.math.reference import sums as reference_sums
from ...record.kinds.values import Values
from ...record.samples import Make, bad
from ...record.types import C, F, Operand, S
from ...values.dtypes import i64
from ...var.var import Var, shape_of
from ..elementwise.activation import softplus
from ..elementwise.arithmetic import divide, mul, neg, relu, sub
from ..elementwise.functions import shift, square
from ..elementwise.select import equal, greater, where
from ..reduce.reduce import broadcast_to, reduce_mean, reduce_sum
from ..shape.reshape import reshape
from .loss import loss
from .nll_rows import flat_rows, nll_rows
from .reduction import Each, Total, formula, reference_weighted, weighted


def reference_relu(x: Array) -> Array:
    """The positive part, 0 for -0."""
    return np.where(x <= 0, x.dtype.type(0), x)


def signs(make: Make, *shape: int) -> Array:
    """Targets of 1 and -1."""
    return np.where(make.mask(*shape), 1, -1)


def _float_signs(make: Make, *shape: int) -> Array:
    return signs(make, *shape).astype(make.dtype)


def by_sign(targets: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the target is above 0, else ``no``."""
    nothing: Any = np.zeros(shape_of(targets), np.int64)
    made: Any = where(greater(targets, nothing), yes, no)
    return made


@overload
def margin_ranking_loss(
    a: Operand[F, *S], b: Operand[F, *S], targets: Operand[F, *S], margin: float = 0.0, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def margin_ranking_loss(
    a: Operand[F, *S], b: Operand[F, *S], targets: Operand[F, *S], margin: float = 0.0, *, reduction: Each
) -> Var[F, *S]: ...
@loss(
    lambda a, b, targets, margin: reference_relu(targets * (b - a) + a.dtype.type(margin)),
    draw={"targets": _float_signs},
    settings=({"margin": 0.5},),
)
def margin_ranking_loss(a: Any, b: Any, targets: Any, margin: float) -> Any:
    """The mean of ``max(t (b - a) + margin, 0)``: a is to be above b where t is 1, below where it is -1.

    Source: torch.nn.functional.margin_ranking_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.margin_ranking_loss(Tape().leaf([1.0, 1.0]), [3.0, 3.0], [1.0, -1.0]).item()
    1.0
    """
    return relu(shift(mul(targets, sub(b, a)), margin))


@overload
def hinge_embedding_loss(
    x: Var[F, *S], targets: Operand[i64, *S], margin: float = 1.0, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def hinge_embedding_loss(
    x: Var[F, *S], targets: Operand[i64, *S], margin: float = 1.0, *, reduction: Each
) -> Var[F, *S]: ...
@loss(
    lambda x, targets, margin: np.where(targets > 0, x, reference_relu(-x + x.dtype.type(margin))),
    draw={"targets": signs},
    settings=({"margin": 0.5},),
)
def hinge_embedding_loss(x: Any, targets: Any, margin: float) -> Any:
    """The mean of x where the target is 1, of ``max(margin - x, 0)`` where it is -1, for distances x.

    Source: torch.nn.functional.hinge_embedding_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.hinge_embedding_loss(Tape().leaf([0.5, 0.5]), [1, -1], reduction="none").numpy()
    array([0.5, 0.5])
    """
    return by_sign(targets, x, relu(shift(neg(x), margin)))


@overload
def soft_margin_loss(x: Operand[F, *S], targets: Operand[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def soft_margin_loss(x: Operand[F, *S], targets: Operand[F, *S], reduction: Each) -> Var[F, *S]: ...
@loss(lambda x, targets: formula("softplus")(-(targets * x)), draw={"targets": _float_signs})
def soft_margin_loss(x: Any, targets: Any) -> Any:
    """The mean of ``log(1 + exp(-t x))``, for targets t of 1 and -1; finite for finite x of any size.

    Source: torch.nn.functional.soft_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.soft_margin_loss(Tape().leaf([0.0, 1000.0]), [1.0, 1.0]).item(), 4)
    0.3466
    """
    return softplus(neg(mul(targets, x)))


# ------------------------------------------------------------------ scores of classes


def _reference_multi(scores: Array, labels: Array, p: int, margin: float, weight: Any) -> Array:
    real, classes = scores.dtype.type, scores.shape[-1]
    terms = np.zeros(labels.shape, scores.dtype)
    for at in np.ndindex(*labels.shape):
        label = labels[at]
        over = reference_relu((scores[at] - scores[at][label]) + real(margin))
        over[label] = 0
        term = reference_sums.reduce_sum(over if p == 1 else over * over, -1) / real(classes)
        terms[at] = term if weight is None else term * weight[label]
    return terms


@overload
def multi_margin_loss(
    scores: Var[F, *S, C], labels: Operand[i64, *S], p: int = 1, margin: float = 1.0, weight: Operand[F,
    C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def multi_margin_loss(
    scores: Var[F, *S, C], labels: Operand[i64, *S], p: int = 1, margin: float = 1.0, weight: Operand[F,
    C] | None = None, *,
    reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    _reference_multi,
    kinds={"p": Values("1 or 2", lambda p: p in (1, 2), (3, 0, -1))},
    settings=({"p": 2}, {"p": 2, "margin": 0.5}),
    errors=(
        bad(BoundsError, "multi_margin_loss: argument 'labels': expected a class from 0 to 2, got 3 at position 1",
            (2, 3), np.array([0, 3])),
    ),
)  # fmt: skip
def multi_margin_loss(scores: Any, labels: Any, p: int, margin: float, weight: Any) -> Any:
    """The mean of ``sum(max(margin - x[label] + x[c], 0) ** p) / classes`` over all classes c but the label.

    ``weight`` multiplies the term of each label; the mean divides by the number of rows all the same. The classes stand
    last, behind axes as those of labels.

    Source: torch.nn.functional.multi_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.multi_margin_loss(Tape().leaf([[2.0, 0.0, 1.5, 4.0]]), [0]).item()
    0.875
    """
    *leading, classes = shape_of(scores)
    shape, name = (prod(leading), classes), "multi_margin_loss"
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
    return reshape(terms, tuple(leading))


def _repeated(x: Any, shape: tuple[int, int]) -> Any:
    """An element for each row, as often as there are classes."""
    return broadcast_to(reshape(x, (shape[0], 1)), shape)


def _reference_multilabel(scores: Array, targets: Array, weight: Any) -> Array:
    terms = formula("softplus")(scores) - scores * targets
    return np.asarray(reference_sums.reduce_sum(reference_weighted(terms, weight), -1, mean=True))


@overload
def multilabel_soft_margin_loss(
    scores: Operand[F, *S, C],
    targets: Operand[F, *S, C],
    weight: Operand[F, C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def multilabel_soft_margin_loss(
    scores: Operand[F, *S, C], targets: Operand[F, *S, C], weight: Operand[F, C] | None = None, *, reduction: Each
) -> Var[F, *S]: ...
@loss(_reference_multilabel, draw={"targets": Make.unit})
def multilabel_soft_margin_loss(scores: Any, targets: Any, weight: Any) -> Any:
    """The mean over classes of the `binary_cross_entropy_with_logits` of each, then over the rows.

    Targets are 1 for the classes of a row, of which there may be several, and 0 for others. ``weight`` multiplies the
    term of each class.

    Source: torch.nn.functional.multilabel_soft_margin_loss.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.multilabel_soft_margin_loss(Tape().leaf([[0.0, 0.0]]), [[1.0, 0.0]]).item(), 4)
    0.6931
    """
    return reduce_mean(weighted(sub(softplus(scores), mul(scores, targets)), weight), -1)
