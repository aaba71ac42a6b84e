"""Negative log-likelihoods and divergences of pairs of elements, made of the elementwise ops."""

from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError
from ...record.kinds.values import NOT_NEGATIVE
from ...record.samples import Make, Sample, bad
from ...record.types import F, Operand, S
from ...var.var import Var, shape_of
from ..elementwise.arithmetic import add, div, divide, mul, power, scale, sub
from ..elementwise.clamp import clamp
from ..elementwise.exponential import exp, log
from ..elementwise.functions import shift, square
from ..elementwise.select import greater, where
from ..reduce.reduce import reduce_sum
from .loss import loss
from .reduction import Each, Total, formula, reduced, reductions, reference_reduced

HALF_LOG_TWO_PI = 0.9189385332046727
"""``log(2 π) / 2``."""


# ------------------------------------------------------------------ divergence


def _log_or_zero(x: Any) -> Any:
    """``log(x)`` where x is above 0, else 0, and no gradient."""
    one: Any = power(x, 0)
    positive = greater(x, sub(one, one))
    return log(where(positive, x, one))


def _reference_kl(log_probs: Array, targets: Array, log_target: bool, reduction: str) -> Array:
    if log_target:
        terms = formula("exp")(targets) * (targets - log_probs)
    else:
        terms = targets * (formula("log")(np.where(targets > 0, targets, targets.dtype.type(1))) - log_probs)
    if reduction != "batchmean":
        return reference_reduced(terms, reduction)
    return np.asarray(reference_reduced(terms, "sum") / terms.dtype.type(len(terms)))


@overload
def kl_div(
    log_probs: Operand[F, *S],
    targets: Operand[F, *S],
    log_target: bool = False,
    reduction: Total | Literal["batchmean"] = "mean",
) -> Var[F]: ...
@overload
def kl_div(
    log_probs: Operand[F, *S], targets: Operand[F, *S], log_target: bool = False, *, reduction: Each
) -> Var[F, *S]: ...
@loss(
    _reference_kl,
    reduction=reductions("mean", "sum", "none", "batchmean"),
    draw={"targets": Make.unit},
    settings=({"log_target": True},),
    more=lambda make: [
        Sample((make(3, 5), make(3, 5)), {"log_target": True, "reduction": "batchmean"}),
        Sample((make(4), np.array([0.0, 0.5, 0.0, 1.0], make.dtype)), {"reduction": "none"}),
    ],
    errors=(
        bad(DomainError, "argument 'reduction': expected a batch for 'batchmean', got a number",
            (), (), reduction="batchmean"),
    ),
)  # fmt: skip
def kl_div(log_probs: Any, targets: Any, log_target: bool, reduction: str) -> Any:
    """The mean of ``t (log(t) - log_probs)``, the terms of the divergence of probabilities t from others; 0 for t of 0.

    With ``log_target`` the targets are logarithms of probabilities too. The divergence itself is ``"batchmean"``, the
    sum divided by the size of the first axis; ``"sum"`` and ``"none"`` give the sum and the terms.

    Source: Kullback and Leibler (1951); torch.nn.functional.kl_div.

    >>> from dgrr.tape import Tape, ops
    >>> log_probs = ops.log(Tape().leaf([[0.5, 0.5]]))
    >>> round(ops.kl_div(log_probs, [[1.0, 0.0]], reduction="batchmean").item(), 4)
    0.6931
    """
    shape = shape_of(log_probs)
    if reduction == "batchmean" and not shape:
        raise DomainError("kl_div: argument 'reduction': expected a batch for 'batchmean', got a number")
    logs = targets if log_target else _log_or_zero(targets)
    terms: Any = mul(exp(targets) if log_target else targets, sub(logs, log_probs))
    return divide(reduce_sum(terms), shape[0]) if reduction == "batchmean" else reduced(terms, reduction)


# ------------------------------------------------------------------ Poisson and normal


