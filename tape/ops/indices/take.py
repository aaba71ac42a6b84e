"""Gathering along an axis by an array of indices, and its adjoints, which add."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any, Literal, overload

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, ShapeError
from ...numerics.sizes import Sizes
from ...record.derivative import NO_GRAD
from ...record.kinds.values import AXIS, at_least
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Constant, D, F, K, N, Operand, S, like
from ...values.dtypes import i64
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...var.method_types import UnknownAxis
from ...var.var import Gradual, Var
from . import reference
from .kernels import rows as kernels

OUTSIDE = "{op}: argument 'indices': expected {low} to {high}, got {{value}} at position {{position}}"


def extent(shape: Sizes, axis: int) -> tuple[int, int, int]:
    """Elements before, on and after an axis."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def outside(op_name: str, n: int) -> str:
    """What an op says of an index that no axis of ``n`` elements has."""
    return OUTSIDE.format(op=op_name, low=-n, high=n - 1)


def _taken(x: Spec, indices: Spec, axis: int) -> Spec:
    a = normal_axis("take", axis, x.rank)
    return like(x, x.shape[:a] + indices.shape + x.shape[a + 1 :])


def _lower_take(x: Slot, indices: Slot, axis: int, name: str = "take") -> Slot:
    a = normal_axis("take", axis, x.spec.rank)
    ints = (*extent(x.shape, a), indices.spec.size)
    return call(
        kernels.take,
        [x, indices],
        _taken(x.spec, indices.spec, axis).shape,
        *ints,
        refusal=outside(name, ints[1]),
    )


def _takes(make: Make) -> list[Sample]:
    return [
        Sample((make(5, 3), np.array([4, 0, 0, -1]))),
        Sample((make(2, 5, 3), np.array([[1, 1], [3, 0]])), {"axis": 1}),
        Sample((make(2, 5), np.array(2)), {"axis": -1}),
        Sample((make(4, 3), np.array([], np.int64))),
    ]


@overload
def take(
    x: Var[D, UnknownAxis, *tuple[UnknownAxis, ...]], indices: Gradual[i64] | Constant, axis: int = 0
) -> Gradual[D]: ...
@overload
def take(x: Var[D, N], indices: Var[i64, *S], axis: int = 0) -> Var[D, *S]: ...
@overload
def take(x: Var[D, N, K], indices: Var[i64, *S], axis: Literal[0] = 0) -> Var[D, *S, K]: ...
@overload
def take(x: Gradual[D], indices: Gradual[i64] | Constant, axis: int = 0) -> Gradual[D]: ...
@op(
    infer=_taken,
    lower=_lower_take,
    vjp=(lambda g, indices, x_shape, axis: scatter_add(g, indices, x_shape[axis], axis), NO_GRAD),
    jvp=lambda dx, indices, axis: take(dx, indices, axis),
    reference=lambda x, indices, axis=0: np.take(x, indices, axis),
    samples=_takes,
    errors=(
        bad(
            BoundsError,
            "take: argument 'indices': expected -2 to 1, got 2 at position 1",
            (2, 3),
            np.array([0, 2]),
        ),
    ),
    excused={"batch": "the indices select from the batch"},
    kinds={"axis": AXIS},
)
def take(x: Gradual[D], indices: Gradual[i64] | Constant, axis: int = 0) -> Gradual[D]:
    """The slices of ``x`` at ``indices`` along an axis; indices may repeat and count from the end.

    Source: numpy.take with an axis.
    Shapes: x (*A, n, *B), indices (*I) -> (*A, *I, *B); n is the size of ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.take(Tape().leaf([1.0, 2.0, 3.0]), [0, -1, 0]).numpy()
    array([1., 3., 1.])
    """
    ...


