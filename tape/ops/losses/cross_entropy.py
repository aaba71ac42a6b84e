"""Cross-entropy, by labels and by probabilities, and its gradient."""

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
from ...record.lowering import Slot, call, elementwise
from ...record.op import op
from ...record.samples import Make, Sample, bad
from ...record.types import B, C, F
from ...values.dtypes import i64
from ...values.spec import Spec
from ...var.var import Var
from ..elementwise.arithmetic import add, divide, mul, neg, power, scale, sub
from ..elementwise.exponential import exp
from ..elementwise.functions import shift
from ..elementwise.kernels import basic as arithmetic, functions as kernels_functions
from ..reduce import kernels_softmax
from ..reduce.reduce import broadcast_to, reduce_sum
from ..reduce.softmax import WORK, log_softmax, softmax
from . import reference
from .nll import (
    PLAIN,
    SUMS,
    check_smoothing,
    labelled,
    labels_advice,
    lower_nll,
    misshapen,
    nll_grad,
    reference_nll,
    refusal,
)


def _labels(make: Make) -> list[Sample]:
    return [
        Sample((make(6, 10), make.indices(10, 6))),
        Sample((make(1, 1), np.array([0]))),
        Sample((make(37, 3), make.indices(3, 37))),
        Sample((make(4, 40) * make.dtype.type(50), make.indices(40, 4))),
        Sample((make(0, 3), np.array([], np.int64))),
        Sample((make(3, 5).T, np.array([2, 0, 1, 1, 2]))),
    ]


OUTSIDE = bad(
    BoundsError, "argument 'labels': expected a class from 0 to 2, got 3 at position 1", (2, 3), np.array([0, 3])
)


def _infer_cross_entropy(logits: Spec, labels: Spec, label_smoothing: float, ignore_index: int | None) -> Spec:
    check_smoothing("cross_entropy", label_smoothing)
    return Spec((), logits.dtype)


def _lower_cross_entropy(logits: Slot, labels: Slot, label_smoothing: float, ignore_index: int | None) -> Slot:
    rows, n = logits.shape
    if label_smoothing or ignore_index is not None:
        log_probs = call(kernels_softmax.log_softmax, [logits], (rows, n), rows, n, work=WORK * rows * n)
        return lower_nll("cross_entropy", log_probs, labels, label_smoothing, ignore_index)
    work, said = WORK * rows * n, refusal("cross_entropy", n)
    losses = call(kernels_softmax.cross_entropy_rows, [logits, labels], (rows,), rows, n, work=work, refusal=said)
    return call(reduce_kernels.mean_rows, [losses], (), 1, rows, work=rows)


def _cross_entropy_vjp(g: Any, logits: Any, labels: Any, label_smoothing: float, ignore_index: int | None) -> Any:
    if not label_smoothing and ignore_index is None:
        return cross_entropy_grad(logits, labels, g)
    by_log_probs = nll_grad(g, labels, tuple(logits.shape)[1], label_smoothing, ignore_index)
    return _through_log_softmax(by_log_probs, log_softmax(logits))


def _through_log_softmax(g: Any, log_probs: Any) -> Any:
    """The VJP of log_softmax along the last axis."""
    total = broadcast_to(reduce_sum(g, -1, keepdims=True), tuple(log_probs.shape))
    return sub(g, mul(exp(log_probs), total))


def _cross_entropy_jvp(
    dlogits: Any, logits: Any, labels: Any, y: Any, label_smoothing: float, ignore_index: int | None
) -> Any:
    one = power(y, 0)  # where the operands live
    return reduce_sum(mul(dlogits, _cross_entropy_vjp(one, logits, labels, label_smoothing, ignore_index)))


def _reference_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float = 0.0, ignore_index: int | None = None
) -> Array:
    if not label_smoothing and ignore_index is None:
        return reference.cross_entropy(logits, labels)
    return reference_nll(reference_sums.log_softmax(logits), labels, label_smoothing, ignore_index)


