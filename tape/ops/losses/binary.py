"""Losses of two classes: the cross-entropy of logits and of probabilities, and the focal loss, of each element."""

from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, ShapeError
from ...record.composed import composed, fitted
from ...record.samples import Sample, bad
from ...record.types import F, S
from ...var.var import AnyVar, Gradual, Var, shape_of
from ..elementwise import select
from ..elementwise.activation import softplus
from ..elementwise.arithmetic import add, mul, neg, power, scale, sub
from ..elementwise.clamp import clamp
from ..elementwise.exponential import log, sigmoid
from ..elementwise.functions import log1p, shift
from ..reduce.reduce import broadcast_to
from . import regression
from .distances import MOST_POWER
from .reduction import (
    SUMS,
    formula,
    mismatch,
    other_dtype,
    reduced,
    reference_reduced,
    require_numbers,
    require_reduction,
    require_repeatable,
    unknown_reduction,
)

Total = Literal["mean", "sum"]

# Numbers beside a Var become constants, which the types of these do not say.
greater_equal: Any = select.greater_equal
less_equal: Any = select.less_equal
where: Any = select.where


def logit_terms(logits: Any, targets: Any, pos_weight: Any = None) -> Any:
    """The cross-entropy of each element of logits, its positive part times ``pos_weight``."""
    if pos_weight is None:
        return sub(softplus(logits), regression.logit_product(logits, targets))
    positive = shift(mul(shift(pos_weight, -1.0), targets), 1.0)
    return add(sub(logits, regression.logit_product(logits, targets)), mul(positive, softplus(neg(logits))))


def reference_logit_terms(x: Array, t: Array, pos_weight: Any = None) -> Array:
    """The same, slow and obvious."""
    product = regression.reference_product(x, t)
    if pos_weight is None:
        return np.asarray(formula("softplus")(x) - product)
    one = x.dtype.type(1)
    return np.asarray((x - product) + ((pos_weight - one) * t + one) * formula("softplus")(-x))


