"""The negative log-likelihood of each row, which weights and other reductions are made of, and its adjoint."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError
from ...numerics.math import reference_sums
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, call
from ...record.op import op
from ...record.samples import Make, Sample, bad
from ...record.types import B, C, F
from ...values.dtypes import i64
from ...values.spec import Spec
from ...var.var import Gradual, Var, shape_of
from ..shape.reshape import reshape
from . import kernels
from .nll import class_weights, ignored_words, labelled, refusal


def _words(rows: int, classes: int, label_smoothing: float, ignore_index: int | None) -> tuple[Any, ...]:
    return (rows, classes, *ignored_words(ignore_index), *class_weights(classes, label_smoothing))


def _lower(log_probs: Slot, labels: Slot, label_smoothing: float, ignore_index: int | None, caller: str) -> Slot:
    rows, n = log_probs.shape
    words, said = _words(rows, n, label_smoothing, ignore_index), refusal(caller, n)
    return call(kernels.nll_rows, [log_probs, labels], (rows,), *words, work=rows * n, refusal=said)


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


def _samples(make: Make) -> list[Sample]:
    return labelled(make)[:5]


@op(
    lower=_lower,
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
    samples=_samples,
    errors=(
        bad(BoundsError, "nll_rows: argument 'labels': expected a class from 0 to 2, got 3 at position 1",
            (2, 3), np.array([0, 3])),
    ),
    batch_axis={"log_probs": 0, "labels": 0},
    private=True,
)  # fmt: skip
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


def _lower_grad(g: Slot, labels: Slot, classes: int, label_smoothing: float, ignore_index: int | None) -> Slot:
    (rows,) = labels.shape
    words, said = (*_words(rows, classes, label_smoothing, ignore_index), 1), refusal("nll_rows_grad", classes)
    return call(kernels.nll_grad, [g, labels], (rows, classes), *words, work=rows * classes, refusal=said)


def _reference_grad(g: Array, labels: Array, classes: int, label_smoothing: float, ignore_index: int | None) -> Array:
    real, out = g.dtype.type, np.zeros((len(labels), classes), g.dtype)
    own, each = (real(w) for w in class_weights(classes, label_smoothing))
    for row, weight, label in zip(out, g, labels, strict=True):
        if label != ignore_index:
            row[:] = -(weight * each) if each else real(0)
            row[label] = row[label] - weight * own
    return out


@op(
    infer=lambda g, labels, classes, label_smoothing, ignore_index: Spec((labels.shape[0], classes), g.dtype),
    lower=_lower_grad,
    vjp=(lambda g, labels, label_smoothing, ignore_index: nll_rows(g, labels, label_smoothing, ignore_index), NO_GRAD),
    jvp=lambda dg, labels, classes, label_smoothing, ignore_index: nll_rows_grad(
        dg, labels, classes, label_smoothing, ignore_index
    ),
    reference=_reference_grad,
    samples=lambda make: [
        Sample((make(len(s.arrays[1])), s.arrays[1]), {"classes": s.arrays[0].shape[1], **s.attrs})  # type: ignore[arg-type, union-attr]
        for s in _samples(make)
    ],
    errors=(
        bad(BoundsError, "nll_rows_grad: argument 'labels': expected a class from 0 to 2, got 3 at position 1",
            (2,), np.array([0, 3]), classes=3, label_smoothing=0.0, ignore_index=None),
    ),
    batch_axis={"g": 0, "labels": 0},
    private=True,
)  # fmt: skip
def nll_rows_grad(
    g: Var[F, B], labels: Var[i64, B], classes: int, label_smoothing: float, ignore_index: int | None
) -> Gradual[F]:
    """The gradient of nll_rows by its rows."""
    ...


def flat_rows(scores: Any, labels: Any) -> tuple[Any, Any]:
    """Rows of scores, and as many labels: what there is where it is that already."""
    *leading, classes = shape_of(scores)
    if len(leading) == 1:
        return scores, labels
    rows = prod(leading)
    return reshape(scores, (rows, classes)), reshape(labels, (rows,))
