"""Negative log-likelihoods and divergences of pairs of elements, made of the elementwise ops."""

from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import F, S
from ...var.var import AnyVar, Var, shape_of
from ..elementwise.arithmetic import add, div, divide, mul, power, scale, sub
from ..elementwise.clamp import clamp
from ..elementwise.exponential import exp, log
from ..elementwise.functions import shift, square
from ..elementwise.select import greater, where
from ..reduce.reduce import reduce_sum
from .reduction import (
    SUMS,
    formula,
    mismatch,
    reduced,
    reference_reduced,
    require_numbers,
    require_reduction,
    unknown_reduction,
)

Total = Literal["mean", "sum"]
HALF_LOG_TWO_PI = 0.9189385332046727
"""``log(2 π) / 2``."""


def _log_or_zero(x: Any) -> Any:
    """``log(x)`` where x is above 0, else 0, and no gradient."""
    one: Any = power(x, 0)
    positive = greater(x, sub(one, one))
    return log(where(positive, x, one))


def _reference_log_or_zero(x: Array) -> Array:
    return np.asarray(formula("log")(np.where(x > 0, x, x.dtype.type(1))))


# ------------------------------------------------------------------ divergence


def _reference_kl(log_probs: Array, targets: Array, log_target: bool = False, reduction: str = "mean") -> Array:
    if log_target:
        terms = formula("exp")(targets) * (targets - log_probs)
    else:
        terms = targets * (_reference_log_or_zero(targets) - log_probs)
    if reduction != "batchmean":
        return reference_reduced(terms, reduction)
    return np.asarray(reference_reduced(terms, "sum") / terms.dtype.type(len(terms)))


@overload
def kl_div(
    log_probs: Var[F, *S],
    targets: Var[F, *S],
    log_target: bool = False,
    reduction: Literal["mean", "sum", "batchmean"] = "mean",
) -> Var[F]: ...
@overload
def kl_div(
    log_probs: Var[F, *S], targets: Var[F, *S], log_target: bool = False, *, reduction: Literal["none"]
) -> Var[F, *S]: ...
@composed(
    reference=_reference_kl,
    samples=lambda make: [
        Sample((make(3, 5), make.unit(3, 5))),
        Sample((make(3, 5), make(3, 5)), {"log_target": True, "reduction": "batchmean"}),
        Sample((make(4), np.array([0.0, 0.5, 0.0, 1.0], make.dtype)), {"reduction": "none"}),
    ],
    errors=(
        mismatch("kl_div", "targets"),
        bad(DomainError, "expected 'mean', 'sum', 'none' or 'batchmean', got 'max'", (2,), (2,), reduction="max"),
        bad(DomainError, "argument 'reduction': expected a batch for 'batchmean', got a number",
            (), (), reduction="batchmean"),
    ),
    excused=SUMS,
)  # fmt: skip
def kl_div(log_probs: AnyVar, targets: AnyVar, log_target: bool = False, reduction: str = "mean") -> AnyVar:
    """The mean of ``t (log(t) - log_probs)``, the terms of the divergence of probabilities t from others; 0 for t of 0.

    With ``log_target`` the targets are logarithms of probabilities too. The divergence itself is ``"batchmean"``, the
    sum divided by the size of the first axis; ``"sum"`` and ``"none"`` give the sum and the terms.

    Source: Kullback and Leibler (1951); torch.nn.functional.kl_div.

    >>> from dgrr.tape import Tape, ops
    >>> log_probs = ops.log(Tape().leaf([[0.5, 0.5]]))
    >>> round(ops.kl_div(log_probs, [[1.0, 0.0]], reduction="batchmean").item(), 4)
    0.6931
    """
    if reduction != "batchmean" and reduction not in ("mean", "sum", "none"):
        raise DomainError(
            f"kl_div: argument 'reduction': expected 'mean', 'sum', 'none' or 'batchmean', got {reduction!r}"
        )
    log_probs, targets = fitted("kl_div", log_probs, targets)
    shape = shape_of(log_probs)
    if reduction == "batchmean" and not shape:
        raise DomainError("kl_div: argument 'reduction': expected a batch for 'batchmean', got a number")
    logs = targets if log_target else _log_or_zero(targets)
    terms: Any = mul(exp(targets) if log_target else targets, sub(logs, log_probs))
    return divide(reduce_sum(terms), shape[0]) if reduction == "batchmean" else reduced(terms, reduction)


# ------------------------------------------------------------------ Poisson and normal


