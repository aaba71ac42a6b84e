"""Division of whole numbers, and logic of masks: ops without a gradient."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...errors import DTypeError
from ...numerics.engine.kernel import Kernel
from ...record.derivative import NO_GRAD
from ...record.lowering import elementwise
from ...record.op_decorator import op
from ...record.samples import Bad, Make, Sample, Samples, bad
from ...record.types import Operand, S, W
from ...values.dtypes import boolean
from ...var.var import Var
from .kernels import integer as kernels

Function = TypeVar("Function", bound=Callable[..., Any])

BOTH = {"a": 0, "b": 0}
FLOATS = bad(DTypeError, "argument 'a': expected int64, got float32", (3,), (3,))
NUMBERS = bad(DTypeError, "argument 'a': expected bool, got float32; convert with ops.cast", (3,), (3,))
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def integer_pairs(make: Make) -> list[Sample]:
    """Small numbers of both signs, and the ends of the range beside what makes them wrap or divides them by 0."""
    small = np.array([7, -7, 7, -7, 6, 0, 5])
    ends = np.array([LEAST, LEAST, MOST, MOST, LEAST, 3])
    return [
        Sample((small, np.array([2, 2, -2, -2, 3, -4, 0]))),
        Sample((ends, np.array([-1, LEAST, 1, MOST, 1, 0]))),
        Sample((make.indices(9, 4, 3).T, make.indices(9, 3, 4))),
    ]


def _of_pairs(
    kernel: Kernel, which: int, reference: Callable[..., Any], samples: Samples, refused: Bad
) -> Callable[[Function], Function]:
    """The record of a function of two elements that has no gradient; a word says which one the kernel computes."""
    return op(
        lower=lambda a, b: elementwise(kernel, a, b, attrs=(which,)),
        along=NO_GRAD,
        reference=reference,
        samples=samples,
        errors=(refused,),
        batch_axis=BOTH,
    )


@_of_pairs(kernels.integer, kernels.FLOOR_DIVIDE, np.floor_divide, integer_pairs, FLOATS)
def floor_divide(a: Operand[W, *S], b: Operand[W, *S]) -> Var[W, *S]:
    """``a // b`` of whole numbers, rounded down: 0 for b = 0, and ``-2**63 // -1`` wraps. ``//`` on Vars broadcasts.

    Source: numpy.floor_divide, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.floor_divide(Tape().const([7, -7]), [2, 2]).numpy()
    array([ 3, -4])
    """
    ...


@_of_pairs(kernels.integer, kernels.REMAINDER, np.remainder, integer_pairs, FLOATS)
def remainder(a: Operand[W, *S], b: Operand[W, *S]) -> Var[W, *S]:
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


@_of_pairs(kernels.logical, kernels.AND, np.logical_and, _masks, NUMBERS)
def logical_and(a: Operand[boolean, *S], b: Operand[boolean, *S]) -> Var[boolean, *S]:
    """Whether both are true, element by element; ``&`` on Vars broadcasts.

    Source: numpy.logical_and, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_and(Tape().const([True, True]), [True, False]).numpy()
    array([ True, False])
    """
    ...


@_of_pairs(kernels.logical, kernels.OR, np.logical_or, _masks, NUMBERS)
def logical_or(a: Operand[boolean, *S], b: Operand[boolean, *S]) -> Var[boolean, *S]:
    """Whether one or both are true, element by element; ``|`` on Vars broadcasts.

    Source: numpy.logical_or, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_or(Tape().const([True, False]), [False, False]).numpy()
    array([ True, False])
    """
    ...


@_of_pairs(kernels.logical, kernels.XOR, np.logical_xor, _masks, NUMBERS)
def logical_xor(a: Operand[boolean, *S], b: Operand[boolean, *S]) -> Var[boolean, *S]:
    """Whether one of two is true and the other is not, element by element; ``^`` on Vars broadcasts.

    Source: numpy.logical_xor, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logical_xor(Tape().const([True, True]), [True, False]).numpy()
    array([False,  True])
    """
    ...


@op(
    lower=lambda x: elementwise(kernels.logical, x, x, attrs=(kernels.NOT,)),
    along=NO_GRAD,
    reference=np.logical_not,
    samples=lambda make: [Sample((np.array([False, True]),)), Sample((make.mask(3, 4),)), Sample((make.mask(4, 3).T,))],
    errors=(bad(DTypeError, "argument 'x': expected bool, got float32; convert with ops.cast", (3,)),),
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
