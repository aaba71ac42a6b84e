"""Functions that are constant between whole numbers: the sign, and roundings to whole numbers. Their gradient is 0."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ....base.arrays import Array
from ...record.pointwise_op import SPECIAL, pointwise_op
from ...record.samples import unary
from ...record.types import F, S
from ...var.var import Var
from .clamp import where_inside
from .kernels import rounding as kernels

Function = TypeVar("Function", bound=Callable[..., Any])

EDGES = (0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.3, -0.3, 0.7, -0.7, 3.0, 8388609.0, -4194303.5)
"""Halves, both sides of 0, and numbers from which on every float is whole."""


def nothing_of(g: Any) -> Any:
    """+0 in every place: no number lies between 0 and 0, whatever ``g`` is."""
    return where_inside(g, g, 0.0, 0.0)


def _level(which: int, reference: Callable[[Array], Array]) -> Callable[[Function], Function]:
    """The record of a function that is level almost everywhere."""
    samples = unary(SPECIAL, EDGES)
    return pointwise_op(kernels.rounded, lambda d: nothing_of(d), word=which, reference=reference, samples=samples)


def _reference_sign(x: Array) -> Array:
    real = x.dtype.type
    return np.where(np.isnan(x), x, np.where(x > 0, real(1), np.where(x < 0, real(-1), real(0))))


@_level(kernels.SIGN, _reference_sign)
def sign(x: Var[F, *S]) -> Var[F, *S]:
    """1 for x > 0, -1 for x < 0, +0 for zeros; NaN stays. The gradient is 0.

    Source: numpy.sign.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sign(Tape().leaf([2.5, -0.1, 0.0])).numpy()
    array([ 1., -1.,  0.])
    """
    ...


@_level(kernels.FLOOR, np.floor)
def floor(x: Var[F, *S]) -> Var[F, *S]:
    """The largest whole number that is not above x; zeros, infinities and NaN stay. The gradient is 0.

    Source: numpy.floor; roundToIntegralTowardNegative of IEEE 754-2019.

    >>> from dgrr.tape import Tape, ops
    >>> ops.floor(Tape().leaf([2.5, -0.1])).numpy()
    array([ 2., -1.])
    """
    ...


@_level(kernels.CEIL, np.ceil)
def ceil(x: Var[F, *S]) -> Var[F, *S]:
    """The smallest whole number that is not below x; zeros, infinities and NaN stay. The gradient is 0.

    Source: numpy.ceil; roundToIntegralTowardPositive of IEEE 754-2019.

    >>> from dgrr.tape import Tape, ops
    >>> ops.ceil(Tape().leaf([2.5, -0.1])).numpy()
    array([ 3., -0.])
    """
    ...


@_level(kernels.ROUND, np.rint)
def round(x: Var[F, *S]) -> Var[F, *S]:
    """The nearest whole number, a half to the even one; zeros, infinities and NaN stay. The gradient is 0.

    Source: numpy.round; roundToIntegralTiesToEven of IEEE 754-2019.

    >>> from dgrr.tape import Tape, ops
    >>> ops.round(Tape().leaf([2.5, -0.1, 3.5])).numpy()
    array([ 2., -0.,  4.])
    """
    ...


@_level(kernels.TRUNC, np.trunc)
def trunc(x: Var[F, *S]) -> Var[F, *S]:
    """x without its places after the point; zeros, infinities and NaN stay. The gradient is 0.

    Source: numpy.trunc; roundToIntegralTowardZero of IEEE 754-2019.

    >>> from dgrr.tape import Tape, ops
    >>> ops.trunc(Tape().leaf([2.5, -2.5])).numpy()
    array([ 2., -2.])
    """
    ...
