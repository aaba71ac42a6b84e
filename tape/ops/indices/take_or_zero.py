"""Gathering with 0 for what lies outside, and its adjoint, which adds only what lies inside."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError
from ...record.derivative import NO_GRAD
from ...record.kinds.values import AXIS, at_least
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.dtypes import i64
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...var.var import Gradual
from . import reference
from .kernels import rows as kernels
from .take import extent, scattered

SELECTS = {"batch": "the indices select from the batch"}


def _taken(x: Spec, indices: Spec, axis: int) -> Spec:
    a = normal_axis("take_or_zero", axis, x.rank)
    return like(x, x.shape[:a] + indices.shape + x.shape[a + 1 :])


def _lower_take(x: Slot, indices: Slot, axis: int) -> Slot:
    ints = (*extent(x.shape, normal_axis("take_or_zero", axis, x.spec.rank)), indices.spec.size)
    return call(kernels.take_or_zero, [x, indices], _taken(x.spec, indices.spec, axis).shape, *ints)


def _reference_take(x: Array, indices: Array, axis: int = 0) -> Array:
    rows = np.moveaxis(x, axis, 0)
    found = [rows[i] if 0 <= i < len(rows) else np.zeros_like(rows, shape=rows.shape[1:]) for i in indices.reshape(-1)]
    stacked = np.array(found, x.dtype).reshape((*indices.shape, *rows.shape[1:]))
    before = range(indices.ndim)
    return np.moveaxis(stacked, before, [axis % x.ndim + i for i in before])


def _takes(make: Make) -> list[Sample]:
    return [
        Sample((make(5), np.array([4, 0, 5, 0, -1, 4]))),
        Sample((make(5), np.array(2))),
        Sample((make(5), np.array(-1))),
        Sample((make(4, 3), np.array([[3, 4], [0, 3], [2**62, -(2**62)]]))),
        Sample((make(2, 4, 3), np.array([1, 9, 1])), {"axis": 1}),
        Sample((make(2, 4), np.array([3, 3])), {"axis": -1}),
        Sample((make(0, 3), np.array([0]))),
        Sample((make(4, 3), np.array([], np.int64))),
    ]


@op(
    infer=_taken,
    lower=_lower_take,
    vjp=(lambda g, indices, x_shape, axis: scatter_add_inside(g, indices, x_shape[axis], axis), NO_GRAD),
    jvp=lambda dx, indices, axis: take_or_zero(dx, indices, axis),
    reference=_reference_take,
    samples=_takes,
    covers=("gather_scalar_nat", "gather_vec_nat", "gather_rows_nat"),
    excused=SELECTS,
    kinds={"axis": AXIS},
)
def take_or_zero(x: Gradual[F], indices: Gradual[i64], axis: int = 0) -> Gradual[F]:
    """The slices of ``x`` at ``indices`` along an axis, zeros for an index outside 0 to n - 1, negative ones too.

    Indices may repeat: their gradients are added in ascending position.

    Source: jax.numpy.take with mode "fill" and fill value 0, but that negative indices do not count from the end.
    Shapes: x (*A, n, *B), indices (*I) -> (*A, *I, *B); n is the size of ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.take_or_zero(Tape().leaf([1.0, 2.0, 3.0]), [2, 3, -1]).numpy()
    array([3., 0., 0.])
    """
    ...


def _lower_scatter(values: Slot, indices: Slot, size: int, axis: int) -> Slot:
    a, shape = scattered("scatter_add_inside", values.spec, indices.spec, size, axis)
    ints = (*extent(shape, a), indices.spec.size)
    return call(kernels.scatter_add_inside, [values, indices], shape, *ints, work=values.spec.size)


def _reference_scatter(values: Array, indices: Array, size: int, axis: int = 0) -> Array:
    a = axis % (values.ndim - indices.ndim + 1)
    shape = (*values.shape[:a], size, *values.shape[a + indices.ndim :])
    rows = values.reshape((*values.shape[:a], indices.size, *values.shape[a + indices.ndim :]))
    inside = np.flatnonzero((indices >= 0) & (indices < size))
    return reference.index_add(np.zeros(shape, values.dtype), indices.reshape(-1)[inside], rows.take(inside, a), a)


@op(
    infer=lambda values, indices, size, axis: like(
        values, scattered("scatter_add_inside", values, indices, size, axis)[1]
    ),
    lower=_lower_scatter,
    vjp=(lambda g, indices, axis: take_or_zero(g, indices, axis), NO_GRAD),
    jvp=lambda dvalues, indices, size, axis: scatter_add_inside(dvalues, indices, size, axis),
    reference=_reference_scatter,
    samples=lambda make: [
        Sample((make(6, 3) * make(6, 3), np.array([1, 0, 3, 1, -1, 1])), {"size": 3}),
        Sample((make(2, 2, 2, 3), np.array([[1, 1], [9, 0]])), {"size": 5, "axis": 1}),
        Sample((make(), np.array(1)), {"size": 3}),
        Sample((make(2, 3), np.array([0, 1])), {"size": 0}),
    ],
    errors=(
        bad(
            ShapeError,
            "scatter_add_inside: argument 'values': expected the shape (2,)",
            (1,),
            np.array([0, 1]),
            size=2,
        ),
    ),
    excused=SELECTS,
    private=True,
    kinds={"size": at_least(0)},
)
def scatter_add_inside(values: Gradual[F], indices: Gradual[i64], size: int, axis: int = 0) -> Gradual[F]:
    """Zeros with each slice of ``values`` added at its index, those outside left out: the gradient of take_or_zero."""
    ...
