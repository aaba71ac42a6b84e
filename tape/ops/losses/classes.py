"""Losses of labels and of probabilities, with weights of classes, any leading shape and every reduction."""

from collections.abc import Callable
from math import prod
from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, DomainError, DTypeError, ShapeError
from ...numerics.math import reference_sums
from ...numerics.math.exact import difference, quotient
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import C, F, S
from ...values.dtypes import i64
from ...var.var import AnyVar, Var, shape_of
from ..elementwise.arithmetic import div, mul, neg, scale
from ..elementwise.functions import shift
from ..reduce.reduce import broadcast_to, reduce_sum
from ..reduce.softmax import log_softmax
from ..shape.reshape import reshape
from . import cross_entropy as plain_entropy, nll as plain_nll
from .nll import check_smoothing, misshapen
from .nll_rows import flat_rows, nll_rows, reference_rows
from .reduction import SUMS, formula, reduced, reference_reduced, require_reduction, unknown_reduction

Total = Literal["mean", "sum"]
ROWS = np.array([[2, -1, 0], [1, 1, 2]])


def _is_plain(scores: Any, labels: Any, weight: Any, reduction: str) -> bool:
    """Whether one op says it all, or says what is wrong: rows of scores, a mean, no weights of classes."""
    if weight is not None or reduction != "mean":
        return False
    shape = tuple(getattr(scores, "shape", (0, 0)))
    return len(shape) == 2 or tuple(getattr(labels, "shape", ())) != shape[:-1]


def _of_rows(
    name: str, log_probs: Any, labels: Any, smoothing: float, ignore: int | None, weight: Any, reduction: str
) -> Any:
    """The terms of rows, reduced; a mean divides by the weights of the labels that count."""
    if weight is None:
        return reduced(nll_rows(log_probs, labels, smoothing, ignore, name), reduction)
    weights: Any = broadcast_to(weight, shape_of(log_probs))
    terms: Any = nll_rows(mul(log_probs, weights), labels, smoothing, ignore, name)
    if reduction != "mean":
        return reduced(terms, reduction)
    return div(reduce_sum(terms), neg(reduce_sum(nll_rows(weights, labels, 0.0, ignore, name))))


