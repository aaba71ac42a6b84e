"""The tangent, the inverse trigonometric functions, the hyperbolic ones and their inverses."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference import functions as reference
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.pointwise_op import SPECIAL, pointwise_op
from ...record.samples import Make, Sample
from ...record.types import F, Operand, S
from ...var.var import Var
from .arithmetic import add, div, mul, neg, scale, sub
from .functions import LARGE, rsqrt, shift, square
from .kernels import basic as kernels, inverse as kernels_inverse, trigonometry as kernels_trigonometry
from .select import equal, keep


def _lower_tan(x: Slot) -> Slot:
    sine, cosine = (elementwise(k, x, work=30) for k in (kernels_trigonometry.sin, kernels_trigonometry.cos))
    return elementwise(kernels.div, sine, cosine)


def _reference_tan(x: Array) -> Array:
    return reference.sin(x) / reference.cos(x)


def _inside(make: Make) -> list[Sample]:
    """Numbers inside ±1, and each special one."""
    drawn = [Sample((make(*shape) * make.dtype.type(0.49),)) for shape in ((), (0, 3), (3, 37))]
    edges = np.array([0.5, -0.5, 1.0, -1.0, 1.25, -1.25, 0.75, -0.75], make.dtype)
    return [*drawn, Sample((make(6, 4).T * make.dtype.type(0.4),)), *(Sample((x,)) for x in (_special(make), edges))]


def _above_one(make: Make) -> list[Sample]:
    drawn = [Sample((make.positive(*shape) + make.dtype.type(1),)) for shape in ((), (0, 3), (3, 37))]
    edges = np.array([1.0, 0.5, -1.0, -3.0, 1e10, 1e38], make.dtype)
    return [
        *drawn,
        Sample((make.positive(6, 4).T * 2 + make.dtype.type(1),)),
        *(Sample((x,)) for x in (_special(make), edges)),
    ]


def _special(make: Make) -> Array:
    return np.array(SPECIAL).astype(make.dtype)


def _points(make: Make) -> list[Sample]:
    """Points of every quadrant, and each special coordinate beside each other."""
    special = np.array((*SPECIAL, 1.0, -1.0)).astype(make.dtype)
    drawn = [Sample((make(*shape), make(*shape))) for shape in ((), (0,), (3, 37))]
    pairs = Sample((np.repeat(special, special.size), np.tile(special, special.size)))
    return [*drawn, Sample((make(4, 3).T, make(3, 4))), pairs]


@op(
    lower=_lower_tan,
    along=(lambda d, y: mul(d, shift(square(y), 1.0)),),
    reference=_reference_tan,
    samples=lambda make: [*_inside(make), Sample((np.array([*LARGE, np.inf], make.dtype),))],
    batch_axis={"x": 0},
)
def tan(x: Var[F, *S]) -> Var[F, *S]:
    """The tangent of an angle in radians: the quotient of sine and cosine; NaN for infinite ones.

    Source: numpy.tan.

    >>> from dgrr.tape import Tape, ops
    >>> ops.tan(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 1.5574])
    """
    ...


@pointwise_op(
    kernels_inverse.arc,
    lambda d, x: div(d, shift(square(x), 1.0)),
    word=kernels_inverse.ATAN,
    reference=reference.atan,
    at=[(0.4140625, -0.4141, 2.4140625, 2.5, 1e30)],
    work=30,
)
def atan(x: Var[F, *S]) -> Var[F, *S]:
    """The angle in radians whose tangent is x.

    Source: numpy.arctan; torch.atan.

    >>> from dgrr.tape import Tape, ops
    >>> ops.atan(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7854])
    """
    ...


@pointwise_op(
    kernels_inverse.arc,
    lambda d, x: mul(d, rsqrt(shift(neg(square(x)), 1.0))),
    word=kernels_inverse.ASIN,
    reference=reference.asin,
    samples=_inside,
    work=30,
)
def asin(x: Var[F, *S]) -> Var[F, *S]:
    """The angle in radians whose sine is x; NaN beyond ±1.

    Source: numpy.arcsin; torch.asin.

    >>> from dgrr.tape import Tape, ops
    >>> ops.asin(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 1.5708])
    """
    ...


@pointwise_op(
    kernels_inverse.arc,
    lambda d, x: neg(mul(d, rsqrt(shift(neg(square(x)), 1.0)))),
    word=kernels_inverse.ACOS,
    reference=reference.acos,
    samples=_inside,
    work=30,
)
def acos(x: Var[F, *S]) -> Var[F, *S]:
    """The angle in radians whose cosine is x; NaN beyond ±1.

    Source: numpy.arccos; torch.acos.

    >>> from dgrr.tape import Tape, ops
    >>> ops.acos(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([1.5708, 0.    ])
    """
    ...


def _turn(g: Any, along: Any, a: Any, b: Any) -> Any:
    """``g`` times a coordinate over the square of the distance from the middle; +0 where that square is 0."""
    squares = add(square(a), square(b))
    return keep(mul(g, div(along, squares)), equal(squares, scale(squares, 0.0)), wanted=False)


@pointwise_op(
    kernels_inverse.atan2,
    lambda d, a, b: _turn(d, b, a, b),
    lambda d, a, b: neg(_turn(d, a, a, b)),
    jvp=lambda da, db, a, b: sub(_turn(da, b, a, b), _turn(db, a, a, b)),
    samples=_points,
    work=40,
)
def atan2(a: Operand[F, *S], b: Operand[F, *S]) -> Var[F, *S]:
    """The angle in radians of the point (b, a), from -pi to pi, by IEEE-754's atan2 with its signed zeros.

    The gradient is 0 where ``a * a + b * b`` is 0.

    Source: atan2Pi of IEEE 754-2019, times pi; numpy.arctan2, torch.atan2.

    >>> from dgrr.tape import Tape, ops
    >>> ops.atan2(Tape().leaf([1.0, 0.0]), [1.0, -1.0]).numpy().round(4)
    array([0.7854, 3.1416])
    """
    ...


@pointwise_op(
    kernels_inverse.hyperbolic,
    lambda d, x: mul(d, cosh(x)),
    word=kernels_inverse.SINH,
    reference=reference.sinh,
    at=[(1e-9, 0.99, 1.0, 20.0), (-89.2, 710.2, np.inf)],
    work=50,
)
def sinh(x: Var[F, *S]) -> Var[F, *S]:
    """The hyperbolic sine, ``(e ** x - e ** -x) / 2``.

    Source: numpy.sinh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sinh(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 1.1752])
    """
    ...


@pointwise_op(
    kernels_inverse.hyperbolic,
    lambda d, x: mul(d, sinh(x)),
    word=kernels_inverse.COSH,
    reference=reference.cosh,
    at=[(1e-9, 20.0), (-89.2, 710.2, np.inf)],
    work=30,
)
def cosh(x: Var[F, *S]) -> Var[F, *S]:
    """The hyperbolic cosine, ``(e ** x + e ** -x) / 2``.

    Source: numpy.cosh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cosh(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([1.    , 1.5431])
    """
    ...


@pointwise_op(
    kernels_inverse.hyperbolic,
    lambda d, x: mul(d, rsqrt(shift(square(x), 1.0))),
    word=kernels_inverse.ASINH,
    reference=reference.asinh,
    at=[(1e-9, 20.0, -1e10, 1e38)],
    work=60,
)
def asinh(x: Var[F, *S]) -> Var[F, *S]:
    """The number whose hyperbolic sine is x.

    Source: numpy.arcsinh; torch.asinh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.asinh(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8814])
    """
    ...


@pointwise_op(
    kernels_inverse.hyperbolic,
    lambda d, x: mul(d, rsqrt(shift(square(x), -1.0))),
    word=kernels_inverse.ACOSH,
    reference=reference.acosh,
    samples=_above_one,
    work=60,
)
def acosh(x: Var[F, *S]) -> Var[F, *S]:
    """The number of at least 0 whose hyperbolic cosine is x; NaN below 1.

    Source: numpy.arccosh; torch.acosh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.acosh(Tape().leaf([1.0, 2.0])).numpy().round(4)
    array([0.   , 1.317])
    """
    ...


@pointwise_op(
    kernels_inverse.hyperbolic,
    lambda d, x: div(d, shift(neg(square(x)), 1.0)),
    word=kernels_inverse.ATANH,
    reference=reference.atanh,
    samples=_inside,
    work=40,
)
def atanh(x: Var[F, *S]) -> Var[F, *S]:
    """The number whose hyperbolic tangent is x: infinite at ±1, NaN beyond.

    Source: numpy.arctanh; torch.atanh.

    >>> from dgrr.tape import Tape, ops
    >>> ops.atanh(Tape().leaf([0.0, 0.5])).numpy().round(4)
    array([0.    , 0.5493])
    """
    ...
