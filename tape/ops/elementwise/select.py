"""Comparisons, selection by a mask, and conversion between element types."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DTypeError, ShapeError
from ...numerics.basic import arithmetic
from ...numerics.engine.kernel import Kernel
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.pointwise_op import pointwise_op, read
from ...record.samples import Make, Sample, bad
from ...record.types import D, F, Operand, S
from ...values.dtypes import DTYPES, DType, boolean, f32, f64, i64
from ...values.spec import Spec
from ...var.var import Var
from .kernels import basic as kernels, powers as kernels_powers

Function = TypeVar("Function", bound=Callable[..., Any])

BOOL = boolean.dtype
MISMATCH = bad(ShapeError, "argument 'b': expected shape (2,), got (3,)", (2,), (3,))


def _pairs(make: Make) -> list[Sample]:
    """Floats with ties, signed zeros and NaN; integers; bools."""
    special = np.array([0.0, -0.0, np.nan, np.inf, 1.0, 2.0], make.dtype)
    floats = Sample((special, special[[1, 0, 2, 3, 5, 4]]))
    integers = Sample((np.arange(5), np.array([0, 2, 1, 3, 3])))
    return [floats, Sample((make(3, 4), make(3, 4))), integers, Sample((make.mask(7), make.mask(7)))]


def _comparison(kernel: Kernel, *, swapped: bool = False) -> Callable[[Function], Function]:
    """The record of a comparison, by the kernel of it or of the one with its operands swapped."""

    def ordered(a: Any, b: Any) -> tuple[Any, Any]:
        return (b, a) if swapped else (a, b)

    return op(
        lower=lambda a, b: elementwise(kernel, *ordered(a, b), dtype=BOOL),
        along=NO_GRAD,
        reference=lambda a, b: read(kernel)(*ordered(a, b)),
        samples=_pairs,
        errors=(MISMATCH,),
        batch_axis={"a": 0, "b": 0},
    )


@_comparison(kernels.equal)
def equal(a: Operand[D, *S], b: Operand[D, *S]) -> Var[boolean, *S]:
    """``a == b`` element by element; NaN equals nothing.

    Source: numpy.equal, for operands of one shape and dtype.

    >>> from dgrr.tape import Tape, ops
    >>> ops.equal(Tape().leaf([1.0, 2.0, np.nan]), [1.0, 3.0, np.nan]).numpy()
    array([ True, False, False])
    """
    ...


@_comparison(kernels.not_equal)
def not_equal(a: Operand[D, *S], b: Operand[D, *S]) -> Var[boolean, *S]:
    """``a != b`` element by element.

    Source: numpy.not_equal, for operands of one shape and dtype.

    >>> from dgrr.tape import Tape, ops
    >>> ops.not_equal(Tape().leaf([1.0, 2.0, np.nan]), [1.0, 3.0, np.nan]).numpy()
    array([False,  True,  True])
    """
    ...


@_comparison(kernels.less)
def less(a: Operand[D, *S], b: Operand[D, *S]) -> Var[boolean, *S]:
    """``a < b`` element by element.

    Source: numpy.less, for operands of one shape and dtype.

    >>> from dgrr.tape import Tape, ops
    >>> ops.less(Tape().leaf([1.0, 2.0, np.nan]), [1.0, 3.0, np.nan]).numpy()
    array([False,  True, False])
    """
    ...


@_comparison(kernels.less_equal)
def less_equal(a: Operand[D, *S], b: Operand[D, *S]) -> Var[boolean, *S]:
    """``a <= b`` element by element.

    Source: numpy.less_equal, for operands of one shape and dtype.

    >>> from dgrr.tape import Tape, ops
    >>> ops.less_equal(Tape().leaf([1.0, 2.0, np.nan]), [1.0, 3.0, np.nan]).numpy()
    array([ True,  True, False])
    """
    ...


@_comparison(kernels.less, swapped=True)
def greater(a: Operand[D, *S], b: Operand[D, *S]) -> Var[boolean, *S]:
    """``a > b`` element by element.

    Source: numpy.greater, for operands of one shape and dtype.

    >>> from dgrr.tape import Tape, ops
    >>> ops.greater(Tape().leaf([1.0, 2.0, np.nan]), [1.0, 3.0, np.nan]).numpy()
    array([False, False, False])
    """
    ...


@_comparison(kernels.less_equal, swapped=True)
def greater_equal(a: Operand[D, *S], b: Operand[D, *S]) -> Var[boolean, *S]:
    """``a >= b`` element by element.

    Source: numpy.greater_equal, for operands of one shape and dtype.

    >>> from dgrr.tape import Tape, ops
    >>> ops.greater_equal(Tape().leaf([1.0, 2.0, np.nan]), [1.0, 3.0, np.nan]).numpy()
    array([ True, False, False])
    """
    ...


@pointwise_op(
    kernels.where,
    NO_GRAD,
    lambda d, condition: keep(d, condition),
    lambda d, condition: keep(d, condition, wanted=False),
    jvp=lambda da, db, condition: where(condition, da, db),
    samples=lambda make: [
        Sample((make.mask(4, 5), make(4, 5), make(4, 5))),
        Sample((make.mask(), make(), make())),
        Sample((make.mask(4, 5), make.indices(9, 4, 5), -make.indices(9, 4, 5))),
        Sample((make.mask(7), make.mask(7), make.mask(7))),
    ],
    errors=(
        bad(DTypeError, "argument 'condition': expected bool, got float32", (2,), (2,), (2,)),
        bad(
            ShapeError,
            "argument 'a': expected a shape that broadcasts with (2,), got (3,)",
            np.zeros(2, bool),
            (3,),
            (2,),
        ),
    ),
    repeats=True,
)
def where(condition: Operand[boolean, *S], a: Operand[D, *S], b: Operand[D, *S]) -> Var[D, *S]:
    """``a`` where the condition holds, else ``b``; what is not selected cannot be seen, not even a NaN.

    Operands of several shapes are broadcast, as by operators.

    Source: numpy.where.

    >>> from dgrr.tape import Tape, ops
    >>> ops.where(Tape().leaf([True, False]), [1.0, 2.0], [3.0, np.nan]).numpy()
    array([ 1., nan])
    """
    ...


@op(
    lower=lambda x, mask, wanted: elementwise(kernels_powers.keep, mask, x, attrs=(int(wanted),)),
    along=(lambda d, mask, wanted: keep(d, mask, wanted), NO_GRAD),
    reference=lambda x, mask, wanted=True: np.where(mask == wanted, x, x.dtype.type(0)),
    samples=lambda make: [Sample((make(4, 5), make.mask(4, 5)), {"wanted": w}) for w in (True, False)],
    batch_axis={"x": 0, "mask": 0},
    private=True,
)
def keep(x: Var[F, *S], mask: Var[boolean, *S], wanted: bool = True) -> Var[F, *S]:
    """``x`` where the mask has the wanted value, else +0: the gradients of where."""
    ...


CONVERSIONS = {
    f32.dtype: arithmetic.to_float32,
    f64.dtype: arithmetic.to_float64,
    boolean.dtype: arithmetic.to_bool,
}


def _lower_cast(x: Slot, dtype: Any) -> Slot:
    target = element_type(dtype)
    if target == x.dtype:
        return x
    to_int64 = arithmetic.bool_to_int64 if x.dtype == BOOL else arithmetic.float_to_int64
    return elementwise(CONVERSIONS.get(target, to_int64), x, dtype=target)


DTYPE_NAMES: Any = (str, type, np.dtype)
"""What may say an element type."""


def element_type(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype of a marker class, a numpy dtype or its name. Raises DTypeError for others."""
    if isinstance(dtype, type) and issubclass(dtype, DType):
        return dtype.dtype
    try:
        made: np.dtype[Any] | None = np.dtype(dtype) if isinstance(dtype, DTYPE_NAMES) else None
    except (TypeError, ValueError):
        made = None
    if made is None or made not in DTYPES:
        raise DTypeError(f"cast: argument 'dtype': expected float32, float64, int64 or bool, got {dtype!r}")
    return made


