"""The negative log-likelihood of each row, which all losses of labels are made of, and its gradients."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.math.exact import difference, quotient
from ...numerics.math.reference import sums as reference_sums
from ...numerics.simd import sums
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, call
from ...record.op import OPS
from ...record.op_decorator import op
from ...record.samples import Make, Sample
from ...record.types import B, C, F
from ...values.dtypes import i64
from ...values.spec import Spec
from ...var.var import Gradual, Var, shape_of
from ..shape.reshape import reshape
from . import kernels
from .labels import labelled, outside, refusal
from .mean import SUMS


def class_weights(classes: int, label_smoothing: float) -> tuple[float, float]:
    """What the label's class weighs, and what each class weighs besides."""
    return difference(1.0, label_smoothing), quotient(label_smoothing, max(classes, 1))


def _ignored(ignore_index: int | None) -> tuple[int, int]:
    """The words of a kernel: whether a label is ignored, and which."""
    return int(ignore_index is not None), ignore_index or 0


def lower_rows(log_probs: Slot, labels: Slot, label_smoothing: float, ignore_index: int | None, caller: str) -> Slot:
    """The terms of the rows; ``caller`` is the loss that an error names."""
    rows, n = log_probs.shape
    words = (rows, n, *_ignored(ignore_index), *class_weights(n, label_smoothing))
    return call(kernels.nll_rows, [log_probs, labels], (rows,), *words, work=rows * n, refusal=refusal(caller, n))


def lower_mean(log_probs: Slot, labels: Slot, label_smoothing: float, ignore_index: int | None, caller: str) -> Slot:
    """Their mean over the rows that count."""
    (rows,), terms = labels.shape, lower_rows(log_probs, labels, label_smoothing, ignore_index, caller)
    if ignore_index is None:
        return call(sums.mean_rows, [terms], (), 1, rows, work=rows)
    return call(kernels.mean_of_counted, [terms, labels], (), rows, *_ignored(ignore_index), work=rows)


def reference_rows(
    log_probs: Array, labels: Array, label_smoothing: float = 0.0, ignore_index: int | None = None, caller: str = ""
) -> Array:
    """The term of each row, slow and obvious."""
    real, out = log_probs.dtype.type, np.zeros(len(labels), log_probs.dtype)
    own, each = (real(w) for w in class_weights(log_probs.shape[1], label_smoothing))
    for r, label in enumerate(labels):
        if label != ignore_index:
            out[r] = -(log_probs[r, label] * own)
            if each:
                out[r] = out[r] - reference_sums.row_sum(log_probs[r]) * each
    return out


def counted(labels: Array, ignore_index: int | None) -> int:
    """How many rows count."""
    return sum(int(label) != ignore_index for label in labels)


def reference_mean(log_probs: Array, labels: Array, label_smoothing: float, ignore_index: int | None) -> Array:
    """Their mean over the rows that count."""
    terms = reference_rows(log_probs, labels, label_smoothing, ignore_index)
    return np.asarray(reference_sums.row_sum(terms) / terms.dtype.type(counted(labels, ignore_index)))


@op(
    lower=lower_rows,
    vjp=(
        lambda g, labels, log_probs_shape, label_smoothing, ignore_index: nll_rows_grad(
            g, labels, log_probs_shape[1], label_smoothing, ignore_index
        ),
        NO_GRAD,
    ),
    jvp=lambda dlog_probs, labels, label_smoothing, ignore_index: nll_rows(
        dlog_probs, labels, label_smoothing, ignore_index
    ),
    reference=reference_rows,
    samples=lambda make: labelled(make)[:5],
    errors=(outside("nll_rows", (2, 3), np.array([0, 3])),),
    batch_axis={"log_probs": 0, "labels": 0},
    private=True,
)
def nll_rows(
    log_probs: Var[F, B, C],
    labels: Var[i64, B],
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    caller: str = "nll_rows",
) -> Var[F, B]:
    """``-log_probs[label]`` of each row, smoothed as nll_loss; 0 where the label is ``ignore_index``.

    ``caller`` is the loss that an error names.
    """
    ...


# ------------------------------------------------------------------ gradients