@overload
def embedding(weight: Var[F, N, K], indices: Var[i64, *S]) -> Var[F, *S, K]: ...
@overload
def embedding(weight: Gradual[F], indices: Constant) -> Gradual[F]: ...
@overload
def embedding(weight: Constant, indices: Gradual[i64]) -> Gradual[Any]: ...
@op(
    lower=lambda weight, indices: _lower_take(weight, indices, 0, "embedding"),
    vjp=(lambda g, indices, weight_shape: scatter_add(g, indices, weight_shape[0]), NO_GRAD),
    jvp=lambda dweight, indices: embedding(dweight, indices),
    reference=lambda weight, indices: weight[indices],
    samples=lambda make: [
        Sample((make(5, 3), np.array([[4, 0, 0], [-1, 2, 4]]))),
        Sample((make(5, 40), np.array([3]))),
        Sample((make(5, 3), np.array([], np.int64))),
    ],
    errors=(
        bad(
            BoundsError,
            "embedding: argument 'indices': expected -2 to 1, got 2 at position 1",
            (2, 3),
            np.array([0, 2]),
        ),
    ),
    batch_axis={"indices": 0},
)
def embedding(weight: Operand[F, N, K], indices: Operand[i64, *S]) -> Var[F, *S, K]:
    """For each index its row of a table; gradients of a row that is used several times are added.

    Source: torch.nn.functional.embedding; negative indices as in numpy.

    >>> from dgrr.tape import Tape, ops
    >>> ops.embedding(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), [1, 0, 1]).numpy()
    array([[3., 4.],
           [1., 2.],
           [3., 4.]])
    """
    ...


def scattered(name: str, values: Spec, indices: Spec, size: int, axis: int) -> tuple[int, Sizes]:
    """The axis counted from the front, and the result's shape. Raises ShapeError or DomainError."""
    rank = values.rank - indices.rank + 1
    a = normal_axis(name, axis, rank)
    if values.shape[a : a + indices.rank] != indices.shape:
        raise ShapeError(
            f"{name}: argument 'values': expected the shape {indices.shape} of 'indices' from axis {a} on, "
            f"got {values.shape}"
        )
    return a, (*values.shape[:a], size, *values.shape[a + indices.rank :])


def _lower_scatter(values: Slot, indices: Slot, size: int, axis: int) -> Slot:
    a, shape = scattered("scatter_add", values.spec, indices.spec, size, axis)
    ints = (*extent(shape, a), indices.spec.size)
    return call(
        kernels.scatter_add,
        [values, indices],
        shape,
        *ints,
        work=values.spec.size,
        refusal=outside("scatter_add", size),
    )


def _reference_scatter(values: Array, indices: Array, size: int, axis: int = 0) -> Array:
    rank = values.ndim - indices.ndim + 1
    a = axis % rank
    shape = (*values.shape[:a], size, *values.shape[a + indices.ndim :])
    rows = values.reshape((*values.shape[:a], indices.size, *values.shape[a + indices.ndim :]))
    return reference.index_add(np.zeros(shape, values.dtype), indices.reshape(-1), rows, a)


@op(
    infer=lambda values, indices, size, axis: like(values, scattered("scatter_add", values, indices, size, axis)[1]),
    lower=_lower_scatter,
    vjp=(lambda g, indices, axis: take(g, indices, axis), NO_GRAD),
    jvp=lambda dvalues, indices, size, axis: scatter_add(dvalues, indices, size, axis),
    reference=_reference_scatter,
    samples=lambda make: [
        Sample((make(4, 3), np.array([1, 0, 1, -1])), {"size": 3}),
        Sample((make(2, 2, 2, 3), np.array([[1, 1], [3, 0]])), {"size": 5, "axis": 1}),
        Sample((make(2), np.array(1)), {"size": 3, "axis": -1}),
        Sample((make(0, 3), np.array([], np.int64)), {"size": 2}),
    ],
    errors=(
        bad(
            BoundsError,
            "scatter_add: argument 'indices': expected -2 to 1, got 2 at position 0",
            (1,),
            np.array([2]),
            size=2,
        ),
        bad(
            ShapeError,
            "scatter_add: argument 'values': expected the shape (2,) of 'indices' from axis 0 on, got (1,)",
            (1,),
            np.array([0, 1]),
            size=2,
        ),
    ),
    excused={"batch": "the indices select from the batch"},
    kinds={"size": at_least(0)},
)
def scatter_add(values: Gradual[F], indices: Gradual[i64] | Constant, size: int, axis: int = 0) -> Gradual[F]:
    """Zeros, ``size`` along an axis, with each slice of ``values`` added at its index, in ascending position.

    Source: torch.Tensor.index_add of zeros.
    Shapes: values (*A, *I, *B), indices (*I) -> (*A, size, *B); A are the axes before ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.scatter_add(Tape().leaf([1.0, 2.0, 4.0]), [0, 2, 0], size=3).numpy()
    array([5., 0., 2.])
    """
    ...


