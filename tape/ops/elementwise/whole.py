"""Division of whole numbers, and logic of masks: ops without a gradient."""

from functools import partial
from typing import Any

import numpy as np

from ...errors import DTypeError
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, elementwise
from ...record.op import op
from ...record.samples import Make, Sample, bad
from ...record.types import S, W
from ...values.dtypes import boolean
from ...var.var import Var
from .kernels import whole as kernels

BOTH = {"a": 0, "b": 0}
FLOATS = bad(DTypeError, "argument 'a': expected int64, got float32", (3,), (3,))
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def whole_pairs(make: Make) -> list[Sample]:
    """Small numbers of both signs, and the ends of the range beside what makes them wrap or divides them by 0."""
    small = np.array([7, -7, 7, -7, 6, 0, 5])
    ends = np.array([LEAST, LEAST, MOST, MOST, LEAST, 3])
    return [
        Sample((small, np.array([2, 2, -2, -2, 3, -4, 0]))),
        Sample((ends, np.array([-1, LEAST, 1, MOST, 1, 0]))),
        Sample((make.indices(9, 4, 3).T, make.indices(9, 3, 4))),
    ]


def _lower(which: int, a: Slot, b: Slot) -> Slot:
    return elementwise(kernels.whole, a, b, attrs=(which,))


@op(
    lower=partial(_lower, kernels.FLOOR_DIVIDE),
    vjp=NO_GRAD,
    jvp=NO_GRAD,
    reference=np.floor_divide,
    samples=whole_pairs,
    errors=(FLOATS,),
    batch_axis=BOTH,
)
def floor_divide(a: Var[W, *S], b: Var[W, *S]) -> Var[W, *S]:
    """``a // b`` of whole numbers, rounded down: 0 for b = 0, and ``-2**63 // -1`` wraps. ``//`` on Vars broadcasts.

    Source: numpy.floor_divide, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.floor_divide(Tape().const([7, -7]), [2, 2]).numpy()
    array([ 3, -4])
    """
    ...


@op(
    lower=partial(_lower, kernels.REMAINDER),
    vjp=NO_GRAD,
    jvp=NO_GRAD,
    reference=np.remainder,
    samples=whole_pairs,
    errors=(FLOATS,),
    batch_axis=BOTH,
)
def remainder(a: Var[W, *S], b: Var[W, *S]) -> Var[W, *S]:
    """``a % b`` of whole numbers, ``a - (a // b) * b``: 0 for b = 0. ``%`` on Vars broadcasts.

    Source: numpy.remainder, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.remainder(Tape().const([7, -7]), [2, 2]).numpy()
    array([1, 1])
    """
    ...


def _masks(make: Make) -> list[Sample]:
    """Every pair of truths, and masks of other shapes."""
    every = np.array([False, False, True, True]), np.array([False, True, False, True])
    return [Sample(every), Sample((make.mask(3, 7), make.mask(3, 7))), Sample((make.mask(4, 3).T, make.mask(3, 4)))]


def _lower_logical(which: int, a: Slot, b: Slot) -> Slot:
    return elementwise(kernels.logical, a, b, attrs=(which,))


def _errors(**given: Any) -> Any:
    ((name, count),) = given.items()
    text = f"argument {name!r}: expected bool, got float32; convert with ops.cast"
    return (bad(DTypeError, text, *[(3,)] * count),)


@op(
    lower=partial(_lower_logical, kernels.AND),
    vjp=NO_GRAD,
    jvp=NO_GRAD,
    reference=np.logical_and,
    samples=_masks,
    errors=_errors(a=2),
    batch_axis=BOTH,
)
def logical_and(a: Var[boolean, *S], b: Var[boolean, *S]) -> Var[boolean, *S]:
    """Whether both are true, element by element; ``&`` on Vars broadcasts.

    Source: numpy.logical_and, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_and(Tape().const([True, True]), [True, False]).numpy()
    array([ True, False])
    """
    ...


@op(
    lower=partial(_lower_logical, kernels.OR),
    vjp=NO_GRAD,
    jvp=NO_GRAD,
    reference=np.logical_or,
    samples=_masks,
    errors=_errors(a=2),
    batch_axis=BOTH,
)
def logical_or(a: Var[boolean, *S], b: Var[boolean, *S]) -> Var[boolean, *S]:
    """Whether one or both are true, element by element; ``|`` on Vars broadcasts.

    Source: numpy.logical_or, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_or(Tape().const([True, False]), [False, False]).numpy()
    array([ True, False])
    """
    ...


@op(
    lower=partial(_lower_logical, kernels.XOR),
    vjp=NO_GRAD,
    jvp=NO_GRAD,
    reference=np.logical_xor,
    samples=_masks,
    errors=_errors(a=2),
    batch_axis=BOTH,
)
def logical_xor(a: Var[boolean, *S], b: Var[boolean, *S]) -> Var[boolean, *S]:
    """Whether one of two is true and the other is not, element by element; ``^`` on Vars broadcasts.

    Source: numpy.logical_xor, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_xor(Tape().const([True, True]), [True, False]).numpy()
    array([False,  True])
    """
    ...


@op(
    lower=lambda x: elementwise(kernels.logical, x, x, attrs=(kernels.NOT,)),
    vjp=NO_GRAD,
    jvp=NO_GRAD,
    reference=np.logical_not,
    samples=lambda make: [Sample((np.array([False, True]),)), Sample((make.mask(3, 4),)), Sample((make.mask(4, 3).T,))],
    errors=_errors(x=1),
    batch_axis={"x": 0},
)
def logical_not(x: Var[boolean, *S]) -> Var[boolean, *S]:
    """Whether it is not true, element by element; also ``~x``.

    Source: numpy.logical_not.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_not(Tape().const([True, False])).numpy()
    array([False,  True])
    """
    ...