def _reference(
    log_probs: Array, labels: Array, label_smoothing: float, ignore_index: int | None, weight: Any, reduction: str
) -> Array:
    """Row by row."""
    rows, flat = log_probs.reshape(-1, log_probs.shape[-1]), labels.reshape(-1)
    real = rows.dtype.type
    terms = reference_rows(rows if weight is None else rows * weight, flat, label_smoothing, ignore_index)
    if reduction == "none":
        return terms.reshape(labels.shape)
    total = reference_sums.reduce_sum(terms)
    if reduction == "sum":
        return total
    counted = [real(0 if k == ignore_index else 1 if weight is None else weight[k]) for k in flat]
    count = real(sum(counted)) if weight is None else reference_sums.row_sum(np.array(counted, rows.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(total / count)


def _reference_nll(
    log_probs: Array, labels: Array, weight: Any = None, label_smoothing: float = 0.0, ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    return _reference(log_probs, labels, label_smoothing, ignore_index, weight, reduction)


def _reference_cross_entropy(
    logits: Array, labels: Array, weight: Any = None, label_smoothing: float = 0.0, ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    if weight is None and reduction == "mean":
        flat = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
        return np.asarray(formula("cross_entropy")(*flat, label_smoothing, ignore_index))
    log_probs = reference_sums.log_softmax(logits)
    return _reference(log_probs, labels, label_smoothing, ignore_index, weight, reduction)


def _samples(make: Make) -> list[Sample]:
    """The plain form; then weights, several leading axes and none, and each reduction, with holes and smoothing."""
    several, holes = make(2, 3, 4), {"ignore_index": -1}
    return [
        Sample((make(6, 10), make.indices(10, 6), None)),
        Sample((several, ROWS), holes),
        Sample((several, ROWS, make.positive(4)), {**holes, "label_smoothing": 0.25}),
        Sample((several, ROWS, None), {**holes, "label_smoothing": 0.1, "reduction": "none"}),
        Sample((make(5, 3), np.array([0, 2, 1, 1, 0]), make.positive(3)), {"reduction": "sum"}),
        Sample((make(4), np.array(2), make.positive(4)), {"reduction": "none"}),
    ]


def _bads(name: str) -> tuple[Any, ...]:
    labels = np.array([0, 1])
    return (
        bad(BoundsError, f"{name}: argument 'labels': expected a class from 0 to 2, got 3 at position 1", (2, 3),
            np.array([0, 3])),
        bad(ShapeError, f"{name}: argument 'labels': expected shape (2,), got (3,)", (2, 3), np.array([0, 1, 1])),
        bad(ShapeError, f"{name}: argument 'weight': expected shape (3,), got (2,)", (2, 3), labels, (2,)),
        bad(DomainError, f"{name}: argument 'label_smoothing': expected a number from 0 to 1, got 1.5", (2, 3), labels,
            label_smoothing=1.5),
        bad(DomainError, f"{name}: argument 'label_smoothing': expected a number from 0 to 1, got 1.5", (2, 3), labels,
            label_smoothing=1.5, reduction="sum"),
        unknown_reduction(name, (2, 3), labels),
        *misshapen(name),
    )  # fmt: skip


@overload
def nll_loss(
    log_probs: Var[F, *S, C],
    labels: Var[i64, *S],
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    weight: Var[F, C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def nll_loss(
    log_probs: Var[F, *S, C],
    labels: Var[i64, *S],
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    weight: Var[F, C] | None = None,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_nll,
    samples=_samples,
    errors=_bads("nll_loss"),
    excused=SUMS,
)
def nll_loss(
    log_probs: AnyVar,
    labels: AnyVar,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    weight: AnyVar | None = None,
    reduction: str = "mean",
) -> AnyVar:
    """The mean of ``-log_probs[label]`` over the rows whose label is not ``ignore_index``; NaN if there is none.

    Smoothing by s replaces the label by ``1 - s`` of it and ``s / classes`` of every class. ``weight`` multiplies the
    log-probabilities of each class, and the mean divides by the weights of the labels that count. The classes stand
    last, behind axes as those of labels. ``reduction="sum"`` adds the terms of the rows up, ``"none"`` gives them, 0
    for a row that is left out.

    Source: torch.nn.functional.nll_loss; smoothing by Szegedy, Vanhoucke, Ioffe, Shlens and Wojna (2016).

    >>> from dgrr.tape import Tape, ops
    >>> ops.nll_loss(Tape().leaf([[-1.0, -2.0], [-3.0, -4.0]]), [0, 1]).item()
    2.5
    """
    given = labels, label_smoothing, ignore_index, weight, reduction
    return _by_labels("nll_loss", plain_nll.nll_loss, lambda rows: rows, log_probs, *given)


@overload
def cross_entropy(
    logits: Var[F, *S, C],
    labels: Var[i64, *S],
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    weight: Var[F, C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def cross_entropy(
    logits: Var[F, *S, C],
    labels: Var[i64, *S],
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    weight: Var[F, C] | None = None,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_cross_entropy,
    samples=_samples,
    errors=(
        *_bads("cross_entropy"),
        bad(
            DTypeError,
            "got float32; give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)",
            (2, 3),
            (2, 3),
        ),
    ),
    excused=SUMS,
)
def cross_entropy(
    logits: AnyVar,
    labels: AnyVar,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    weight: AnyVar | None = None,
    reduction: str = "mean",
) -> AnyVar:
    """The mean over the batch of ``-log_softmax(logits)[label]``, for integer labels.

    Smoothing by s replaces the label by ``1 - s`` of it and ``s / classes`` of every class. Rows whose label is
    ``ignore_index`` are left out; the mean of none is NaN. ``weight``, ``reduction`` and leading axes are as in
    `nll_loss`. `soft_cross_entropy` takes probabilities. A connectionist temporal loss (CTC) is not among the losses.

    Source: torch.nn.functional.cross_entropy; smoothing by Szegedy, Vanhoucke, Ioffe, Shlens and Wojna (2016).

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.cross_entropy(Tape().leaf([[0.0, 0.0]]), [1]).item(), 4)
    0.6931
    """
    given = labels, label_smoothing, ignore_index, weight, reduction
    return _by_labels("cross_entropy", plain_entropy.cross_entropy, log_softmax, logits, *given)


def _by_labels(
    name: str,
    plain: Callable[..., AnyVar],
    log_probs_of: Callable[[Any], Any],
    scores: Any,
    labels: Any,
    smoothing: float,
    ignore: int | None,
    weight: Any,
    reduction: str,
) -> AnyVar:
    """The loss of labels, by its plain form where that says it all, else of rows of log-probabilities."""
    if _is_plain(scores, labels, weight, reduction):
        return plain(scores, labels, smoothing, ignore)
    require_reduction(name, reduction)
    check_smoothing(name, smoothing)
    scores, labels, weight = fitted(name, scores, labels, weight)
    rows, flat = flat_rows(scores, labels)
    if weight is None and reduction == "mean":
        return plain(rows, flat, smoothing, ignore)
    return _as_labels(_of_rows(name, log_probs_of(rows), flat, smoothing, ignore, weight, reduction), labels, reduction)


def _as_labels(made: Any, labels: Any, reduction: str) -> AnyVar:
    """Terms in the shape of the labels."""
    shape = shape_of(labels)
    shaped: AnyVar = reshape(made, shape) if reduction == "none" and len(shape) != 1 else made
    return shaped


def _reference_soft(
    logits: Array, targets: Array, weight: Any = None, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Array:
    real, n = logits.dtype.type, logits.shape[-1]
    if weight is None and reduction == "mean":
        flat = logits.reshape(-1, n), targets.reshape(-1, n)
        return np.asarray(formula("soft_cross_entropy")(*flat, label_smoothing))
    if label_smoothing:
        targets = targets * real(1.0 - label_smoothing) + real(label_smoothing / n)
    products = targets * reference_sums.log_softmax(logits)
    return reference_reduced(
        -reference_sums.reduce_sum(products if weight is None else products * weight, -1), reduction
    )


@overload
def soft_cross_entropy(
    logits: Var[F, *S, C],
    targets: Var[F, *S, C],
    label_smoothing: float = 0.0,
    weight: Var[F, C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def soft_cross_entropy(
    logits: Var[F, *S, C],
    targets: Var[F, *S, C],
    label_smoothing: float = 0.0,
    weight: Var[F, C] | None = None,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_soft,
    samples=lambda make: [
        Sample((make(6, 10), make.unit(6, 10), None)),
        Sample((make(2, 3, 4), make.unit(2, 3, 4)), {"label_smoothing": 0.25}),
        Sample((make(2, 3, 4), make.unit(2, 3, 4), make.positive(4)), {"label_smoothing": 0.25}),
        Sample((make(5, 3), make.unit(5, 3)), {"reduction": "sum"}),
        Sample((make(3), make.unit(3), make.positive(3)), {"reduction": "none"}),
    ],
    errors=(
        bad(ShapeError, "soft_cross_entropy: argument 'targets': expected shape (2, 3), got (2, 1)", (2, 3), (2, 1)),
        bad(ShapeError, "soft_cross_entropy: argument 'weight': expected shape (3,), got (2,)", (2, 3), (2, 3), (2,)),
        bad(
            DomainError,
            "argument 'label_smoothing': expected a number from 0 to 1, got 2.0",
            (2, 3),
            (2, 3),
            label_smoothing=2.0,
        ),
        unknown_reduction("soft_cross_entropy", (2, 3), (2, 3)),
    ),
    excused=SUMS,
)
def soft_cross_entropy(
    logits: AnyVar,
    targets: AnyVar,
    label_smoothing: float = 0.0,
    weight: AnyVar | None = None,
    reduction: str = "mean",
) -> AnyVar:
    """The mean over the batch of ``-sum(targets * log_softmax(logits))``, for the probability of each class.

    Both sides get gradients. Smoothing by s takes ``(1 - s) * targets + s / classes`` in the place of targets.
    ``weight`` multiplies the term of each class; the mean divides by the number of rows all the same. The classes stand
    last, behind any axes. ``reduction="sum"`` adds the terms of the rows up, ``"none"`` gives them.

    Source: torch.nn.functional.cross_entropy with probabilities.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.soft_cross_entropy(Tape().leaf([[0.0, 0.0]]), [[0.25, 0.75]]).item(), 4)
    0.6931
    """
    name = "soft_cross_entropy"
    require_reduction(name, reduction)
    check_smoothing(name, label_smoothing)
    logits, targets, weight = fitted(name, logits, targets, weight)
    *leading, classes = shape_of(logits)
    if weight is None and reduction == "mean":
        rows = (prod(leading), classes)
        given = (logits, targets) if len(leading) == 1 else (reshape(logits, rows), reshape(targets, rows))
        return plain_entropy.soft_cross_entropy(*given, label_smoothing)
    if label_smoothing:
        kept = scale(targets, difference(1.0, label_smoothing))
        targets = shift(kept, quotient(label_smoothing, max(classes, 1)))
    products: Any = mul(targets, log_softmax(logits))
    if weight is not None:
        products = mul(products, broadcast_to(weight, shape_of(products)))
    return reduced(neg(reduce_sum(products, -1)), reduction)
