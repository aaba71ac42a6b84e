"""Losses. They never broadcast: unequal shapes are an error."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any

import numpy as np

from ..derivative import NO_GRAD
from ..dtypes import i64
from ..errors import BoundsError, DTypeError, ShapeError
from ..numerics import reduce as reduce_kernels
from ..numerics import reference
from ..numerics import softmax as kernels
from ..op import op
from ..primitive import Slot, Spec, call
from ..samples import Make, Sample, bad
from ..var import Var
from .elementwise import add, divide, mul, neg, power, scale, sub
from .reduce import broadcast_to, reduce_sum
from .softmax import WORK, softmax
from .types import B, C, F, S

SUMS = {"batch": "it averages over the batch"}


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
    covers=("mse_loss",),
    excused=SUMS,
)
def mse_loss(a: Var[F, *S], b: Var[F, *S]) -> Var[F]:
    """The mean of ``(a - b) ** 2``; both sides get gradients."""
    ...


def _labels(make: Make) -> list[Sample]:
    return [
        Sample((make(6, 10), make.indices(10, 6))),
        Sample((make(1, 1), np.array([0]))),
        Sample((make(37, 3), make.indices(3, 37))),
        Sample((make(4, 40) * make.dtype.type(50), make.indices(40, 4))),
        Sample((make(0, 3), np.array([], np.int64))),
        Sample((make(3, 5).T, np.array([2, 0, 1, 1, 2]))),
    ]


LABEL = "{op}: argument 'labels': expected a class from 0 to {high}, got {{value}} at position {{position}}"
OUTSIDE = bad(
    BoundsError,
    "argument 'labels': expected a class from 0 to 2, got 3 at position 1",
    (2, 3),
    np.array([0, 3]),
)


def _refusal(name: str, classes: int) -> str:
    return LABEL.format(op=name, high=classes - 1)


def _lower_cross_entropy(logits: Slot, labels: Slot) -> Slot:
    rows, n = logits.shape
    work, refusal = WORK * rows * n, _refusal("cross_entropy", n)
    losses = call(kernels.cross_entropy_rows, [logits, labels], (rows,), rows, n, work=work, refusal=refusal)
    return call(reduce_kernels.mean_rows, [losses], (), 1, rows, work=rows)


@op(
    lower=_lower_cross_entropy,
    vjp=(lambda g, logits, labels: cross_entropy_grad(logits, labels, g), NO_GRAD),
    jvp=lambda dlogits, logits, labels, y: reduce_sum(mul(dlogits, _unit_gradient(logits, labels, y))),
    reference=reference.cross_entropy,
    samples=_labels,
    errors=(
        OUTSIDE,
        bad(BoundsError, "got -1 at position 0", (2, 3), np.array([-1, 0])),
        bad(
            ShapeError,
            "cross_entropy: argument 'labels': expected shape (2,), got (3,)",
            (2, 3),
            np.array([0, 1, 1]),
        ),
        bad(DTypeError, "cross_entropy: argument 'labels': expected int64, got float32", (2, 3), (2,)),
    ),
    excused=SUMS,
)
def cross_entropy(logits: Var[F, B, C], labels: Var[i64, B]) -> Var[F]:
    """The mean over the batch of ``-log_softmax(logits)[label]``, for integer labels."""
    ...


def _unit_gradient(logits: Any, labels: Any, scalar: Any) -> Any:
    """The gradient of the loss by the logits; ``scalar ** 0`` is a 1 that lives where the operands do."""
    return cross_entropy_grad(logits, labels, power(scalar, 0))


def _softmax_product(u: Any, logits: Any, weight: Any) -> Any:
    """The softmax's Jacobian times ``u``, times ``weight / rows``."""
    p, shape = softmax(logits), tuple(logits.shape)
    centred = sub(u, broadcast_to(reduce_sum(mul(u, p), -1, True), shape))
    return mul(mul(p, centred), broadcast_to(divide(weight, shape[0]), shape))


def _lower_cross_entropy_grad(logits: Slot, labels: Slot, weight: Slot) -> Slot:
    rows, n = logits.shape
    refusal = _refusal("cross_entropy_grad", n)
    inputs = [logits, labels, weight]
    return call(kernels.cross_entropy_grad, inputs, (rows, n), rows, n, work=WORK * rows * n, refusal=refusal)


@op(
    lower=_lower_cross_entropy_grad,
    vjp=(
        lambda g, logits, weight: _softmax_product(g, logits, weight),
        NO_GRAD,
        lambda g, logits, labels, weight: reduce_sum(mul(g, _unit_gradient(logits, labels, weight))),
    ),
    jvp=lambda dlogits, dweight, logits, labels, weight: add(
        _softmax_product(dlogits, logits, weight), cross_entropy_grad(logits, labels, dweight)
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
