"""Losses between two arrays of one shape, element by element. They never broadcast."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import inf, prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, DTypeError, ShapeError
from ...numerics.math import reference as math_reference, reference_sums
from ...numerics.simd import sums as reduce_kernels
from ...record.lowering import Slot, call, elementwise
from ...record.op import op
from ...record.samples import Bad, Make, Sample, bad
from ...record.types import F, S
from ...values.spec import Spec
from ...var.var import Var
from ..elementwise.arithmetic import add, divide, mul, neg, scale, sub
from ..elementwise.clamp import clamp
from ..elementwise.exponential import sigmoid
from ..elementwise.kernels import basic as arithmetic
from ..reduce.reduce import broadcast_to, reduce_sum
from . import kernels, reference

SUMS = {"batch": "it averages over the batch"}


def _mean(terms: Slot) -> Slot:
    n = terms.spec.size
    return call(reduce_kernels.mean_rows, [terms], (), 1, n, work=n)


def _reference_mean(terms: Array) -> Array:
    return np.asarray(reference_sums.row_sum(terms) / terms.dtype.type(terms.size))


def _pairs(make: Make, most: int = 4100) -> list[Sample]:
    return [Sample((make(*s), make(*s))) for s in ((), (5,), (3, 11), (most,), (0,))]


def _mismatches(name: str, second: str) -> tuple[Bad, Bad]:
    return (
        bad(ShapeError, f"{name}: argument {second!r}: expected shape (3, 1), got (3,)", (3, 1), (3,)),
        bad(DTypeError, f"{name}: argument {second!r}: expected float32, got float64", (3,), np.zeros(3)),
    )


def _slope(a: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    """The derivative of the mean square by a: ``((a - b) * 2) / n``."""
    return divide(scale(sub(a, b), 2.0), prod(a_shape))


def _mse_vjp(g: Any, a: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return mul(_slope(a, b, a_shape), broadcast_to(g, a_shape))


@op(
    infer=lambda a, b: Spec((), a.dtype),
    lower=lambda a, b: call(reduce_kernels.mean_squared_difference, [a, b], (), a.spec.size, work=2 * a.spec.size),
    vjp=(_mse_vjp, lambda g, a, b, a_shape: neg(_mse_vjp(g, a, b, a_shape))),
    jvp=lambda da, db, a, b, a_shape: reduce_sum(mul(sub(da, db), _slope(a, b, a_shape))),
    reference=reference.mse,
    samples=lambda make: [Sample((make(*s), make(*s))) for s in ((), (5,), (3, 40), (4100,), (0,))],
    errors=(
        bad(ShapeError, "mse_loss: argument 'b': expected shape (3, 1), got (3,)", (3, 1), (3,)),
        bad(DTypeError, "mse_loss: argument 'b': expected float32, got float64", (3,), np.zeros(3)),
    ),
    excused=SUMS,
    private=True,
)
def mse_loss(a: Var[F, *S], b: Var[F, *S]) -> Var[F]:
    """The mean of ``(a - b) ** 2``; both sides get gradients."""
    ...


def _lower_mse_grad(a: Slot, b: Slot) -> Slot:
    doubled = elementwise(arithmetic.scale, elementwise(arithmetic.sub, a, b), attrs=(2.0,))
    return elementwise(arithmetic.divide, doubled, attrs=(a.spec.size,))


def _over_count(g: Any, a_shape: tuple[int, ...]) -> Any:
    return divide(scale(g, 2.0), prod(a_shape))


@op(
    lower=_lower_mse_grad,
    vjp=(lambda g, a_shape: _over_count(g, a_shape), lambda g, a_shape: neg(_over_count(g, a_shape))),
    jvp=lambda da, db, a_shape: _over_count(sub(da, db), a_shape),
    reference=lambda a, b: ((a - b) * a.dtype.type(2)) / a.dtype.type(a.size),
    samples=_pairs,
    errors=_mismatches("mse_grad", "b"),
    covers=("mse_grad",),
    excused={"batch": "it divides by the size of the batch"},
)
def mse_grad(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``2 (a - b) / n``: the gradient of ``mse_loss(a, b)`` by a.

    Source: the derivative of torch.nn.functional.mse_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mse_grad(Tape().leaf([1.0, 2.0]), [1.0, 4.0]).numpy()
    array([ 0., -2.])
    """
    ...


def require_delta(delta: float) -> None:
    """Raise DomainError unless it is a positive finite number."""
    if not 0 < delta < inf:
        raise DomainError(f"huber_loss: argument 'delta': expected a positive finite number, got {delta!r}")


def _infer_huber(a: Spec, b: Spec, delta: float) -> Spec:
    require_delta(delta)
    return Spec((), a.dtype)


HUBER_ERRORS = (
    *_mismatches("huber_loss", "b"),
    bad(DomainError, "'delta': expected a positive finite number, got 0.0", (2,), (2,), delta=0.0),
)