@op(
    infer=_infer_cross_entropy,
    lower=_lower_cross_entropy,
    vjp=(_cross_entropy_vjp, NO_GRAD),
    jvp=_cross_entropy_jvp,
    reference=_reference_cross_entropy,
    samples=lambda make: [*_labels(make), *(s for s in labelled(make) if s.attrs != PLAIN)],
    errors=(
        OUTSIDE,
        bad(BoundsError, "got -1 at position 0", (2, 3), np.array([-1, 0])),
        bad(ShapeError, "cross_entropy: argument 'labels': expected shape (2,), got (3,)", (2, 3), np.array([0, 1, 1])),
        bad(DTypeError, "cross_entropy: argument 'labels': expected int64, got float32", (2, 3), (2,)),
        bad(BoundsError, "got 3 at position 1", (2, 3), np.array([0, 3]), label_smoothing=0.5),
        bad(
            DomainError,
            "argument 'label_smoothing': expected a number from 0 to 1, got -0.5",
            (2, 3),
            np.array([0, 1]),
            label_smoothing=-0.5,
        ),
        *misshapen("cross_entropy"),
        bad(
            DTypeError,
            "got float32; give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)",
            (2, 3),
            (2, 3),
        ),
    ),
    excused=SUMS,
    advice=partial(labels_advice, "cross_entropy"),
    private=True,
)
def cross_entropy(
    logits: Var[F, B, C], labels: Var[i64, B], label_smoothing: float = 0.0, ignore_index: int | None = None
) -> Var[F]:
    """The mean over the batch of ``-log_softmax(logits)[label]``, for integer labels."""
    ...


def _smoothed(targets: Any, classes: int, label_smoothing: float) -> Any:
    if not label_smoothing:
        return targets
    return shift(scale(targets, difference(1.0, label_smoothing)), quotient(label_smoothing, max(classes, 1)))


def _lower_soft(logits: Slot, targets: Slot, label_smoothing: float) -> Slot:
    rows, n = logits.shape
    log_probs = call(kernels_softmax.log_softmax, [logits], (rows, n), rows, n, work=WORK * rows * n)
    if label_smoothing:
        kept = elementwise(arithmetic.scale, targets, attrs=(difference(1.0, label_smoothing),))
        targets = elementwise(kernels_functions.shift, kept, attrs=(quotient(label_smoothing, max(n, 1)),))
    products = elementwise(arithmetic.mul, targets, log_probs)
    sums = call(reduce_kernels.sum_rows, [products], (rows,), rows, n, work=rows * n)
    return elementwise(arithmetic.neg, call(reduce_kernels.mean_rows, [sums], (), 1, rows, work=rows))


def _reference_soft(logits: Array, targets: Array, label_smoothing: float = 0.0) -> Array:
    real, n = logits.dtype.type, logits.shape[1]
    if label_smoothing:
        targets = targets * real(1.0 - label_smoothing) + real(label_smoothing / n)
    sums = reference_sums.reduce_sum(targets * reference_sums.log_softmax(logits), -1)
    return np.asarray(-(reference_sums.row_sum(sums) / real(len(logits))))


def _infer_soft(logits: Spec, targets: Spec, label_smoothing: float) -> Spec:
    check_smoothing("soft_cross_entropy", label_smoothing)
    return Spec((), logits.dtype)


def _per_row(g: Any, shape: tuple[int, int]) -> Any:
    """``-g / rows`` everywhere."""
    return broadcast_to(divide(neg(g), shape[0]), shape)


def _soft_by_logits(g: Any, logits: Any, targets: Any, label_smoothing: float, logits_shape: Any) -> Any:
    by_log_probs = mul(_smoothed(targets, logits_shape[1], label_smoothing), _per_row(g, logits_shape))
    return _through_log_softmax(by_log_probs, log_softmax(logits))


def _soft_by_targets(g: Any, logits: Any, label_smoothing: float, logits_shape: Any) -> Any:
    return scale(mul(log_softmax(logits), _per_row(g, logits_shape)), difference(1.0, label_smoothing))