def _added(x: Spec, indices: Spec, values: Spec, axis: int) -> Spec:
    a = normal_axis("index_add", axis, x.rank)
    wanted = (*x.shape[:a], *indices.shape, *x.shape[a + 1 :])
    if values.shape != wanted:
        raise ShapeError(f"index_add: argument 'values': expected shape {wanted}, got {values.shape}")
    return x


def _lower_index_add(x: Slot, indices: Slot, values: Slot, axis: int) -> Slot:
    a = normal_axis("index_add", axis, x.spec.rank)
    ints = (*extent(x.shape, a), indices.spec.size)
    refusal = outside("index_add", x.shape[a])
    return call(kernels.index_add, [x, indices, values], x.shape, *ints, aliases=(0,), refusal=refusal)


def _reference_index_add(x: Array, indices: Array, values: Array, axis: int = 0) -> Array:
    a = axis % x.ndim
    rows = values.reshape((*x.shape[:a], indices.size, *x.shape[a + 1 :]))
    return reference.index_add(x, indices.reshape(-1), rows, a)


@overload
def index_add(
    x: Var[F, *S], indices: Gradual[i64] | Constant, values: Gradual[F] | Constant, axis: int = 0
) -> Var[F, *S]: ...
@overload
def index_add(
    x: Constant, indices: Gradual[i64] | Constant, values: Gradual[F] | Constant, axis: int = 0
) -> Gradual[F]: ...
@op(
    infer=_added,
    lower=_lower_index_add,
    vjp=(lambda g: g, NO_GRAD, lambda g, indices, axis: take(g, indices, axis)),
    jvp=lambda dx, dvalues, indices, axis: index_add(dx, indices, dvalues, axis),
    reference=_reference_index_add,
    samples=lambda make: [
        Sample((make(3, 4), np.array([1, 0, 1, -1, 1]), make(5, 4))),
        Sample((make(2, 3, 2), np.array([2, 2]), make(2, 2, 2)), {"axis": 1}),
        Sample((make(3), np.array([], np.int64), make(0))),
        Sample((make(3), np.array(1), make())),
        Sample((make(2, 3), np.array(-1), make(2)), {"axis": 1}),
        Sample((make(4, 3), np.array([[1, 1], [0, 1]]), make(2, 2, 3))),
    ],
    errors=(
        bad(
            BoundsError,
            "index_add: argument 'indices': expected -2 to 1, got -3 at position 0",
            (2,),
            np.array([-3]),
            (1,),
        ),
        bad(ShapeError, "index_add: argument 'values': expected shape (1, 3), got (3,)", (2, 3), np.array([0]), (3,)),
    ),
    covers=("scatter_add_vec", "scatter_add_row"),
    excused={"batch": "the indices select from the batch"},
    kinds={"axis": AXIS},
)
def index_add(
    x: Operand[F, *S], indices: Gradual[i64] | Constant, values: Gradual[F] | Constant, axis: int = 0
) -> Var[F, *S]:
    """``x`` with each slice of ``values`` added at its index along an axis, in ascending position.

    One index, a whole number, adds one slice: ``index_add(x, 2, row)``.

    Source: torch.Tensor.index_add.
    Shapes: x (*A, n, *B), indices (*I), values (*A, *I, *B) -> (*A, n, *B); n is the size of ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.index_add(Tape().leaf([1.0, 1.0, 1.0]), [0, 2, 0], [1.0, 2.0, 4.0]).numpy()
    array([6., 1., 3.])
    """
    ...
