"""Losses of two classes: the cross-entropy of logits and of probabilities, and the focal loss, of each element."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...record.pointwise_op import pointwise_op, read
from ...record.samples import Make, Sample
from ...record.types import Constant, F, Operand, S
from ...var.var import Gradual, Var, shape_of
from ..elementwise import select
from ..elementwise.activation import softplus
from ..elementwise.arithmetic import add, divide, mul, neg, power, scale, sub
from ..elementwise.clamp import clamp
from ..elementwise.exponential import log, sigmoid
from ..elementwise.functions import log1p, shift
from ..reduce.reduce import broadcast_to, reduce_sum
from . import kernels
from .loss import loss
from .mean import MeanOp, of_formula
from .reduction import EXPONENT, SHARE, Each, Total, WeightsOf, formula, reference_weighted, weighted

# Numbers beside a Var become constants, which the types of these do not say.
greater_equal: Any = select.greater_equal
less_equal: Any = select.less_equal
where: Any = select.where

# ------------------------------------------------------------------ logits


def _extreme_logits(make: Make) -> Sample:
    """Logits and targets at their limits, each beside each."""
    special = np.array([0.0, -0.0, 1.0, -1.0, 1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan]).astype(make.dtype)
    logits, targets = np.meshgrid(special, np.array([0.0, -0.0, 0.25, 1.0, np.nan], make.dtype))
    return Sample((logits.reshape(-1), targets.reshape(-1)))


@pointwise_op(
    kernels.logit_products,
    lambda d, targets: mul(d, targets),
    lambda d, logits: mul(d, logits),
    jvp=lambda dlogits, dtargets, logits, targets: add(mul(dlogits, targets), mul(logits, dtargets)),
    samples=lambda make: [Sample((make(3, 5), make(3, 5))), _extreme_logits(make)],
    private=True,
)
def logit_product(logits: Var[F, *S], targets: Var[F, *S]) -> Var[F, *S]:
    """``logits * targets``; 0 for a target of 0 and any logit, and for a logit of inf and a target below 1."""
    ...


def _logit_terms(logits: Any, targets: Any, pos_weight: Any = None) -> Any:
    """The cross-entropy of each element of logits, its positive part times ``pos_weight``."""
    if pos_weight is None:
        return sub(softplus(logits), logit_product(logits, targets))
    positive = shift(mul(shift(pos_weight, -1.0), targets), 1.0)
    return add(sub(logits, logit_product(logits, targets)), mul(positive, softplus(neg(logits))))


def _reference_terms(x: Array, t: Array, pos_weight: Any = None) -> Array:
    """The same, slow and obvious."""
    product = read(kernels.logit_products)(x, t)
    if pos_weight is None:
        return np.asarray(formula("softplus")(x) - product)
    one = x.dtype.type(1)
    return np.asarray((x - product) + ((pos_weight - one) * t + one) * formula("softplus")(-x))


def _reference_binary(logits: Array, targets: Array, weight: Any, pos_weight: Any) -> Array:
    return reference_weighted(_reference_terms(logits, targets, pos_weight), weight)


def _mean_slope(logits: Any, targets: Any, n: int) -> Any:
    return divide(sub(sigmoid(logits), targets), n)


def _mean_tangent(dlogits: Any, dtargets: Any, logits: Any, targets: Any, logits_shape: tuple[int, ...]) -> Any:
    n = prod(logits_shape)
    by_targets = neg(mul(dtargets, divide(logits, n)))
    return reduce_sum(add(mul(dlogits, _mean_slope(logits, targets, n)), by_targets))


def _mean_samples(make: Make) -> list[Sample]:
    pairs = [Sample((make(*s), make(*s))) for s in ((), (5,), (3, 11), (40,), (0,))]
    return [*pairs, Sample((make(9) * make.dtype.type(500), make.unit(9))), _extreme_logits(make)]


@overload
def binary_cross_entropy_with_logits(
    logits: Operand[F, *S], targets: Operand[F, *S], weight: Gradual[F] | Constant | None = None,
    pos_weight: Gradual[F] | Constant | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def binary_cross_entropy_with_logits(
    logits: Operand[F, *S], targets: Operand[F, *S], weight: Gradual[F] | Constant | None = None,
    pos_weight: Gradual[F] | Constant | None = None,
    *, reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    _reference_binary,
    mean=MeanOp(
        vjp=(
            lambda g, logits, targets, logits_shape: mul(
                _mean_slope(logits, targets, prod(logits_shape)), broadcast_to(g, logits_shape)
            ),
            lambda g, logits, logits_shape: neg(mul(divide(logits, prod(logits_shape)), broadcast_to(g, logits_shape))),
        ),
        jvp=_mean_tangent,
        samples=_mean_samples,
        **of_formula(kernels.logit_terms, work=50),
    ),
    kinds={"weight": WeightsOf("logits"), "pos_weight": WeightsOf("logits")},
    draw={"targets": Make.unit},
    more=lambda make: [
        Sample((make(9) * make.dtype.type(500), make.unit(9)), {"reduction": "sum"}),
        Sample((make(2, 3), make.unit(2, 3), make.positive(2, 1), None)),
        Sample((make(2, 3), make.unit(2, 3), None, make.positive(3)), {"reduction": "none"}),
    ],
)
def binary_cross_entropy_with_logits(logits: Any, targets: Any, weight: Any, pos_weight: Any) -> Any:
    """The mean of ``-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))``, finite for finite logits x of any size.

    ``pos_weight`` multiplies the first part, such as by the number of negatives for each positive; ``weight`` each
    term. Both have any shape that can be repeated to that of the logits, and the mean divides by the number of
    elements.

    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    Shapes: logits (*S), targets (*S) -> (); weight (...), pos_weight (...); (*S) without a reduction

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.binary_cross_entropy_with_logits(Tape().leaf([0.0, 1000.0]), [1.0, 1.0]).item(), 4)
    0.3466
    """
    positive = None if pos_weight is None else broadcast_to(pos_weight, shape_of(logits))
    return weighted(_logit_terms(logits, targets, positive), weight)


def _reference_focal(logits: Array, targets: Array, alpha: float | None, gamma: float) -> Array:
    real, p = logits.dtype.type, formula("sigmoid")(logits)
    missed = (p + targets) - (p * targets) * real(2)
    terms: Array = _reference_terms(logits, targets) * formula("power")(missed, gamma)
    return terms if alpha is None else terms * (targets * real(2 * alpha - 1) + real(1 - alpha))


@overload
def sigmoid_focal_loss(
    logits: Operand[F, *S], targets: Operand[F, *S], alpha: float | None = 0.25, gamma: float = 2.0,
    reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def sigmoid_focal_loss(
    logits: Operand[F, *S], targets: Operand[F, *S], alpha: float | None = 0.25, gamma: float = 2.0, *, reduction: Each
) -> Var[F, *S]: ...
@loss(
    _reference_focal,
    kinds={"gamma": EXPONENT, "alpha": SHARE},
    draw={"targets": Make.unit},
    settings=({"alpha": 0.75, "gamma": 1.5},),
    more=lambda make: [
        Sample((make(2, 3), make.mask(2, 3).astype(make.dtype)), {"alpha": None, "gamma": 0, "reduction": "none"})
    ],
)
def sigmoid_focal_loss(logits: Any, targets: Any, alpha: float | None, gamma: float) -> Any:
    """`binary_cross_entropy_with_logits`, each term times ``(1 - q) ** gamma``, q the probability given to the target.

    So what is easy counts little. ``q`` is p where the target is 1 and ``1 - p`` where it is 0; a term of a positive
    also has the factor ``alpha``, one of a negative ``1 - alpha``, unless it is None.

    Source: Lin, Goyal, Girshick, He and Dollár (2017), Focal loss for dense object detection;
        torchvision.ops.sigmoid_focal_loss, whose ``alpha`` of -1 is None here.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.sigmoid_focal_loss(Tape().leaf([0.0, 0.0]), [1.0, 0.0]).item(), 4)
    0.0866
    """
    p: Any = sigmoid(logits)
    missed: Any = sub(add(p, targets), scale(mul(p, targets), 2.0))
    terms: Any = mul(_logit_terms(logits, targets), power(missed, gamma))
    return terms if alpha is None else mul(terms, shift(scale(targets, 2 * alpha - 1), 1 - alpha))


# ------------------------------------------------------------------ probabilities

LEAST_LOG = -100.0
"""What a logarithm of 0 counts as."""


def _log_at_least(x: Any, of_rest: bool) -> Any:
    """``log(x)``, or ``log(1 - x)``, at least -100, and no gradient where that is."""
    is_least: Any = greater_equal(x, 1.0) if of_rest else less_equal(x, 0.0)
    inside: Any = where(is_least, 0.5, x)
    logs: Any = log1p(neg(inside)) if of_rest else log(inside)
    return where(is_least, LEAST_LOG, clamp(logs, LEAST_LOG, float("inf")))


def _reference_log(x: Array, of_rest: bool) -> Array:
    is_least = x >= 1 if of_rest else x <= 0
    inside = np.where(is_least, x.dtype.type(0.5), x)
    logs: Array = formula("log1p")(-inside) if of_rest else formula("log")(inside)
    is_least = is_least | (logs <= LEAST_LOG)
    return np.where(is_least, np.asarray(LEAST_LOG, x.dtype), logs)


def _reference_probabilities(probs: Array, targets: Array, weight: Any) -> Array:
    positive, negative = _reference_log(probs, of_rest=False), _reference_log(probs, of_rest=True)
    return reference_weighted(-(targets * positive + (-targets + probs.dtype.type(1)) * negative), weight)


@overload
def binary_cross_entropy(
    probs: Operand[F, *S],
    targets: Operand[F, *S],
    weight: Gradual[F] | Constant | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def binary_cross_entropy(
    probs: Operand[F, *S], targets: Operand[F, *S], weight: Gradual[F] | Constant | None = None, *, reduction: Each
) -> Var[F, *S]: ...
@loss(
    _reference_probabilities,
    kinds={"weight": WeightsOf("probs")},
    draw={"probs": Make.unit, "targets": Make.unit},
    more=lambda make: [
        Sample(
            (np.array([0.0, 1.0, 0.0, 1.0, 1e-30], make.dtype), np.array([0.0, 1.0, 0.5, 0.25, 1.0], make.dtype)),
            {"reduction": "none"},
        )
    ],
)
def binary_cross_entropy(probs: Any, targets: Any, weight: Any) -> Any:
    """The mean of ``-t log(p) - (1 - t) log(1 - p)`` of probabilities p, each logarithm at least -100.

    Where a logarithm is that low it has no gradient: `binary_cross_entropy_with_logits` always has one. ``weight``
    multiplies each term and has any shape that can be repeated to that of p.

    Source: torch.nn.functional.binary_cross_entropy, whose gradient at 0 and 1 is of the order of 1e12.
    Shapes: probs (*S), targets (*S) -> (); weight (...); (*S) without a reduction

    >>> from dgrr.tape import Tape, ops
    >>> ops.binary_cross_entropy(Tape().leaf([0.0, 1.0]), [1.0, 1.0]).item()
    50.0
    """
    positive, negative = _log_at_least(probs, of_rest=False), _log_at_least(probs, of_rest=True)
    return weighted(neg(add(mul(targets, positive), mul(shift(neg(targets), 1.0), negative))), weight)