def _huber_slope(a: Any, b: Any, delta: float, a_shape: tuple[int, ...]) -> Any:
    return divide(clamp(sub(a, b), -delta, delta), prod(a_shape))


def _huber_vjp(g: Any, a: Any, b: Any, delta: float, a_shape: tuple[int, ...]) -> Any:
    return mul(_huber_slope(a, b, delta, a_shape), broadcast_to(g, a_shape))


def _reference_huber(a: Array, b: Array, delta: float = 1.0) -> Array:
    real, d = a.dtype.type, a - b
    bound, size = real(delta), abs(d)
    quadratic, linear = (real(0.5) * d) * d, bound * (size - real(0.5) * bound)
    return _reference_mean(np.where(size <= bound, quadratic, linear))


@op(
    infer=_infer_huber,
    lower=lambda a, b, delta: _mean(elementwise(kernels.huber_terms, a, b, attrs=(float(delta),), work=8)),
    vjp=(
        lambda g, a, b, delta, a_shape: _huber_vjp(g, a, b, delta, a_shape),
        lambda g, a, b, delta, a_shape: neg(_huber_vjp(g, a, b, delta, a_shape)),
    ),
    jvp=lambda da, db, a, b, delta, a_shape: reduce_sum(mul(sub(da, db), _huber_slope(a, b, delta, a_shape))),
    reference=_reference_huber,
    samples=lambda make: [*_pairs(make), Sample((make(3, 7), make(3, 7)), {"delta": 0.25})],
    errors=HUBER_ERRORS,
    excused=SUMS,
    private=True,
)
def huber_loss(a: Var[F, *S], b: Var[F, *S], delta: float = 1.0) -> Var[F]:
    """The mean of ``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``, with ``d = a - b``."""
    ...


def _logit_slope(logits: Any, targets: Any, n: int) -> Any:
    return divide(sub(sigmoid(logits), targets), n)


def _logit_tangent(dlogits: Any, dtargets: Any, logits: Any, targets: Any, logits_shape: tuple[int, ...]) -> Any:
    n = prod(logits_shape)
    by_targets = neg(mul(dtargets, divide(logits, n)))
    return reduce_sum(add(mul(dlogits, _logit_slope(logits, targets, n)), by_targets))


def reference_product(logits: Array, targets: Array) -> Array:
    """What `logit_product` gives."""
    lost = (targets == 0) | ((logits == inf) & (targets < 1))
    return np.where(lost, logits.dtype.type(0), logits * targets)


def _extreme_logits(make: Make) -> Sample:
    """Logits and targets at their limits, each beside each."""
    special = np.array([0.0, -0.0, 1.0, -1.0, 1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan]).astype(make.dtype)
    logits, targets = np.meshgrid(special, np.array([0.0, -0.0, 0.25, 1.0, np.nan], make.dtype))
    return Sample((logits.reshape(-1), targets.reshape(-1)))


@op(
    lower=lambda logits, targets: elementwise(kernels.logit_products, logits, targets),
    vjp=(lambda g, targets: mul(g, targets), lambda g, logits: mul(g, logits)),
    jvp=lambda dlogits, dtargets, logits, targets: add(mul(dlogits, targets), mul(logits, dtargets)),
    reference=reference_product,
    samples=lambda make: [Sample((make(3, 5), make(3, 5))), _extreme_logits(make)],
    batch_axis={"logits": 0, "targets": 0},
    private=True,
)
def logit_product(logits: Var[F, *S], targets: Var[F, *S]) -> Var[F, *S]:
    """``logits * targets``; 0 for a target of 0 and any logit, and for a logit of inf and a target below 1."""
    ...


def _reference_logits(logits: Array, targets: Array) -> Array:
    linear = np.where(logits < 0, logits.dtype.type(0), logits) - reference_product(logits, targets)
    return _reference_mean(linear + math_reference.log1p(math_reference.exp(-abs(logits))))


@op(
    infer=lambda logits, targets: Spec((), logits.dtype),
    lower=lambda logits, targets: _mean(elementwise(kernels.logit_terms, logits, targets, work=50)),
    vjp=(
        lambda g, logits, targets, logits_shape: mul(
            _logit_slope(logits, targets, prod(logits_shape)), broadcast_to(g, logits_shape)
        ),
        lambda g, logits, logits_shape: neg(mul(divide(logits, prod(logits_shape)), broadcast_to(g, logits_shape))),
    ),
    jvp=_logit_tangent,
    reference=_reference_logits,
    samples=lambda make: [
        *_pairs(make, 40),
        Sample((make(9) * make.dtype.type(500), make.unit(9))),
        _extreme_logits(make),
    ],
    errors=_mismatches("binary_cross_entropy_with_logits", "targets"),
    excused=SUMS,
    private=True,
)
def binary_cross_entropy_with_logits(logits: Var[F, *S], targets: Var[F, *S]) -> Var[F]:
    """The mean of ``-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))``, finite for finite logits x of any size."""
    ...
