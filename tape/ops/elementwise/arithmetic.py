"""Ops that compute each element from the elements at its own position. Both operands have one shape."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from typing import Any

import numpy as np

from ...errors import DomainError, DTypeError, ShapeError
from ...numerics.basic import arithmetic
from ...numerics.engine.kernel import Kernel
from ...numerics.math.exact import difference
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, elementwise
from ...record.op import op
from ...record.samples import Make, Sample, bad, binary, unary, unary_positive
from ...record.types import A, F, S
from ...values.dtypes import i64
from ...values.spec import Spec
from ...var.var import Var
from . import reference_power
from .kernels import basic as kernels, functions as kernels_functions, whole as kernels_whole

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1e-3)
"""Signed zeros, infinities, NaN, subnormals, values near overflow."""

EACH = {"x": 0}
BOTH = {"a": 0, "b": 0}
MISMATCH = bad(ShapeError, "argument 'b': expected shape (2, 3), got (3, 2)", (2, 3), (3, 2))
MIXED = bad(DTypeError, "argument 'b': expected float32, got float64", (2,), np.zeros(2))
MASKS = bad(
    DTypeError, "argument 'a': expected float32 or float64 or int64, got bool", np.ones(2, bool), np.ones(2, bool)
)
INTEGERS = bad(DTypeError, "argument 'x': expected float32 or float64, got int64", np.arange(3))


def _lower(kernel: Kernel, which: int, a: Slot, b: Slot) -> Slot:
    """A kernel of floats, or what that of whole numbers has in its place."""
    if a.dtype == i64.dtype:
        return elementwise(kernels_whole.whole, a, b, attrs=(which,))
    return elementwise(kernel, a, b)


def _lower_neg(x: Slot) -> Slot:
    whole = x.dtype == i64.dtype
    return _lower(kernels.neg, kernels_whole.NEGATE, x, x) if whole else elementwise(kernels.neg, x)


def _operands(make: Make) -> list[Sample]:
    """Pairs of floats, and whole numbers whose sums, differences and products wrap."""
    large = np.array([3, -(2**63), 2**63 - 1, 5_000_000_000, -1, 0])
    return [*binary(make), Sample((large, large[::-1]))]


@op(
    lower=partial(_lower, arithmetic.add, kernels_whole.ADD),
    vjp=(lambda g: g, lambda g: g),
    jvp=lambda da, db: add(da, db),
    reference=lambda a, b: a + b,
    samples=_operands,
    errors=(MISMATCH, MIXED, MASKS),
    covers=("add",),
    batch_axis=BOTH,
)
def add(a: Var[A, *S], b: Var[A, *S]) -> Var[A, *S]:
    """``a + b``; whole numbers wrap. Operands of one shape; ``+`` on Vars broadcasts.

    Source: numpy.add, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.add(Tape().leaf([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([4., 6.])
    """
    ...


@op(
    lower=partial(_lower, kernels.sub, kernels_whole.SUB),
    vjp=(lambda g: g, lambda g: neg(g)),
    jvp=lambda da, db: sub(da, db),
    reference=lambda a, b: a - b,
    samples=_operands,
    errors=(MISMATCH, MASKS),
    covers=("sub",),
    batch_axis=BOTH,
)
def sub(a: Var[A, *S], b: Var[A, *S]) -> Var[A, *S]:
    """``a - b``; whole numbers wrap. Operands of one shape; ``-`` on Vars broadcasts.

    Source: numpy.subtract, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sub(Tape().leaf([1.0, 2.0]), [3.0, 5.0]).numpy()
    array([-2., -3.])
    """
    ...


@op(
    lower=partial(_lower, kernels.mul, kernels_whole.MUL),
    vjp=(lambda g, b: mul(g, b), lambda g, a: mul(g, a)),
    jvp=lambda da, db, a, b: add(mul(da, b), mul(a, db)),
    reference=lambda a, b: a * b,
    samples=_operands,
    errors=(MISMATCH, MASKS),
    covers=("mul",),
    batch_axis=BOTH,
)
def mul(a: Var[A, *S], b: Var[A, *S]) -> Var[A, *S]:
    """``a * b``, element by element; whole numbers wrap. Operands of one shape; ``*`` on Vars broadcasts.

    Source: numpy.multiply, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mul(Tape().leaf([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([3., 8.])
    """
    ...


@op(
    lower=lambda a, b: elementwise(kernels.div, a, b),
    vjp=(lambda g, b: div(g, b), lambda g, b, y: neg(div(mul(g, y), b))),
    jvp=lambda da, db, b, y: div(sub(da, mul(y, db)), b),
    reference=lambda a, b: a / b,
    samples=binary,
    errors=(MISMATCH,),
    batch_axis=BOTH,
)
def div(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``a / b`` by IEEE-754: ``1/0`` is infinite, ``0/0`` NaN. Operands of one shape; ``/`` on Vars broadcasts.

    Source: numpy.divide, for operands of one shape.

    >>> from dgrr.tape import Tape, ops
    >>> ops.div(Tape().leaf([1.0, 1.0]), [4.0, 0.0]).numpy()
    array([0.25,  inf])
    """
    ...


@op(
    lower=_lower_neg,
    vjp=(lambda g: neg(g),),
    jvp=lambda dx: neg(dx),
    reference=lambda x: -x,
    samples=lambda make: [*unary(SPECIAL)(make), Sample((np.array([3, -4, 0, -(2**63)]),))],
    errors=(bad(DTypeError, "argument 'x': expected float32 or float64 or int64, got bool", np.ones(2, bool)),),
    batch_axis=EACH,
)
def neg(x: Var[A, *S]) -> Var[A, *S]:
    """``-x``: the sign bit flipped; of whole numbers the difference ``0 - x``, which wraps.

    Source: numpy.negative.

    >>> from dgrr.tape import Tape, ops
    >>> ops.neg(Tape().leaf([1.0, -2.0, 0.0])).numpy()
    array([-1.,  2., -0.])
    """
    ...


@op(
    lower=lambda x, c: elementwise(kernels.scale, x, attrs=(float(c),)),
    vjp=(lambda g, c: scale(g, c),),
    jvp=lambda dx, c: scale(dx, c),
    reference=lambda x, c: x * x.dtype.type(c),
    samples=lambda make: [Sample((make(2, 5),), {"c": c}) for c in (0.3, -2.0, 0.0, -0.0)],
    errors=(bad(DTypeError, "argument 'x': expected float32 or float64, got int64", np.arange(3), c=2.0),),
    covers=("scale",),
    batch_axis=EACH,
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


@op(
    lower=lambda x, n: elementwise(kernels.divide, x, attrs=(n,)),
    vjp=(lambda g, n: divide(g, n),),
    jvp=lambda dx, n: divide(dx, n),
    reference=lambda x, n: x / x.dtype.type(n),
    samples=lambda make: [Sample((make(2, 5),), {"n": n}) for n in (1, 3, 0)],
    batch_axis=EACH,
    private=True,
)
def divide(x: Var[F, *S], n: int) -> Var[F, *S]:
    """``x / n`` for a whole number: the gradients of means."""
    ...


def _power_vjp(g: Any, x: Any, exponent: float) -> Any:
    if exponent == 0:
        return scale(g, 0.0)
    lower = exponent - 1 if isinstance(exponent, int) else difference(exponent, 1.0)
    return mul(g, scale(power(x, lower), float(exponent)))


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
        return elementwise(kernels.power, x, attrs=(int(x.dtype.type(exponent)),), work=8)
    return elementwise(kernels_functions.broken_power, x, attrs=(float(exponent),), work=60)


def _powers(make: Make) -> list[Sample]:
    whole = [Sample((make.positive(3, 5),), {"exponent": n}) for n in (-3, -1, 0, 1, 2, 7)]
    special = [Sample((np.array(SPECIAL).astype(make.dtype),), {"exponent": n}) for n in (0.5, -1.5, 2.0, -1.0)]
    return [*whole, *(Sample((make.positive(3, 5),), {"exponent": n}) for n in (0.5, -1.5, 2.0, 0.1)), *special]


@op(
    infer=_infer_power,
    lower=_lower_power,
    vjp=(_power_vjp,),
    jvp=lambda dx, x, exponent: _power_vjp(dx, x, exponent),
    reference=reference_power.powered,
    samples=_powers,
    errors=(
        bad(DomainError, "power: argument 'exponent': expected a whole number", (2,), exponent=1 << 21),
        bad(DomainError, "power: argument 'exponent': expected a finite number, got inf", (2,), exponent=np.inf),
        bad(DTypeError, "power: argument 'exponent': expected a number, got True", (2,), exponent=True),
    ),
    batch_axis=EACH,
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


@op(
    lower=lambda x: elementwise(kernels.relu, x),
    vjp=(lambda g, y: where_positive(g, y),),
    jvp=lambda dx, y: where_positive(dx, y),
    reference=lambda x: np.where(x <= 0, x.dtype.type(0), x),
    samples=unary(SPECIAL),
    errors=(INTEGERS,),
    covers=("relu",),
    batch_axis=EACH,
)
def relu(x: Var[F, *S]) -> Var[F, *S]:
    """``max(x, 0)``: +0 for -0, NaN stays. The gradient at 0 is 0.

    Source: Nair and Hinton (2010), Rectified linear units improve restricted Boltzmann machines.

    >>> from dgrr.tape import Tape, ops
    >>> ops.relu(Tape().leaf([-1.0, 0.0, 2.0])).numpy()
    array([0., 0., 2.])
    """
    ...


@op(
    lower=lambda g, y: elementwise(kernels.where_positive, g, y),
    vjp=(lambda g, y: where_positive(g, y), NO_GRAD),
    jvp=lambda dg, y: where_positive(dg, y),
    reference=lambda g, y: np.where(y > 0, g, g.dtype.type(0)),
    samples=lambda make: [Sample((make(4, 5), make(4, 5)))],
    batch_axis={"g": 0, "y": 0},
    private=True,
)
def where_positive(g: Var[F, *S], y: Var[F, *S]) -> Var[F, *S]:
    """``g`` where ``y > 0``, else +0: the gradient of relu and the guard of sqrt's."""
    ...


@op(
    lower=lambda x: elementwise(kernels.sqrt, x),
    vjp=(lambda g, y: where_positive(div(scale(g, 0.5), y), y),),
    jvp=lambda dx, y: where_positive(div(scale(dx, 0.5), y), y),
    reference=lambda x: np.sqrt(np.where(x <= 0, x.dtype.type(0), x)),
    samples=unary_positive(SPECIAL),
    errors=(INTEGERS,),
    covers=("sqrt",),
    batch_axis=EACH,
)
def sqrt(x: Var[F, *S]) -> Var[F, *S]:
    """``sqrt(max(x, 0))``. The gradient is ``g / (2 sqrt(x))`` for x > 0, else 0.

    Source: numpy.sqrt for x of at least 0; 0 below, where numpy has NaN.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sqrt(Tape().leaf([4.0, 0.0, -1.0])).numpy()
    array([2., 0., 0.])
    """
    ...