def _soft_jvp(
    dlogits: Any, dtargets: Any, logits: Any, targets: Any, y: Any, label_smoothing: float, logits_shape: Any
) -> Any:
    one = power(y, 0)  # where the operands live
    by_logits = mul(dlogits, _soft_by_logits(one, logits, targets, label_smoothing, logits_shape))
    by_targets = mul(dtargets, _soft_by_targets(one, logits, label_smoothing, logits_shape))
    return reduce_sum(add(by_logits, by_targets))


def _soft_samples(make: Make) -> list[Sample]:
    pairs = [(make(*s), make.unit(*s)) for s in ((6, 10), (1, 1), (3, 40), (0, 3))]
    plain = [*pairs, (make(3, 5).T, make.unit(5, 3))]
    return [*map(Sample, plain), Sample((make(4, 3), make.unit(4, 3)), {"label_smoothing": 0.1})]


@op(
    infer=_infer_soft,
    lower=_lower_soft,
    vjp=(_soft_by_logits, _soft_by_targets),
    jvp=_soft_jvp,
    reference=_reference_soft,
    samples=_soft_samples,
    errors=(
        bad(ShapeError, "soft_cross_entropy: argument 'targets': expected shape (2, 3), got (2, 1)", (2, 3), (2, 1)),
        bad(
            DomainError,
            "argument 'label_smoothing': expected a number from 0 to 1, got 2.0",
            (2, 3),
            (2, 3),
            label_smoothing=2.0,
        ),
    ),
    excused=SUMS,
    private=True,
)
def soft_cross_entropy(logits: Var[F, B, C], targets: Var[F, B, C], label_smoothing: float = 0.0) -> Var[F]:
    """The mean over the batch of ``-sum(targets * log_softmax(logits))``, for the probability of each class."""
    ...


def _gradient(logits: Any, labels: Any, weight: Any) -> Any:
    """`cross_entropy_grad` for its own derivatives, which type checkers meet before they know its type."""
    return cross_entropy_grad(logits, labels, weight)


def _unit_gradient(logits: Any, labels: Any, scalar: Any) -> Any:
    """The gradient of the loss by the logits; ``scalar ** 0`` is a 1 that lives where the operands do."""
    return _gradient(logits, labels, power(scalar, 0))


def _softmax_product(u: Any, logits: Any, weight: Any) -> Any:
    """The softmax's Jacobian times ``u``, times ``weight / rows``."""
    p, shape = softmax(logits), tuple(logits.shape)
    centred = sub(u, broadcast_to(reduce_sum(mul(u, p), -1, True), shape))
    return mul(mul(p, centred), broadcast_to(divide(weight, shape[0]), shape))


def _lower_cross_entropy_grad(logits: Slot, labels: Slot, weight: Slot) -> Slot:
    rows, n = logits.shape
    said = refusal("cross_entropy_grad", n)
    inputs = [logits, labels, weight]
    return call(kernels_softmax.cross_entropy_grad, inputs, (rows, n), rows, n, work=WORK * rows * n, refusal=said)


@op(
    lower=_lower_cross_entropy_grad,
    vjp=(
        lambda g, logits, weight: _softmax_product(g, logits, weight),
        NO_GRAD,
        lambda g, logits, labels, weight: reduce_sum(mul(g, _unit_gradient(logits, labels, weight))),
    ),
    jvp=lambda dlogits, dweight, logits, labels, weight: add(
        _softmax_product(dlogits, logits, weight), _gradient(logits, labels, dweight)
    ),
    reference=reference.cross_entropy_grad,
    samples=lambda make: [Sample((*sample.arrays, make())) for sample in _labels(make)],
    errors=(bad(BoundsError, "got 3 at position 1", (2, 3), np.array([0, 3]), ()),),
    excused=SUMS,
    private=True,
)
def cross_entropy_grad(logits: Var[F, B, C], labels: Var[i64, B], weight: Var[F]) -> Var[F, B, C]:
    """``(softmax(logits) - onehot(labels)) * (weight / rows)``: the gradient of cross_entropy."""
    ...