def _reference_poisson(
    log_rates: Array, targets: Array, log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    x, t, real = log_rates, targets, log_rates.dtype.type
    terms: Any = formula("exp")(x) - t * x if log_input else x - t * formula("log")(x + real(eps))
    if full:
        large = np.where(t > 1, t, real(1))
        logs = formula("log")(large)
        stirling = (t * logs - t) + (logs * real(0.5) + real(HALF_LOG_TWO_PI))
        terms = terms + np.where(t > 1, np.asarray(stirling), np.asarray(real(0)))
    return reference_reduced(terms, reduction)


@overload
def poisson_nll_loss(
    log_rates: Var[F, *S],
    targets: Var[F, *S],
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def poisson_nll_loss(
    log_rates: Var[F, *S],
    targets: Var[F, *S],
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_poisson,
    samples=lambda make: [
        Sample((make(3, 5), make.positive(3, 5))),
        Sample((make(5), make.positive(5) * make.dtype.type(3)), {"full": True, "reduction": "none"}),
        Sample((make.positive(4), make.positive(4)), {"log_input": False, "reduction": "sum"}),
    ],
    errors=(
        mismatch("poisson_nll_loss", "targets"),
        bad(DomainError, "argument 'eps': expected a finite number of at least 0, got -1.0", (2,), (2,), eps=-1.0),
        unknown_reduction("poisson_nll_loss", (2,), (2,)),
    ),
    excused=SUMS,
)
def poisson_nll_loss(
    log_rates: AnyVar,
    targets: AnyVar,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> AnyVar:
    """The mean of ``exp(x) - t x``: of counts t under Poisson's law of rate ``exp(x)``, without a term of t alone.

    Unless ``log_input``, x are the rates themselves: ``x - t log(x + eps)``. ``full`` adds Stirling's approximation of
    ``log(t!)``, for t above 1. ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: torch.nn.functional.poisson_nll_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.poisson_nll_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0]).item()
    1.0
    """
    name = "poisson_nll_loss"
    require_reduction(name, reduction)
    require_numbers(name, 0.0, eps=eps)
    x, t = fitted(name, log_rates, targets)
    terms: Any = sub(exp(x), mul(t, x)) if log_input else sub(x, mul(t, log(shift(x, eps))))
    if full:
        one: Any = power(t, 0)
        large: Any = greater(t, one)
        logs: Any = log(where(large, t, one))
        stirling: Any = add(sub(mul(t, logs), t), shift(scale(logs, 0.5), HALF_LOG_TWO_PI))
        terms = add(terms, where(large, stirling, sub(one, one)))
    return reduced(terms, reduction)


def _reference_gaussian(
    mean: Array, targets: Array, var: Array, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    real = mean.dtype.type
    least, d = np.where(var <= real(eps), real(eps), var), mean - targets
    with np.errstate(all="ignore"):
        terms = (formula("log")(least) + (d * d) / least) * real(0.5)
    return reference_reduced(terms + real(HALF_LOG_TWO_PI) if full else terms, reduction)


def _normals(make: Make) -> list[Sample]:
    return [
        Sample((make(3, 5), make(3, 5), make.positive(3, 5))),
        Sample((make(4), make(4), make.positive(4)), {"full": True, "reduction": "sum"}),
        Sample((make(4), make(4), make.positive(4)), {"eps": 1.0, "reduction": "none"}),
    ]


@overload
def gaussian_nll_loss(
    mean: Var[F, *S],
    targets: Var[F, *S],
    var: Var[F, *S],
    full: bool = False,
    eps: float = 1e-6,
    reduction: Total = "mean",
) -> Var[F]: ...
@overload
def gaussian_nll_loss(
    mean: Var[F, *S],
    targets: Var[F, *S],
    var: Var[F, *S],
    full: bool = False,
    eps: float = 1e-6,
    *,
    reduction: Literal["none"],
) -> Var[F, *S]: ...
@composed(
    reference=_reference_gaussian,
    samples=_normals,
    errors=(
        mismatch("gaussian_nll_loss", "targets", (3, 1)),
        bad(
            DomainError, "argument 'eps': expected a finite number of at least 0, got -1.0", (2,), (2,), (2,), eps=-1.0
        ),
        unknown_reduction("gaussian_nll_loss", (2,), (2,), (2,)),
    ),
    excused=SUMS,
)
def gaussian_nll_loss(
    mean: AnyVar, targets: AnyVar, var: AnyVar, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> AnyVar:
    """The mean of ``(log(v) + (mean - t)² / v) / 2``: of t under normal laws of their means and variances v.

    ``v`` is ``max(var, eps)``, with no gradient below ``eps``; variances are to be given for each element. ``full``
    adds ``log(2 π) / 2``. ``reduction="sum"`` adds the terms up, ``"none"`` gives them.

    Source: Nix and Weigend (1994); torch.nn.functional.gaussian_nll_loss, which lets gradients through below ``eps``.

    >>> from dgrr.tape import Tape, ops
    >>> ops.gaussian_nll_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0], [1.0, 1.0]).item()
    2.5
    """
    name = "gaussian_nll_loss"
    require_reduction(name, reduction)
    require_numbers(name, 0.0, eps=eps)
    mean, targets, var = fitted(name, mean, targets, var)
    least: Any = clamp(var, eps, float("inf"))
    terms: Any = scale(add(log(least), div(square(sub(mean, targets)), least)), 0.5)
    return reduced(shift(terms, HALF_LOG_TWO_PI) if full else terms, reduction)