def _reference_binary(
    logits: Array, targets: Array, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Array:
    if weight is None and pos_weight is None and reduction == "mean":
        return np.asarray(formula("binary_cross_entropy_with_logits")(logits, targets))
    terms = reference_logit_terms(logits, targets, pos_weight)
    return reference_reduced(terms if weight is None else terms * weight, reduction)


BINARY = "binary_cross_entropy_with_logits"


@overload
def binary_cross_entropy_with_logits(
    logits: Var[F, *S],
    targets: Var[F, *S],
    weight: Gradual[F] | None = None,
    pos_weight: Gradual[F] | None = None,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def binary_cross_entropy_with_logits(
    logits: Var[F, *S],
    targets: Var[F, *S],
    weight: Gradual[F] | None = None,
    pos_weight: Gradual[F] | None = None,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_binary,
    samples=lambda make: [
        Sample((make(3, 11), make.unit(3, 11), None, None)),
        Sample((make(9) * make.dtype.type(500), make.unit(9)), {"reduction": "sum"}),
        Sample((make(2, 3), make.unit(2, 3), make.positive(2, 1), make.positive(3))),
        Sample((make(2, 3), make.unit(2, 3), None, make.positive(3)), {"reduction": "none"}),
    ],
    errors=(
        mismatch(BINARY, "targets"),
        other_dtype(BINARY, "targets"),
        bad(ShapeError, f"{BINARY}: argument 'weight': expected a shape that can be repeated to (2, 3), got (2,)",
            (2, 3), (2, 3), (2,)),
        bad(ShapeError, f"{BINARY}: argument 'pos_weight': expected a shape that can be repeated to (2, 3), got (4, 3)",
            (2, 3), (2, 3), None, (4, 3)),
        unknown_reduction(BINARY, (2,), (2,)),
    ),
    excused=SUMS,
)  # fmt: skip
def binary_cross_entropy_with_logits(
    logits: AnyVar,
    targets: AnyVar,
    weight: AnyVar | None = None,
    pos_weight: AnyVar | None = None,
    reduction: str = "mean",
) -> AnyVar:
    """The mean of ``-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))``, finite for finite logits x of any size.

    ``pos_weight`` multiplies the first part, such as by the number of negatives for each positive; ``weight`` each
    term. Both have any shape that can be repeated to that of the logits, and the mean divides by the number of
    elements. ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    Shapes: logits (*S), targets (*S) -> (); weight (...), pos_weight (...); (*S) without a reduction

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.binary_cross_entropy_with_logits(Tape().leaf([0.0, 1000.0]), [1.0, 1.0]).item(), 4)
    0.3466
    """
    if weight is None and pos_weight is None and reduction == "mean":
        return regression.binary_cross_entropy_with_logits(logits, targets)
    require_reduction(BINARY, reduction)
    logits, targets, weight, pos_weight = fitted(BINARY, logits, targets, weight, pos_weight)
    shape = shape_of(logits)
    for argument, given in (("weight", weight), ("pos_weight", pos_weight)):
        require_repeatable(BINARY, argument, given, shape)
    terms: Any = logit_terms(logits, targets, None if pos_weight is None else broadcast_to(pos_weight, shape))
    return reduced(terms if weight is None else mul(terms, broadcast_to(weight, shape)), reduction)


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


def _reference_probabilities(probs: Array, targets: Array, weight: Any = None, reduction: str = "mean") -> Array:
    positive, negative = _reference_log(probs, of_rest=False), _reference_log(probs, of_rest=True)
    terms = -(targets * positive + (-targets + probs.dtype.type(1)) * negative)
    return reference_reduced(terms if weight is None else terms * weight, reduction)


PROBABILITIES = "binary_cross_entropy"


@overload
def binary_cross_entropy(
    probs: Var[F, *S], targets: Var[F, *S], weight: Gradual[F] | None = None, reduction: Total = "mean"
) -> Var[F]: ...
@overload
def binary_cross_entropy(
    probs: Var[F, *S], targets: Var[F, *S], weight: Gradual[F] | None = None, *, reduction: Literal["none"]
) -> Var[F, *S]: ...
@composed(
    reference=_reference_probabilities,
    samples=lambda make: [
        Sample((make.unit(3, 5), make.unit(3, 5), None)),
        Sample((make.unit(2, 3), make.unit(2, 3), make.positive(3)), {"reduction": "sum"}),
        Sample((np.array([0.0, 1.0, 0.0, 1.0, 1e-30], make.dtype), np.array([0.0, 1.0, 0.5, 0.25, 1.0], make.dtype)),
               {"reduction": "none"}),
    ],
    errors=(
        mismatch(PROBABILITIES, "targets"),
        other_dtype(PROBABILITIES, "targets"),
        bad(ShapeError, "'weight': expected a shape that can be repeated to (2, 3), got (2,)", (2, 3), (2, 3), (2,)),
        unknown_reduction(PROBABILITIES, (2,), (2,)),
    ),
    excused=SUMS,
)  # fmt: skip
def binary_cross_entropy(
    probs: AnyVar, targets: AnyVar, weight: AnyVar | None = None, reduction: str = "mean"
) -> AnyVar:
    """The mean of ``-t log(p) - (1 - t) log(1 - p)`` of probabilities p, each logarithm at least -100.

    Where a logarithm is that low it has no gradient: `binary_cross_entropy_with_logits` always has one. ``weight``
    multiplies each term and has any shape that can be repeated to that of p. ``reduction="sum"`` adds the terms up,
    ``"none"`` gives them.

    Source: torch.nn.functional.binary_cross_entropy, whose gradient at 0 and 1 is of the order of 1e12.
    Shapes: probs (*S), targets (*S) -> (); weight (...); (*S) without a reduction

    >>> from dgrr.tape import Tape, ops
    >>> ops.binary_cross_entropy(Tape().leaf([0.0, 1.0]), [1.0, 1.0]).item()
    50.0
    """
    require_reduction(PROBABILITIES, reduction)
    probs, targets, weight = fitted(PROBABILITIES, probs, targets, weight)
    shape = shape_of(probs)
    require_repeatable(PROBABILITIES, "weight", weight, shape)
    positive, negative = _log_at_least(probs, of_rest=False), _log_at_least(probs, of_rest=True)
    terms: Any = neg(add(mul(targets, positive), mul(shift(neg(targets), 1.0), negative)))
    return reduced(terms if weight is None else mul(terms, broadcast_to(weight, shape)), reduction)


def _reference_focal(
    logits: Array, targets: Array, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean"
) -> Array:
    real = logits.dtype.type
    p, (x, t) = formula("sigmoid")(logits), (logits, targets)
    missed = (p + t) - (p * t) * real(2)
    terms = reference_logit_terms(x, t) * formula("power")(missed, gamma)
    if alpha is not None:
        terms = terms * (t * real(2 * alpha - 1) + real(1 - alpha))
    return reference_reduced(terms, reduction)


@overload
def sigmoid_focal_loss(
    logits: Var[F, *S],
    targets: Var[F, *S],
    alpha: float | None = 0.25,
    gamma: float = 2.0,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def sigmoid_focal_loss(
    logits: Var[F, *S],
    targets: Var[F, *S],
    alpha: float | None = 0.25,
    gamma: float = 2.0,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_focal,
    samples=lambda make: [
        Sample((make(3, 11), make.unit(3, 11))),
        Sample((make(2, 3), make.mask(2, 3).astype(make.dtype)), {"alpha": None, "gamma": 0, "reduction": "none"}),
        Sample((make(5), make.unit(5)), {"alpha": 0.75, "gamma": 1.5, "reduction": "sum"}),
    ],
    errors=(
        mismatch("sigmoid_focal_loss", "targets"),
        bad(DomainError, "argument 'gamma': expected a number from 0 to 2**20, got -1.0", (2,), (2,), gamma=-1.0),
        bad(DomainError, "argument 'alpha': expected a finite number of at least 0, got -1.0", (2,), (2,), alpha=-1.0),
        unknown_reduction("sigmoid_focal_loss", (2,), (2,)),
    ),
    excused=SUMS,
)
def sigmoid_focal_loss(
    logits: AnyVar, targets: AnyVar, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean"
) -> AnyVar:
    """`binary_cross_entropy_with_logits`, each term times ``(1 - q) ** gamma``, q the probability given to the target.

    So what is easy counts little. ``q`` is p where the target is 1 and ``1 - p`` where it is 0; a term of a positive
    also has the factor ``alpha``, one of a negative ``1 - alpha``, unless it is None. ``reduction="sum"`` adds the
    terms up, ``"none"`` gives them.

    Source: Lin, Goyal, Girshick, He and Dollár (2017), Focal loss for dense object detection;
        torchvision.ops.sigmoid_focal_loss, whose ``alpha`` of -1 is None here.

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.sigmoid_focal_loss(Tape().leaf([0.0, 0.0]), [1.0, 0.0]).item(), 4)
    0.0866
    """
    name = "sigmoid_focal_loss"
    require_reduction(name, reduction)
    require_numbers(name, 0.0, **({} if alpha is None else {"alpha": alpha}))
    if not 0 <= gamma <= MOST_POWER:
        raise DomainError(f"{name}: argument 'gamma': expected a number from 0 to 2**20, got {gamma!r}")
    logits, targets = fitted(name, logits, targets)
    p: Any = sigmoid(logits)
    missed: Any = sub(add(p, targets), scale(mul(p, targets), 2.0))
    terms: Any = mul(logit_terms(logits, targets), power(missed, gamma))
    if alpha is not None:
        terms = mul(terms, shift(scale(targets, 2 * alpha - 1), 1 - alpha))
    return reduced(terms, reduction)
