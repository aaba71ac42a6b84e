"""The negative log-likelihood of integer labels, with weights of classes, label smoothing and a label to ignore."""

from collections.abc import Callable
from functools import partial
from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference import sums as reference_sums
from ...record.derivative import NO_GRAD
from ...record.op import OPS
from ...record.types import C, F, Operand, S
from ...values.dtypes import i64
from ...var.var import Var, shape_of
from ..elementwise.arithmetic import div, mul, neg
from ..reduce.reduce import broadcast_to, reduce_sum
from ..shape.reshape import reshape
from .labels import labelled, labels_advice, misshapen, with_holes
from .loss import loss
from .mean import MeanOp
from .nll_rows import (
    flat_rows,
    lower_mean,
    nll_grad,
    nll_rows,
    reference_mean,
    reference_rows,
)
from .reduction import SMOOTHING, Each, Total, reduced, reference_weighted


def reference_labels(
    log_probs: Array, labels: Array, label_smoothing: float, ignore_index: int | None, weight: Any, reduction: str
) -> Array:
    """Row by row; a mean divides by the weights of the labels that count, and without weights is an op."""
    rows, flat = log_probs.reshape(-1, log_probs.shape[-1]), labels.reshape(-1)
    terms = reference_rows(reference_weighted(rows, weight), flat, label_smoothing, ignore_index)
    if reduction == "none":
        return terms.reshape(labels.shape)
    total = reference_sums.reduce_sum(terms)
    if reduction == "sum":
        return total
    weights: Array = np.array([0 if k == ignore_index else weight[k] for k in flat], rows.dtype)
    return np.asarray(total / reference_sums.row_sum(weights))


def by_labels(
    name: str, log_probs_of: Callable[[Any], Any], scores: Any, labels: Any, label_smoothing: float,
    ignore_index: int | None, weight: Any, reduction: str,
) -> Any:  # fmt: skip
    """The loss of labels under a reduction, from what makes log-probabilities of rows of scores."""
    rows, flat = flat_rows(scores, labels)
    log_probs, shape, options = log_probs_of(rows), shape_of(labels), (label_smoothing, ignore_index, name)
    if weight is not None:
        weights: Any = broadcast_to(weight, shape_of(log_probs))
        terms: Any = nll_rows(mul(log_probs, weights), flat, *options)
        if reduction == "mean":
            return div(reduce_sum(terms), neg(reduce_sum(nll_rows(weights, flat, 0.0, ignore_index, name))))
    else:
        terms = nll_rows(log_probs, flat, *options)
    return reshape(terms, shape) if reduction == "none" and len(shape) != 1 else reduced(terms, reduction)


@overload
def nll_loss(
    log_probs: Var[F, *S, C], labels: Operand[i64, *S], label_smoothing: float = 0.0, ignore_index: int | None = None,
    weight: Operand[F, C] | None = None, reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def nll_loss(
    log_probs: Var[F, *S, C], labels: Operand[i64, *S], label_smoothing: float = 0.0, ignore_index: int | None = None,
    weight: Operand[F, C] | None = None, *, reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    reference_labels,
    mean=MeanOp(
        lower=partial(lower_mean, caller="nll_loss"),
        vjp=(
            lambda g, labels, log_probs_shape, label_smoothing, ignore_index: nll_grad(
                g, labels, log_probs_shape[1], label_smoothing, ignore_index
            ),
            NO_GRAD,
        ),
        jvp=lambda dlog_probs, labels, label_smoothing, ignore_index: OPS["nll_loss"](
            dlog_probs, labels, label_smoothing, ignore_index
        ),
        reference=reference_mean,
        samples=labelled,
        errors=misshapen("nll_loss"),
        advice=partial(labels_advice, "nll_loss"),
    ),
    kinds={"label_smoothing": SMOOTHING},
    settings=({"label_smoothing": 0.25}, {"label_smoothing": 1.0}),
    more=with_holes,
    errors=misshapen("nll_loss"),
)
def nll_loss(
    log_probs: Any, labels: Any, label_smoothing: float, ignore_index: int | None, weight: Any, reduction: str
) -> Any:
    """The mean of ``-log_probs[label]`` over the rows whose label is not ``ignore_index``; NaN if there is none.

    Smoothing by s replaces the label by ``1 - s`` of it and ``s / classes`` of every class. ``weight`` multiplies the
    log-probabilities of each class, and the mean divides by the weights of the labels that count. The classes stand
    last, behind axes as those of labels. The term of a row that is left out is 0.

    Source: torch.nn.functional.nll_loss; smoothing by Szegedy, Vanhoucke, Ioffe, Shlens and Wojna (2016).

    >>> from dgrr.tape import Tape, ops
    >>> ops.nll_loss(Tape().leaf([[-1.0, -2.0], [-3.0, -4.0]]), [0, 1]).item()
    2.5
    """
    given = labels, label_smoothing, ignore_index, weight, reduction
    return by_labels("nll_loss", lambda rows: rows, log_probs, *given)
