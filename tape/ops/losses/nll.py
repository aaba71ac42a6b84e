"""The negative log-likelihood of integer labels, with label smoothing and a label to ignore."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, DomainError, DTypeError, ShapeError
from ...numerics.math import reference_sums
from ...numerics.math.exact import difference, quotient
from ...numerics.simd import sums as reduce_kernels
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, call
from ...record.op import op
from ...record.samples import Bad, Make, Sample, bad
from ...record.types import B, C, F
from ...values.dtypes import i64
from ...values.spec import Spec
from ...var.var import Gradual, Var
from . import kernels

SUMS = {"batch": "it averages over the batch"}
LABEL = "{op}: argument 'labels': expected a class from 0 to {high}, got {{value}} at position {{position}}"
PLAIN: dict[str, Any] = {"label_smoothing": 0.0, "ignore_index": None}


def refusal(op_name: str, classes: int) -> str:
    """What a kernel says of a label that is no class."""
    return LABEL.format(op=op_name, high=classes - 1)


def labels_advice(op_name: str, rows: Spec, labels: Spec) -> str:
    """What to do about rows and labels in the forms that other libraries take."""
    first, shape, given, whole = rows.shape[:1], rows.shape, labels.shape, labels.dtype == i64.dtype
    if len(shape) > 1 and given == shape:
        if not whole and op_name == "cross_entropy":
            return "give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)"
        return f"of one-hot rows take ops.argmax({'ops.cast(labels, np.float32)' if whole else 'labels'}, -1)"
    if not whole:
        return "labels are whole numbers: ops.cast(labels, np.int64)"
    flat = "ops.reshape(labels, (-1,))"
    if given == (*first, 1):
        return f"drop the axis with {flat}"
    if len(shape) > 2 and given == first + shape[2:]:
        order = (0, *range(2, len(shape)), 1)
        return f"move the classes last: ops.reshape(ops.permute(…, {order}), (-1, {shape[1]})) and {flat}"
    return ""


def check_smoothing(op_name: str, label_smoothing: float) -> None:
    """Raise DomainError unless it is a share."""
    if not 0 <= label_smoothing <= 1:
        raise DomainError(
            f"{op_name}: argument 'label_smoothing': expected a number from 0 to 1, got {label_smoothing!r}"
        )


def ignored_words(ignore_index: int | None) -> tuple[int, int]:
    """The words of a kernel: whether a label is ignored, and which."""
    return int(ignore_index is not None), ignore_index or 0


def class_weights(classes: int, label_smoothing: float) -> tuple[float, float]:
    """What the label's class weighs, and what each class weighs besides."""
    return difference(1.0, label_smoothing), quotient(label_smoothing, max(classes, 1))


def lower_nll(op_name: str, log_probs: Slot, labels: Slot, label_smoothing: float, ignore_index: int | None) -> Slot:
    """The terms of the rows, and their mean over the rows that count."""
    rows, n = log_probs.shape
    ignored, said = ignored_words(ignore_index), refusal(op_name, n)
    words = (rows, n, *ignored, *class_weights(n, label_smoothing))
    terms = call(kernels.nll_rows, [log_probs, labels], (rows,), *words, work=rows * n, refusal=said)
    if ignore_index is None:
        return call(reduce_kernels.mean_rows, [terms], (), 1, rows, work=rows)
    return call(kernels.mean_of_counted, [terms, labels], (), rows, *ignored, work=rows)


def reference_nll(
    log_probs: Array, labels: Array, label_smoothing: float = 0.0, ignore_index: int | None = None
) -> Array:
    """The same, slow and obvious."""
    real = log_probs.dtype.type
    own, each = (real(w) for w in class_weights(log_probs.shape[1], label_smoothing))
    terms = np.zeros(len(labels), log_probs.dtype)
    for r, label in enumerate(labels):
        if label != ignore_index:
            terms[r] = -(log_probs[r, label] * own)
            if each:
                terms[r] = terms[r] - reference_sums.row_sum(log_probs[r]) * each
    count = sum(int(label) != ignore_index for label in labels)
    return np.asarray(reference_sums.row_sum(terms) / real(count))


def labelled(make: Make) -> list[Sample]:
    """Rows with labels under every choice of smoothing and ignoring; in the last no row counts."""
    holes = np.array([2, -1, 0, -1, 1])
    return [
        Sample((make(6, 10), make.indices(10, 6)), PLAIN),
        Sample((make(37, 3), make.indices(3, 37)), {**PLAIN, "label_smoothing": 0.1}),
        Sample((make(5, 40), holes), {**PLAIN, "ignore_index": -1}),
        Sample((make(3, 5).T, holes), {"label_smoothing": 0.25, "ignore_index": -1}),
        Sample((make(6, 4), make.indices(4, 6)), {"label_smoothing": 1.0, "ignore_index": 2}),
        Sample((make(0, 3), np.array([], np.int64)), PLAIN),
        Sample((make(2, 3), np.array([1, 1])), {**PLAIN, "ignore_index": 1}),
    ]