def _infer_grad(g: Spec, labels: Spec, classes: int, **_: Any) -> Spec:
    return Spec((*labels.shape, classes), g.dtype)


def _lower_grad(
    name: str, g: Slot, labels: Slot, classes: int, label_smoothing: float, ignore_index: int | None
) -> Slot:
    """Of the terms where g has an element for each, else of their mean."""
    (rows,) = labels.shape
    weights, by_row = class_weights(classes, label_smoothing), len(g.shape)
    words, said = (rows, classes, *_ignored(ignore_index), *weights, by_row), refusal(name, classes)
    return call(kernels.nll_grad, [g, labels], (rows, classes), *words, work=rows * classes, refusal=said)


def _reference_grad(g: Array, labels: Array, classes: int, label_smoothing: float, ignore_index: int | None) -> Array:
    real, out = g.dtype.type, np.zeros((len(labels), classes), g.dtype)
    own, each = (real(w) for w in class_weights(classes, label_smoothing))
    for row, weight, label in zip(out, g, labels, strict=True):
        if label != ignore_index:
            row[:] = -(weight * each) if each else real(0)
            row[label] = row[label] - weight * own
    return out


def _reference_mean_grad(weight: Array, labels: Array, *options: Any, **attrs: Any) -> Array:
    share = weight[()] / weight.dtype.type(counted(labels, attrs["ignore_index"]))
    return _reference_grad(np.full(len(labels), share, weight.dtype), labels, *options, **attrs)


def _grad_samples(make: Make, many: int, by_row: bool) -> list[Sample]:
    rows: list[Any] = [(*s.arrays, s.attrs) for s in labelled(make)[:many]]
    return [
        Sample((make(*(labels.shape if by_row else ())), labels), {"classes": scores.shape[1], **attrs})
        for scores, labels, attrs in rows
    ]


UNSMOOTHED = {"classes": 3, "label_smoothing": 0.0, "ignore_index": None}


@op(
    infer=_infer_grad,
    lower=partial(_lower_grad, "nll_rows_grad"),
    vjp=(lambda g, labels, label_smoothing, ignore_index: nll_rows(g, labels, label_smoothing, ignore_index), NO_GRAD),
    jvp=lambda dg, labels, classes, label_smoothing, ignore_index: nll_rows_grad(
        dg, labels, classes, label_smoothing, ignore_index
    ),
    reference=_reference_grad,
    samples=lambda make: _grad_samples(make, 5, by_row=True),
    errors=(outside("nll_rows_grad", (2,), np.array([0, 3]), **UNSMOOTHED),),
    batch_axis={"g": 0, "labels": 0},
    private=True,
)
def nll_rows_grad(
    g: Var[F, B], labels: Var[i64, B], classes: int, label_smoothing: float, ignore_index: int | None
) -> Gradual[F]:
    """The gradient of nll_rows by its rows."""
    ...


@op(
    infer=_infer_grad,
    lower=partial(_lower_grad, "nll_grad"),
    vjp=(
        lambda g, labels, label_smoothing, ignore_index: OPS["nll_loss"](g, labels, label_smoothing, ignore_index),
        NO_GRAD,
    ),
    jvp=lambda dweight, labels, classes, label_smoothing, ignore_index: nll_grad(
        dweight, labels, classes, label_smoothing, ignore_index
    ),
    reference=_reference_mean_grad,
    samples=lambda make: _grad_samples(make, 6, by_row=False),  # of no rows there is no derivative
    errors=(outside("nll_grad", (), np.array([0, 3]), **UNSMOOTHED),),
    excused=SUMS,
    private=True,
)
def nll_grad(
    weight: Var[F], labels: Var[i64, B], classes: int, label_smoothing: float, ignore_index: int | None
) -> Gradual[F]:
    """The gradient of nll_loss times ``weight``, which is divided by the number of rows that count."""
    ...


def flat_rows(scores: Any, labels: Any) -> tuple[Any, Any]:
    """Rows of scores, and as many labels: what there is where it is that already."""
    *leading, classes = shape_of(scores)
    if len(leading) == 1:
        return scores, labels
    rows = prod(leading)
    return reshape(scores, (rows, classes)), reshape(labels, (rows,))
