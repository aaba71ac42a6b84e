"""Losses of pairs of elements under every reduction; the mean of one that has an op is that op."""

from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import F, S
from ...var.var import AnyVar, Var
from ..elementwise.arithmetic import div, mul, scale, sub
from ..elementwise.clamp import absolute, clamp
from ..elementwise.functions import square
from . import regression
from .reduction import (
    SUMS,
    formula,
    mismatch,
    other_dtype,
    reduced,
    reference_reduced,
    require_numbers,
    require_reduction,
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
    errors=(mismatch("mse_loss", "b"), other_dtype("mse_loss", "b"), unknown_reduction("mse_loss", (2,), (2,))),
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
    errors=(mismatch("l1_loss", "b"), other_dtype("l1_loss", "b"), unknown_reduction("l1_loss", (2,), (2,))),
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
    d: Any = sub(a, b)
    least: Any = clamp(d, -delta, delta)
    return reduced(mul(least, sub(d, scale(least, 0.5))), reduction)


def _reference_smooth(a: Array, b: Array, beta: float = 1.0, reduction: str = "mean") -> Array:
    real, size = a.dtype.type, abs(a - b)
    if beta == 0:
        return reference_reduced(size, reduction)
    least = np.where(size <= real(beta), size, real(beta))
    return reference_reduced((least / real(beta)) * (size - least * real(0.5)), reduction)


@overload
def smooth_l1_loss(a: Var[F, *S], b: Var[F, *S], beta: float = 1.0, reduction: Total = "mean") -> Var[F]: ...
@overload
def smooth_l1_loss(a: Var[F, *S], b: Var[F, *S], beta: float = 1.0, *, reduction: Literal["none"]) -> Var[F, *S]: ...
@composed(
    reference=_reference_smooth,
    samples=lambda make: [
        *pairs(make),
        Sample((make(3, 7), make(3, 7)), {"beta": 0.25, "reduction": "none"}),
        Sample((make(4), make(4)), {"beta": 0.0}),
    ],
    errors=(
        mismatch("smooth_l1_loss", "b"),
        other_dtype("smooth_l1_loss", "b"),
        bad(DomainError, "argument 'beta': expected a finite number of at least 0, got -1.0", (2,), (2,), beta=-1.0),
        unknown_reduction("smooth_l1_loss", (2,), (2,)),
    ),
    excused=SUMS,
)  # fmt: skip
def smooth_l1_loss(a: AnyVar, b: AnyVar, beta: float = 1.0, reduction: str = "mean") -> AnyVar:
    """The mean of ``d² / (2 beta)`` where ``|d| <= beta``, else ``|d| - beta / 2``, with ``d = a - b``.

    It is `huber_loss` divided by its delta, and `l1_loss` for a beta of 0. ``reduction="sum"`` adds the terms up,
    ``"none"`` gives them.

    Source: Girshick (2015), Fast R-CNN; torch.nn.functional.smooth_l1_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.smooth_l1_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0], beta=2.0).item()
    1.125
    """
    name = "smooth_l1_loss"
    require_reduction(name, reduction)
    require_numbers(name, 0.0, beta=beta)
    a, b = fitted(name, a, b)
    d: Any = sub(a, b)
    if beta == 0:
        return reduced(absolute(d), reduction)
    least: Any = clamp(d, -beta, beta)
    bound: Any = beta
    return reduced(mul(div(least, bound), sub(d, scale(least, 0.5))), reduction)