def misshapen(op_name: str) -> list[Bad]:
    """The forms that `labels_advice` knows."""
    whole = np.zeros((2, 4), np.int64)
    return [
        bad(DTypeError, "got float32; labels are whole numbers: ops.cast(labels, np.int64)", (2, 3), (2,)),
        bad(
            ShapeError,
            "got (2, 3); of one-hot rows take ops.argmax(ops.cast(labels, np.float32), -1)",
            (2, 3),
            whole[:, :3],
        ),
        bad(ShapeError, "got (2, 1); drop the axis with ops.reshape(labels, (-1,))", (2, 3), whole[:, :1]),
        bad(
            ShapeError,
            "expected shape (B, C), got (2, 3, 4); move the classes last: "
            "ops.reshape(ops.permute(…, (0, 2, 1)), (-1, 3)) and ops.reshape(labels, (-1,))",
            (2, 3, 4),
            whole,
        ),
    ]


def _mean_loss(log_probs: Any, labels: Any, label_smoothing: float, ignore_index: int | None) -> Any:
    """`nll_loss` for its own derivative, which type checkers meet before they know its type."""
    return nll_loss(log_probs, labels, label_smoothing, ignore_index)


def _infer_nll(log_probs: Spec, labels: Spec, label_smoothing: float, ignore_index: int | None) -> Spec:
    check_smoothing("nll_loss", label_smoothing)
    return Spec((), log_probs.dtype)


@op(
    infer=_infer_nll,
    lower=lambda log_probs, labels, label_smoothing, ignore_index: lower_nll(
        "nll_loss", log_probs, labels, label_smoothing, ignore_index
    ),
    vjp=(
        lambda g, labels, log_probs_shape, label_smoothing, ignore_index: nll_grad(
            g, labels, log_probs_shape[1], label_smoothing, ignore_index
        ),
        NO_GRAD,
    ),
    jvp=lambda dlog_probs, labels, label_smoothing, ignore_index: _mean_loss(
        dlog_probs, labels, label_smoothing, ignore_index
    ),
    reference=reference_nll,
    samples=labelled,
    errors=(
        bad(
            BoundsError,
            "nll_loss: argument 'labels': expected a class from 0 to 2, got 3 at position 1",
            (2, 3),
            np.array([0, 3]),
        ),
        bad(BoundsError, "got -1 at position 0", (2, 3), np.array([-1, 0]), ignore_index=-100),
        bad(ShapeError, "nll_loss: argument 'labels': expected shape (2,), got (3,)", (2, 3), np.array([0, 1, 1])),
        bad(DTypeError, "nll_loss: argument 'labels': expected int64, got float32", (2, 3), (2,)),
        bad(
            DomainError,
            "nll_loss: argument 'label_smoothing': expected a number from 0 to 1, got 1.5",
            (2, 3),
            np.array([0, 1]),
            label_smoothing=1.5,
        ),
        *misshapen("nll_loss"),
    ),
    excused=SUMS,
    advice=partial(labels_advice, "nll_loss"),
    private=True,
)
def nll_loss(
    log_probs: Var[F, B, C], labels: Var[i64, B], label_smoothing: float = 0.0, ignore_index: int | None = None
) -> Var[F]:
    """The mean of ``-log_probs[label]`` over the rows whose label is not ``ignore_index``; NaN if there is none."""
    ...


def _lower_nll_grad(weight: Slot, labels: Slot, classes: int, label_smoothing: float, ignore_index: int | None) -> Slot:
    (rows,) = labels.shape
    words = (rows, classes, *ignored_words(ignore_index), *class_weights(classes, label_smoothing), 0)
    said = refusal("nll_grad", classes)
    return call(kernels.nll_grad, [weight, labels], (rows, classes), *words, work=rows * classes, refusal=said)


def _reference_nll_grad(
    weight: Array, labels: Array, classes: int, label_smoothing: float, ignore_index: int | None
) -> Array:
    real = weight.dtype.type
    own, each = (real(w) for w in class_weights(classes, label_smoothing))
    share = weight[()] / real(sum(int(label) != ignore_index for label in labels))
    out = np.zeros((len(labels), classes), weight.dtype)
    for row, label in zip(out, labels, strict=True):
        if label != ignore_index:
            row[:] = -(share * each) if each else real(0)
            row[label] = row[label] - share * own
    return out


@op(
    infer=lambda weight, labels, classes, label_smoothing, ignore_index: Spec((labels.shape[0], classes), weight.dtype),
    lower=_lower_nll_grad,
    vjp=(
        lambda g, labels, label_smoothing, ignore_index: nll_loss(g, labels, label_smoothing, ignore_index),
        NO_GRAD,
    ),
    jvp=lambda dweight, labels, classes, label_smoothing, ignore_index: nll_grad(
        dweight, labels, classes, label_smoothing, ignore_index
    ),
    reference=_reference_nll_grad,
    samples=lambda make: [
        Sample((make(), s.arrays[1]), {"classes": s.arrays[0].shape[1], **s.attrs})  # type: ignore[union-attr]
        for s in labelled(make)[:-1]  # of no rows there is no derivative
    ],
    errors=(
        bad(
            BoundsError,
            "nll_grad: argument 'labels': expected a class from 0 to 2, got 3 at position 1",
            (),
            np.array([0, 3]),
            classes=3,
            label_smoothing=0.0,
            ignore_index=None,
        ),
    ),
    excused=SUMS,
    private=True,
)
def nll_grad(
    weight: Var[F], labels: Var[i64, B], classes: int, label_smoothing: float, ignore_index: int | None
) -> Gradual[F]:
    """The gradient of nll_loss times ``weight``, which is divided by the number of rows that count."""
    ...