def _reference_poisson(log_rates: Array, targets: Array, log_input: bool, full: bool, eps: float) -> Array:
    x, t, real = log_rates, targets, log_rates.dtype.type
    terms: Any = formula("exp")(x) - t * x if log_input else x - t * formula("log")(x + real(eps))
    if not full:
        return np.asarray(terms)
    logs = formula("log")(np.where(t > 1, t, real(1)))
    stirling = (t * logs - t) + (logs * real(0.5) + real(HALF_LOG_TWO_PI))
    return np.asarray(terms + np.where(t > 1, np.asarray(stirling), np.asarray(real(0))))


def _counts(make: Make, *shape: int) -> Array:
    return np.asarray(make.positive(*shape) * make.dtype.type(3))


@overload
def poisson_nll_loss(
    log_rates: Operand[F, *S], targets: Operand[F, *S], log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def poisson_nll_loss(
    log_rates: Operand[F, *S], targets: Operand[F, *S], log_input: bool = True, full: bool = False,
    eps: float = 1e-8, *,
    reduction: Each,
) -> Var[F, *S]: ...  # fmt: skip
@loss(
    _reference_poisson,
    kinds={"eps": NOT_NEGATIVE},
    draw={"log_rates": Make.positive, "targets": _counts},
    settings=({"full": True}, {"log_input": False}),
)
def poisson_nll_loss(log_rates: Any, targets: Any, log_input: bool, full: bool, eps: float) -> Any:
    """The mean of ``exp(x) - t x``: of counts t under Poisson's law of rate ``exp(x)``, without a term of t alone.

    Unless ``log_input``, x are the rates themselves: ``x - t log(x + eps)``. ``full`` adds Stirling's approximation of
    ``log(t!)``, for t above 1.

    Source: torch.nn.functional.poisson_nll_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.poisson_nll_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0]).item()
    1.0
    """
    x, t = log_rates, targets
    terms: Any = sub(exp(x), mul(t, x)) if log_input else sub(x, mul(t, log(shift(x, eps))))
    if not full:
        return terms
    one: Any = power(t, 0)
    large: Any = greater(t, one)
    logs: Any = log(where(large, t, one))
    stirling: Any = add(sub(mul(t, logs), t), shift(scale(logs, 0.5), HALF_LOG_TWO_PI))
    return add(terms, where(large, stirling, sub(one, one)))


def _reference_gaussian(mean: Array, targets: Array, var: Array, full: bool, eps: float) -> Array:
    real, d = mean.dtype.type, mean - targets
    least = np.where(var <= real(eps), real(eps), var)
    terms: Array = (formula("log")(least) + (d * d) / least) * real(0.5)
    return terms + real(HALF_LOG_TWO_PI) if full else terms


@overload
def gaussian_nll_loss(
    mean: Operand[F, *S], targets: Operand[F, *S], var: Operand[F, *S], full: bool = False, eps: float = 1e-6,
    reduction: Total = "mean",
) -> Var[F]: ...  # fmt: skip
@overload
def gaussian_nll_loss(
    mean: Operand[F, *S],
    targets: Operand[F, *S],
    var: Operand[F, *S],
    full: bool = False,
    eps: float = 1e-6,
    *,
    reduction: Each,
) -> Var[F, *S]: ...
@loss(
    _reference_gaussian,
    kinds={"eps": NOT_NEGATIVE},
    draw={"var": Make.positive},
    settings=({"eps": 1.0}, {"full": True}),
)
def gaussian_nll_loss(mean: Any, targets: Any, var: Any, full: bool, eps: float) -> Any:
    """The mean of ``(log(v) + (mean - t)² / v) / 2``: of t under normal laws of their means and variances v.

    ``v`` is ``max(var, eps)``, with no gradient below ``eps``; variances are to be given for each element. ``full``
    adds ``log(2 π) / 2``.

    Source: Nix and Weigend (1994); torch.nn.functional.gaussian_nll_loss, which lets gradients through below ``eps``.

    >>> from dgrr.tape import Tape, ops
    >>> ops.gaussian_nll_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0], [1.0, 1.0]).item()
    2.5
    """
    least: Any = clamp(var, eps, float("inf"))
    terms: Any = scale(add(log(least), div(square(sub(mean, targets)), least)), 0.5)
    return shift(terms, HALF_LOG_TWO_PI) if full else terms
