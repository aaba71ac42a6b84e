"""Standard deviations and norms along axes, made of other ops."""

from math import inf, nan
from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...numerics.math.exact import quotient
from ...numerics.math.reference.sums import reduce_sum as sum_reference
from ...record.composed import composed, fitted
from ...record.kinds.values import AXES, Values
from ...record.samples import Make, Sample
from ...record.types import Axis, F, N, S
from ...values.spec import Spec
from ...var.method_types import Axes, Flat, UnknownAxis, typed_as
from ...var.var import Gradual, Var, moment, shape_of
from ..elementwise.arithmetic import add, power, scale, sqrt
from ..elementwise.clamp import absolute
from ..elementwise.functions import square
from ..elementwise.reference import powered
from ..elementwise.select import cast, equal, where
from .extremes import reduce_max
from .moments import MOMENT_KINDS, infer_moment, var
from .reduce import reduce_sum
from .reference import reductions as reference
from .rows import infer_rows

REDUCED = {"batch": "by default the batch is reduced"}
LARGEST = 1 << 20
"""The largest exponent of a norm, and one over the smallest: roots and powers are known up to here."""


def _reference_std(x: Array, axis: Any = None, keepdims: bool = False, correction: int = 0) -> Array:
    return np.sqrt(reference.var(x, axis, keepdims, correction))


@typed_as(moment)
@composed(
    reference=_reference_std,
    samples=lambda make: [
        Sample((make(7),)),
        Sample((make(4, 5),), {"axis": 0, "correction": 1}),
        Sample((make(3, 2, 4),), {"axis": (0, 2), "keepdims": True}),
        Sample((make(4, 3).T,), {"axis": 1}),
        Sample((np.array([[2.0, 2.0, 2.0], [1.0, np.nan, 2.0]], make.dtype),), {"axis": 1}),
        Sample((make(3, 1),), {"axis": 1, "correction": 1}),
    ],
    kinds=MOMENT_KINDS,
    excused=REDUCED,
)
def std(x: Gradual[F], axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Gradual[F]:
    """The standard deviation along an axis, several, or all: ``sqrt(var(x))``. The gradient where it is 0 is 0.

    ``correction`` 0 is numpy's default and that of `var`, 1 PyTorch's.

    Source: numpy.std; ``correction`` is that of torch.std.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.std(Tape().leaf([1.0, 3.0, 5.0]), correction=1).item()
    2.0
    """
    (x,) = fitted("std", x)
    infer_moment("std", Spec(shape_of(x), x.dtype), axis, keepdims, correction)
    return sqrt(var(x, axis, keepdims, correction))


def _reference_norm(x: Array, p: float = 2.0, axis: Any = None, keepdims: bool = False) -> Array:
    size = np.abs(x)
    if p == inf:
        return reference.reduce_max(size, axis, keepdims)
    if p == 1:
        return sum_reference(size, axis, keepdims)
    if p == 2:
        return np.sqrt(sum_reference(x * x, axis, keepdims))
    return powered(sum_reference(powered(size, p), axis, keepdims), quotient(1, p))


def _norms(make: Make) -> list[Sample]:
    cases = [(2.0, None), (2.0, -1), (1.0, 0), (inf, (0, 2)), (3.0, 1), (1.5, -1)]
    zeros = np.array([[0.0, 0.0], [3.0, -4.0], [-np.inf, 1.0]], make.dtype)
    drawn = [Sample((make(3, 2, 4),), {"p": p, "axis": axis}) for p, axis in cases]
    given = [Sample((zeros,), {"p": p, "axis": 1}) for p in (1.0, 2.0, 3.0, inf)]
    return [
        *drawn,
        *given,
        Sample((make(4, 3).T,), {"axis": 1, "keepdims": True}),
        Sample((make(2, 0),), {"p": 1.0, "axis": 1}),
    ]


EXPONENT = Values(
    "a number from 2**-20 to 2**20 or inf",
    lambda p: p == inf or 1 / LARGEST <= p <= LARGEST,
    (0.0, -1.0, -inf, nan, 1 / LARGEST / 2, LARGEST * 2.0),
)


@overload
def power_norm(
    x: Var[F, UnknownAxis, *tuple[UnknownAxis, ...]], p: float, axis: int | Axes, keepdims: bool = False
) -> Gradual[F]: ...
@overload
def power_norm(x: Gradual[F], p: float = 2.0, axis: None = None, keepdims: Flat = False) -> Var[F]: ...
@overload
def power_norm(x: Var[F, *S, N], p: float = 2.0, *, axis: Literal[-1], keepdims: Flat = False) -> Var[F, *S]: ...
@overload
def power_norm(x: Var[F, N, *S], p: float = 2.0, *, axis: Literal[0], keepdims: Flat = False) -> Var[F, *S]: ...
@overload
def power_norm(x: Gradual[F], p: float = 2.0, axis: Axis = None, keepdims: bool = False) -> Gradual[F]: ...
def power_norm(x: Any, p: float = 2.0, axis: Axis = None, keepdims: bool = False) -> Any:
    """The type of `norm`: a reduction with an exponent before its axis."""


@typed_as(power_norm)
@composed(
    reference=_reference_norm,
    samples=_norms,
    kinds={"p": EXPONENT, "axis": AXES},
    excused=REDUCED,
)
def norm(x: Gradual[F], p: float = 2.0, axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """``sum(|x| ** p) ** (1 / p)`` along an axis, several, or all; the largest size for ``p=inf``.

    The gradient is 0 where the sum is 0. For ``p=inf`` it goes to the first of the largest ones. Squares are not
    scaled: they may overflow, or vanish.

    Source: torch.norm.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.norm(Tape().leaf([3.0, -4.0])).item(), ops.norm(Tape().leaf([3.0, -4.0]), 1).item()
    (5.0, 7.0)
    """
    (x,) = fitted("norm", x)
    infer_rows("norm", Spec(shape_of(x), x.dtype), axis, keepdims, empty=p != inf)
    if p == 2:
        return sqrt(reduce_sum(square(x), axis, keepdims))
    size = absolute(x)
    if p == inf:
        return reduce_max(size, axis, keepdims)
    if p == 1:
        return reduce_sum(size, axis, keepdims)
    rooted: Gradual[F] = _root(reduce_sum(power(size, p), axis, keepdims), quotient(1, p))
    return rooted


def _root(total: Any, exponent: float) -> Any:
    """``total ** exponent``, without a gradient where the total is 0, which the slope there would make infinite."""
    zero = scale(total, 0.0)
    none = equal(total, zero)
    return where(none, zero, power(add(total, cast(none, total.dtype)), exponent))
