"""Cross-entropy, by labels and by probabilities, and its gradient."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, DTypeError
from ...numerics.math.exact import difference, quotient
from ...numerics.math.reference import sums as reference_sums
from ...numerics.simd import sums
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, call, elementwise
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import B, C, F, Operand, S
from ...values.dtypes import i64
from ...var.var import Var, shape_of
from ..elementwise.arithmetic import add, divide, mul, neg, power, scale, sub
from ..elementwise.exponential import exp
from ..elementwise.functions import shift
from ..elementwise.kernels import basic as arithmetic, functions as kernels_functions
from ..reduce.kernels import softmax as kernels_softmax
from ..reduce.reduce import broadcast_to, reduce_sum
from ..reduce.softmax import WORK, log_softmax, softmax
from . import reference
from .labels import PLAIN, labelled, labels_advice, misshapen, refusal, with_holes
from .loss import loss
from .mean import SUMS, MeanOp, mean_of
from .nll import by_labels, reference_labels
from .nll_rows import lower_mean, nll_grad, reference_mean
from .reduction import SMOOTHING, Each, Total, reference_weighted, weighted

# ------------------------------------------------------------------ labels


def _labels(make: Make) -> list[Sample]:
    return [
        Sample((make(6, 10), make.indices(10, 6))),
        Sample((make(1, 1), np.array([0]))),
        Sample((make(37, 3), make.indices(3, 37))),
        Sample((make(4, 40) * make.dtype.type(50), make.indices(40, 4))),
        Sample((make(0, 3), np.array([], np.int64))),
        Sample((make(3, 5).T, np.array([2, 0, 1, 1, 2]))),
    ]


def _lower_cross_entropy(logits: Slot, labels: Slot, label_smoothing: float, ignore_index: int | None) -> Slot:
    rows, n = logits.shape
    if label_smoothing or ignore_index is not None:
        log_probs = call(kernels_softmax.log_softmax, [logits], (rows, n), rows, n, work=WORK * rows * n)
        return lower_mean(log_probs, labels, label_smoothing, ignore_index, "cross_entropy")
    work, said = WORK * rows * n, refusal("cross_entropy", n)
    losses = call(kernels_softmax.cross_entropy_rows, [logits, labels], (rows,), rows, n, work=work, refusal=said)
    return mean_of(losses)


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


def _reference_mean(logits: Array, labels: Array, label_smoothing: float, ignore_index: int | None) -> Array:
    if not label_smoothing and ignore_index is None:
        return reference.cross_entropy(logits, labels)
    return reference_mean(reference_sums.log_softmax(logits), labels, label_smoothing, ignore_index)


def _reference_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float, ignore_index: int | None, weight: Any, reduction: str
) -> Array:
    log_probs = reference_sums.log_softmax(logits)
    return reference_labels(log_probs, labels, label_smoothing, ignore_index, weight, reduction)


ERRORS = (
    *misshapen("cross_entropy"),
    bad(BoundsError, "got 3 at position 1", (2, 3), np.array([0, 3]), label_smoothing=0.5),
    bad(DTypeError, "got float32; give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)",
        (2, 3), (2, 3)),
)  # fmt: skip


@overload
def cross_entropy(
    logits: Var[F, *S, C], labels: Operand[i64, *S], label_smoothing: float = 0.0, ignore_index: int | None = None,
    weight: Operand[F, C] | None = None, reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def cross_entropy(
    logits: Var[F, *S, C], labels: Operand[i64, *S], label_smoothing: float = 0.0, ignore_index: int | None = None,
    weight: Operand[F, C] | None = None, *, reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    _reference_cross_entropy,
    mean=MeanOp(
        lower=_lower_cross_entropy,
        vjp=(_cross_entropy_vjp, NO_GRAD),
        jvp=_cross_entropy_jvp,
        reference=_reference_mean,
        samples=lambda make: [*_labels(make), *(s for s in labelled(make) if s.attrs != PLAIN)],
        errors=ERRORS,
        advice=partial(labels_advice, "cross_entropy"),
    ),
    kinds={"label_smoothing": SMOOTHING},
    settings=({"label_smoothing": 0.25}, {"label_smoothing": 1.0}),
    more=with_holes,
    errors=ERRORS,
)
def cross_entropy(
    logits: Any, labels: Any, label_smoothing: float, ignore_index: int | None, weight: Any, reduction: str
) -> Any:
    """The mean over the batch of ``-log_softmax(logits)[label]``, for integer labels.

    Smoothing by s replaces the label by ``1 - s`` of it and ``s / classes`` of every class. Rows whose label is
    ``ignore_index`` are left out; the mean of none is NaN. ``weight`` and leading axes are as in `nll_loss`.
    `soft_cross_entropy` takes probabilities. A connectionist temporal loss (CTC) is not among the losses.

    Source: torch.nn.functional.cross_entropy; smoothing by Szegedy, Vanhoucke, Ioffe, Shlens and Wojna (2016).

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.cross_entropy(Tape().leaf([[0.0, 0.0]]), [1]).item(), 4)
    0.6931
    """
    given = labels, label_smoothing, ignore_index, weight, reduction
    return by_labels("cross_entropy", log_softmax, logits, *given)


# ------------------------------------------------------------------ probabilities


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
    of_rows = call(sums.sum_rows, [products], (rows,), rows, n, work=rows * n)
    return elementwise(arithmetic.neg, mean_of(of_rows))


def _reference_terms(logits: Array, targets: Array, label_smoothing: float, weight: Any = None) -> Array:
    """The negative terms of the rows."""
    real, n = logits.dtype.type, logits.shape[-1]
    if label_smoothing:
        targets = targets * real(1.0 - label_smoothing) + real(label_smoothing / n)
    products = targets * reference_sums.log_softmax(logits)
    return np.asarray(reference_sums.reduce_sum(reference_weighted(products, weight), -1))


def _reference_soft(logits: Array, targets: Array, label_smoothing: float) -> Array:
    sums_of_rows = _reference_terms(logits, targets, label_smoothing)
    return np.asarray(-(reference_sums.row_sum(sums_of_rows) / logits.dtype.type(len(logits))))


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


@overload
def soft_cross_entropy(
    logits: Operand[F, *S, C], targets: Operand[F, *S, C], label_smoothing: float = 0.0, weight: Operand[F,
    C] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def soft_cross_entropy(
    logits: Operand[F, *S, C], targets: Operand[F, *S, C], label_smoothing: float = 0.0, weight: Operand[F,
    C] | None = None, *,
    reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    lambda logits, targets, label_smoothing, weight: -_reference_terms(logits, targets, label_smoothing, weight),
    mean=MeanOp(
        lower=_lower_soft,
        vjp=(_soft_by_logits, _soft_by_targets),
        jvp=_soft_jvp,
        reference=_reference_soft,
        samples=_soft_samples,
    ),
    kinds={"label_smoothing": SMOOTHING},
    draw={"targets": Make.unit},
    settings=({"label_smoothing": 0.25}, {"label_smoothing": 1.0}),
)
def soft_cross_entropy(logits: Any, targets: Any, label_smoothing: float, weight: Any) -> Any:
    """The mean over the batch of ``-sum(targets * log_softmax(logits))``, for the probability of each class.

    Both sides get gradients. Smoothing by s takes ``(1 - s) * targets + s / classes`` instead of targets. ``weight``
    multiplies the term of each class; the mean divides by the number of rows all the same. The classes stand last,
    behind any axes.

    Source: torch.nn.functional.cross_entropy with probabilities.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.soft_cross_entropy(Tape().leaf([[0.0, 0.0]]), [[0.25, 0.75]]).item(), 4)
    0.6931
    """
    products: Any = mul(_smoothed(targets, shape_of(logits)[-1], label_smoothing), log_softmax(logits))
    return neg(reduce_sum(weighted(products, weight), -1))


# ------------------------------------------------------------------ gradient


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
