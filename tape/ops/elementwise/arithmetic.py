"""Ops that compute each element from the elements at its own position. Both operands have one shape."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DomainError, DTypeError
from ...numerics.basic import arithmetic
from ...numerics.math.exact import difference
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.pointwise_op import SPECIAL, pointwise_op
from ...record.samples import Make, Sample, bad, binary, unary
from ...record.types import A, F, Operand, S
from ...values.spec import Spec
from ...var.var import Var
from . import reference
from .kernels import (
    basic as kernels,
    functions as kernels_functions,
    integer as kernels_integer,
    powers as kernels_powers,
)


def _integer(which: int) -> Callable[..., Slot]:
    """What the kernel of whole numbers has in the place of one of floats."""
    return lambda *slots: elementwise(kernels_integer.integer, slots[0], slots[-1], attrs=(which,))


def _operands(make: Make) -> list[Sample]:
    """Pairs of floats, and whole numbers whose sums, differences and products wrap."""
    large = np.array([3, -(2**63), 2**63 - 1, 5_000_000_000, -1, 0])
    return [*binary(make), Sample((large, large[::-1]))]


@pointwise_op(
    arithmetic.add, lambda d: d, lambda d: d, integer=_integer(kernels_integer.ADD), samples=_operands, covers=("add",)
)
def add(a: Operand[A, *S], b: Operand[A, *S]) -> Var[A, *S]:
    """``a + b``; whole numbers wrap. Operands of one shape; ``+`` on Vars broadcasts.

    Source: numpy.add, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.add(Tape().leaf([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([4., 6.])
    """
    ...


@pointwise_op(
    kernels.sub,
    lambda d: d,
    lambda d: neg(d),
    jvp=lambda da, db: sub(da, db),
    integer=_integer(kernels_integer.SUB),
    samples=_operands,
    covers=("sub",),
)
def sub(a: Operand[A, *S], b: Operand[A, *S]) -> Var[A, *S]:
    """``a - b``; whole numbers wrap. Operands of one shape; ``-`` on Vars broadcasts.

    Source: numpy.subtract, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sub(Tape().leaf([1.0, 2.0]), [3.0, 5.0]).numpy()
    array([-2., -3.])
    """
    ...


@pointwise_op(
    kernels.mul,
    lambda d, b: mul(d, b),
    lambda d, a: mul(d, a),
    integer=_integer(kernels_integer.MUL),
    samples=_operands,
    covers=("mul",),
)
def mul(a: Operand[A, *S], b: Operand[A, *S]) -> Var[A, *S]:
    """``a * b``, element by element; whole numbers wrap. Operands of one shape; ``*`` on Vars broadcasts.

    Source: numpy.multiply, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mul(Tape().leaf([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([3., 8.])
    """
    ...


@pointwise_op(
    kernels.div,
    lambda d, b: div(d, b),
    lambda d, b, y: neg(div(mul(d, y), b)),
    jvp=lambda da, db, b, y: div(sub(da, mul(y, db)), b),
)
def div(a: Operand[F, *S], b: Operand[F, *S]) -> Var[F, *S]:
    """``a / b`` by IEEE-754: ``1/0`` is infinite, ``0/0`` NaN. Operands of one shape; ``/`` on Vars broadcasts.

    Source: numpy.divide, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.div(Tape().leaf([1.0, 1.0]), [4.0, 0.0]).numpy()
    array([0.25,  inf])
    """
    ...


@pointwise_op(
    kernels.neg,
    lambda d: neg(d),
    integer=_integer(kernels_integer.NEGATE),
    samples=lambda make: [*unary(SPECIAL)(make), Sample((np.array([3, -4, 0, -(2**63)]),))],
)
def neg(x: Var[A, *S]) -> Var[A, *S]:
    """``-x``: the sign bit flipped; of whole numbers the difference ``0 - x``, which wraps.

    Source: numpy.negative.

    >>> from dgrr.tape import Tape, ops
    >>> ops.neg(Tape().leaf([1.0, -2.0, 0.0])).numpy()
    array([-1.,  2., -0.])
    """
    ...


@pointwise_op(
    kernels.scale,
    lambda d, c: scale(d, c),
    samples=lambda make: [Sample((make(2, 5),), {"c": c}) for c in (0.3, -2.0, 0.0, -0.0)],
    covers=("scale",),
    instead={"c": "x * c"},
)
def scale(x: Var[F, *S], c: float) -> Var[F, *S]:
    """``x * c`` for a number c, rounded to the element type; c has no gradient.

    Source: numpy.multiply by a number.

    >>> from dgrr.tape import Tape, ops
    >>> ops.scale(Tape().leaf([1.0, -2.0]), 0.5).numpy()
    array([ 0.5, -1. ])
    """
    ...


@pointwise_op(
    kernels.divide,
    lambda d, n: divide(d, n),
    samples=lambda make: [Sample((make(2, 5),), {"n": n}) for n in (1, 3, 0)],
    private=True,
)
def divide(x: Var[F, *S], n: int) -> Var[F, *S]:
    """``x / n`` for a whole number: the gradients of means."""
    ...


def _along_power(d: Any, x: Any, exponent: float) -> Any:
    if exponent == 0:
        return scale(d, 0.0)
    lower = exponent - 1 if isinstance(exponent, int) else difference(exponent, 1.0)
    return mul(d, scale(power(x, lower), float(exponent)))


LARGEST_WHOLE = 1 << 20


def _infer_power(x: Spec, exponent: float) -> Spec:
    if not abs(exponent) < np.inf:
        raise DomainError(f"power: argument 'exponent': expected a finite number, got {exponent!r}")
    if _is_whole(x, exponent) and abs(exponent) > LARGEST_WHOLE:
        raise DomainError(
            f"power: argument 'exponent': expected a whole number of at most 2**20 in size, got {exponent!r}; "
            "use ops.pow for others"
        )
    return x


def _is_whole(x: Spec, exponent: float) -> bool:
    """Whether an exponent is whole once it is rounded to the element type; all large ones are."""
    return abs(exponent) > LARGEST_WHOLE**2 or float(x.dtype.type(exponent)).is_integer()


def _lower_power(x: Slot, exponent: float) -> Slot:
    if _is_whole(x.spec, exponent):
        return elementwise(kernels_powers.power, x, attrs=(int(x.dtype.type(exponent)),), work=8)
    return elementwise(kernels_functions.broken_power, x, attrs=(float(exponent),), work=60)


def _powers(make: Make) -> list[Sample]:
    whole = [Sample((make.positive(3, 5),), {"exponent": n}) for n in (-3, -1, 0, 1, 2, 7)]
    special = [Sample((np.array(SPECIAL).astype(make.dtype),), {"exponent": n}) for n in (0.5, -1.5, 2.0, -1.0)]
    return [*whole, *(Sample((make.positive(3, 5),), {"exponent": n}) for n in (0.5, -1.5, 2.0, 0.1)), *special]


@op(
    infer=_infer_power,
    lower=_lower_power,
    along=(_along_power,),
    reference=reference.powered,
    samples=_powers,
    errors=(
        bad(DomainError, "power: argument 'exponent': expected a whole number", (2,), exponent=1 << 21),
        bad(DomainError, "power: argument 'exponent': expected a finite number, got inf", (2,), exponent=np.inf),
        bad(DTypeError, "power: argument 'exponent': expected a number, got True", (2,), exponent=True),
    ),
    batch_axis={"x": 0},
    instead={"exponent": "ops.pow(x, exponent.broadcast_to(x.shape))"},
)
def power(x: Var[F, *S], exponent: float) -> Var[F, *S]:
    """``x ** exponent`` for a number, rounded to the element type; it has no gradient.

    A whole exponent is done by binary powering, ``1 / x ** |exponent|`` if it is negative; another as
    ``e ** (exponent * log(x))`` with the logarithm in double precision: NaN for x < 0, else as IEEE-754's pow.

    Source: numpy.power, and pow of IEEE 754-2019 for powers that are not whole.

    >>> from dgrr.tape import Tape, ops
    >>> ops.power(Tape().leaf([2.0, 4.0]), -2).numpy()
    array([0.25  , 0.0625])
    >>> ops.power(Tape().leaf([4.0, -1.0]), 0.5).numpy()
    array([ 2., nan])
    """
    ...


@pointwise_op(kernels.relu, lambda d, y: where_positive(d, y), covers=("relu",))
def relu(x: Var[F, *S]) -> Var[F, *S]:
    """``max(x, 0)``: +0 for -0, NaN stays. The gradient at 0 is 0.

    Source: Nair and Hinton (2010), Rectified linear units improve restricted Boltzmann machines.

    >>> from dgrr.tape import Tape, ops
    >>> ops.relu(Tape().leaf([-1.0, 0.0, 2.0])).numpy()
    array([0., 0., 2.])
    """
    ...


@pointwise_op(
    kernels.where_positive,
    lambda d, y: where_positive(d, y),
    NO_GRAD,
    samples=lambda make: [Sample((make(4, 5), make(4, 5)))],
    private=True,
)
def where_positive(g: Var[F, *S], y: Var[F, *S]) -> Var[F, *S]:
    """``g`` where ``y > 0``, else +0: the gradient of relu and the guard of sqrt's."""
    ...


@pointwise_op(kernels.sqrt, lambda d, y: where_positive(div(scale(d, 0.5), y), y), positive=True, covers=("sqrt",))
def sqrt(x: Var[F, *S]) -> Var[F, *S]:
    """``sqrt(max(x, 0))``. The gradient is ``g / (2 sqrt(x))`` for x > 0, else 0.

    Source: numpy.sqrt for x of at least 0; 0 below, where numpy has NaN.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sqrt(Tape().leaf([4.0, 0.0, -1.0])).numpy()
    array([2., 0., 0.])
    """
    ...