def _reference_cast(x: Array, dtype: Any) -> Array:
    target = element_type(dtype)
    if x.dtype.kind == "f" and target == i64.dtype:
        return np.array([_saturated(float(v)) for v in x.reshape(-1)], np.int64).reshape(x.shape)
    return x.astype(target)


def _saturated(value: float) -> int:
    bound = 1 << 63
    return 0 if np.isnan(value) else bound - 1 if value >= bound else -bound if value < -bound else int(value)


def _casts(make: Make) -> list[Sample]:
    other = np.float32 if make.dtype == np.float64 else np.float64
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 2.7, -2.7], make.dtype)
    floats = [Sample((x,), {"dtype": t}) for x in (make(3, 4), special) for t in (other, make.dtype, "int64", bool)]
    return [
        *floats,
        Sample((np.arange(3),), {"dtype": make.dtype}),
        Sample((make.mask(5),), {"dtype": "int64"}),
    ]


@overload
def cast(x: Var[Any, *S], dtype: type[D]) -> Var[D, *S]: ...
@overload
def cast(x: Var[Any, *S], dtype: Any) -> Var[Any, *S]: ...
@op(
    infer=lambda x, dtype: Spec(x.shape, element_type(dtype)),
    lower=_lower_cast,
    vjp=(lambda g, x: cast(g, x.dtype),),
    jvp=lambda dx, dtype: cast(dx, dtype),
    reference=_reference_cast,
    samples=_casts,
    errors=(
        bad(DTypeError, "cast: argument 'dtype': expected float32, float64, int64 or bool, got 'S3'", (2,), dtype="S3"),
        bad(DTypeError, "cast: argument 'dtype': expected float32, float64, int64 or bool, got None", (2,), dtype=None),
    ),
    batch_axis={"x": 0},
)
def cast(x: Var[Any, *S], dtype: Any) -> Var[Any, *S]:
    """``x`` as another element type: a numpy dtype, its name, or ``f32``, ``f64``, ``i64``, ``boolean``.

    Floats round to nearest; a float becomes an int towards zero, saturating, NaN as 0; non-zero is true.

    Source: numpy.ndarray.astype; where numpy leaves a conversion to integers undefined, that of Rust's ``as``.
    Dtypes: x float32, float64, int64 or bool; the result as ``dtype`` says.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cast(Tape().leaf([1.7, -1.7, np.nan]), "int64").numpy()
    array([ 1, -1,  0])
    """
    ...
