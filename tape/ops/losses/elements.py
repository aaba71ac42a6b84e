"""Losses of pairs of elements under every reduction; the mean of one that has an op is that op."""

from typing import Any, Literal, overload

import numpy as np

from ....arrays import Array
from ...errors import DTypeError, ShapeError
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import F, S
from ...var.var import AnyVar, Gradual, Var, shape_of
from ..elementwise.activation import softplus
from ..elementwise.arithmetic import add, mul, neg, scale, sub
from ..elementwise.clamp import absolute, clamp
from ..elementwise.functions import shift, square
from ..reduce.reduce import broadcast_to
from . import regression
from .reduction import (
    SUMS,
    formula,
    mismatch,
    reduced,
    reference_reduced,
    require_reduction,
    require_repeatable,
    unknown_reduction,
)

Total = Literal["mean", "sum"]


def pairs(make: Make) -> list[Sample]:
    """Pairs of one shape under each reduction; the mean also of none and of a number."""
    return [
        Sample((make(3, 11), make(3, 11))),
        Sample((make(0), make(0))),
        Sample((make(), make()), {"reduction": "sum"}),
        Sample((make(3, 5).T, make(5, 3)), {"reduction": "sum"}),
        Sample((make(2, 3), make(2, 3)), {"reduction": "none"}),
    ]


def _other_dtype(name: str, second: str) -> Any:
    return bad(DTypeError, f"{name}: argument {second!r}: expected float32, got float64", (3,), np.zeros(3))


def _reference_mse(a: Array, b: Array, reduction: str = "mean") -> Array:
    if reduction == "mean":
        return np.asarray(formula("mse_loss")(a, b))
    return reference_reduced((a - b) * (a - b), reduction)


@overload
def mse_loss(a: Var[F, *S], b: Var[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def mse_loss(a: Var[F, *S], b: Var[F, *S], reduction: Literal["none"]) -> Var[F, *S]: ...
@composed(
    reference=_reference_mse,
    samples=pairs,
    errors=(mismatch("mse_loss", "b"), _other_dtype("mse_loss", "b"), unknown_reduction("mse_loss", (2,), (2,))),
    covers=("mse_loss",),
    excused=SUMS,
)
def mse_loss(a: AnyVar, b: AnyVar, reduction: str = "mean") -> AnyVar:
    """The mean of ``(a - b) ** 2``; both sides get gradients.

    ``reduction="sum"`` adds the squares up, ``"none"`` gives them.

    Source: torch.nn.functional.mse_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mse_loss(Tape().leaf([1.0, 2.0]), [1.0, 4.0]).item()
    2.0
    """
    if reduction == "mean":
        return regression.mse_loss(a, b)
    require_reduction("mse_loss", reduction)
    a, b = fitted("mse_loss", a, b)
    return reduced(square(sub(a, b)), reduction)


def _reference_l1(a: Array, b: Array, reduction: str = "mean") -> Array:
    return reference_reduced(abs(a - b), reduction)


@overload
def l1_loss(a: Var[F, *S], b: Var[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def l1_loss(a: Var[F, *S], b: Var[F, *S], reduction: Literal["none"]) -> Var[F, *S]: ...
@composed(
    reference=_reference_l1,
    samples=pairs,
    errors=(mismatch("l1_loss", "b"), _other_dtype("l1_loss", "b"), unknown_reduction("l1_loss", (2,), (2,))),
    excused=SUMS,
)
def l1_loss(a: AnyVar, b: AnyVar, reduction: str = "mean") -> AnyVar:
    """The mean of ``|a - b|``, its sum or the terms; the gradient is 0 where both are equal.

    Source: torch.nn.functional.l1_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.l1_loss(Tape().leaf([1.0, 2.0]), [1.0, 4.0]).item()
    1.0
    """
    require_reduction("l1_loss", reduction)
    a, b = fitted("l1_loss", a, b)
    return reduced(absolute(sub(a, b)), reduction)


def _reference_huber(a: Array, b: Array, delta: float = 1.0, reduction: str = "mean") -> Array:
    if reduction == "mean":
        return np.asarray(formula("huber_loss")(a, b, delta))
    real, size = a.dtype.type, abs(a - b)
    least = np.where(size <= real(delta), size, real(delta))
    return reference_reduced(least * (size - least * real(0.5)), reduction)


@overload
def huber_loss(a: Var[F, *S], b: Var[F, *S], delta: float = 1.0, reduction: Total = "mean") -> Var[F]: ...
@overload
def huber_loss(a: Var[F, *S], b: Var[F, *S], delta: float = 1.0, *, reduction: Literal["none"]) -> Var[F, *S]: ...
@composed(
    reference=_reference_huber,
    samples=lambda make: [*pairs(make), Sample((make(3, 7), make(3, 7)), {"delta": 0.25, "reduction": "none"})],
    errors=(
        mismatch("huber_loss", "b"),
        *[each for each in regression.HUBER_ERRORS if each.attrs],
        *[type(each)(each.error, each.text, each.arrays, {**each.attrs, "reduction": "sum"})
          for each in regression.HUBER_ERRORS if each.attrs],
        unknown_reduction("huber_loss", (2,), (2,)),
    ),
    excused=SUMS,
    instead={"delta": "delta * delta * ops.huber_loss(a / delta, b / delta, 1.0)"},
)  # fmt: skip
def huber_loss(a: AnyVar, b: AnyVar, delta: float = 1.0, reduction: str = "mean") -> AnyVar:
    """The mean of ``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``, with ``d = a - b``.

    ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: Huber (1964), Robust estimation of a location parameter; torch.nn.functional.huber_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.huber_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0]).item()
    1.5
    """
    if reduction == "mean":
        return regression.huber_loss(a, b, delta)
    require_reduction("huber_loss", reduction)
    regression.require_delta(delta)
    a, b = fitted("huber_loss", a, b)
    size: Any = absolute(sub(a, b))
    least: Any = clamp(size, 0.0, delta)
    return reduced(mul(least, sub(size, scale(least, 0.5))), reduction)


def logit_terms(logits: Any, targets: Any, pos_weight: Any = None) -> Any:
    """The cross-entropy of each element of logits, its positive part times ``pos_weight``."""
    if pos_weight is None:
        return sub(softplus(logits), mul(logits, targets))
    positive = shift(mul(shift(pos_weight, -1.0), targets), 1.0)
    return add(sub(logits, mul(logits, targets)), mul(positive, softplus(neg(logits))))


def reference_logit_terms(x: Array, t: Array, pos_weight: Any = None) -> Array:
    """The same, slow and obvious."""
    if pos_weight is None:
        return np.asarray(formula("softplus")(x) - x * t)
    one = x.dtype.type(1)
    return np.asarray((x - x * t) + ((pos_weight - one) * t + one) * formula("softplus")(-x))


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
        _other_dtype(BINARY, "targets"),
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
