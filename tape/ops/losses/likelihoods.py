"""Negative log-likelihoods and divergences of pairs of elements, made of the elementwise ops."""

from typing import Any, Literal, overload

import numpy as np

from ....arrays import Array
from ...errors import DomainError
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import F, S
from ...var.var import AnyVar, Var, shape_of
from ..elementwise.arithmetic import add, div, divide, mul, power, scale, sub
from ..elementwise.clamp import clamp
from ..elementwise.exponential import exp, log, sigmoid
from ..elementwise.functions import shift, square
from ..elementwise.select import greater, where
from ..reduce.reduce import reduce_sum
from .distances import MOST_POWER
from .elements import logit_terms, reference_logit_terms
from .reduction import SUMS, formula, mismatch, reduced, reference_reduced, require_reduction, unknown_reduction

Total = Literal["mean", "sum"]
HALF_LOG_TWO_PI = 0.9189385332046727
"""``log(2 π) / 2``."""


def _numbers(name: str, low: float, **attrs: float) -> None:
    """Raise DomainError for a number below ``low`` or not finite."""
    for argument, value in attrs.items():
        if not low <= value < float("inf"):
            raise DomainError(
                f"{name}: argument {argument!r}: expected a finite number of at least {low:g}, got {value!r}"
            )


def _log_or_zero(x: Any) -> Any:
    """``log(x)`` where x is above 0, else 0, and no gradient."""
    one: Any = power(x, 0)
    positive = greater(x, sub(one, one))
    return log(where(positive, x, one))


def _reference_log_or_zero(x: Array) -> Array:
    return np.asarray(formula("log")(np.where(x > 0, x, x.dtype.type(1))))


# ------------------------------------------------------------------ focal


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
    _numbers(name, 0.0, **({} if alpha is None else {"alpha": alpha}))
    if not 0 <= gamma <= MOST_POWER:
        raise DomainError(f"{name}: argument 'gamma': expected a number from 0 to 2**20, got {gamma!r}")
    logits, targets = fitted(name, logits, targets)
    p: Any = sigmoid(logits)
    missed: Any = sub(add(p, targets), scale(mul(p, targets), 2.0))
    terms: Any = mul(logit_terms(logits, targets), power(missed, gamma))
    if alpha is not None:
        terms = mul(terms, shift(scale(targets, 2 * alpha - 1), 1 - alpha))
    return reduced(terms, reduction)


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
    _numbers(name, 0.0, eps=eps)
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
    _numbers(name, 0.0, eps=eps)
    mean, targets, var = fitted(name, mean, targets, var)
    least: Any = clamp(var, eps, float("inf"))
    terms: Any = scale(add(log(least), div(square(sub(mean, targets)), least)), 0.5)
    return reduced(shift(terms, HALF_LOG_TWO_PI) if full else terms, reduction)
