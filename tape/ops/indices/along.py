"""Elements along an axis, each taken at an index of its own, and the adjoint, which adds."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import overload

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, ShapeError
from ...numerics.sizes import Sizes
from ...record.derivative import NO_GRAD
from ...record.kinds.values import AXIS, AxisOf, at_least
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Constant, D, F, Operand, S, like
from ...values.dtypes import i64
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...var.var import Gradual, Var
from .kernels import along as kernels
from .take import extent, outside

BOTH = {"x": 0, "indices": 0}


def _resized(shape: Sizes, axis: int, size: int) -> Sizes:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _infer_take(x: Spec, indices: Spec, axis: int) -> Spec:
    a = normal_axis("take_along_axis", axis, x.rank)
    if indices.rank != x.rank or _resized(indices.shape, a, x.shape[a]) != x.shape:
        raise ShapeError(
            f"take_along_axis: argument 'indices': expected the sizes {x.shape} of x on all axes but {a}, "
            f"got {indices.shape}"
        )
    return like(x, indices.shape)


def _lower_take(x: Slot, indices: Slot, axis: int) -> Slot:
    a = normal_axis("take_along_axis", axis, x.spec.rank)
    ints = (*extent(x.shape, a), indices.shape[a])
    said = outside("take_along_axis", x.shape[a])
    return call(kernels.take_along_axis, [x, indices], indices.shape, *ints, refusal=said)


def _takes(make: Make) -> list[Sample]:
    return [
        Sample((make(2, 3, 4), np.array([[[3, -1], [0, 0], [1, -4]], [[2, 2], [1, 3], [0, 1]]]))),
        Sample((make(3, 4), make.indices(3, 5, 4)), {"axis": 0}),
        Sample((make(4, 3).T, make.indices(4, 3, 2)), {"axis": 1}),
        Sample((np.arange(5) << 60, np.array([1, -5]))),
        Sample((make(2, 0), np.zeros((2, 0), np.int64))),
        Sample((make(0, 3), np.zeros((0, 2), np.int64))),
    ]


@overload
def take_along_axis(x: Gradual[D] | Constant, indices: Var[i64, *S], axis: int = -1) -> Var[D, *S]: ...
@overload
def take_along_axis(x: Gradual[D], indices: Constant, axis: int = -1) -> Gradual[D]: ...
@op(
    infer=_infer_take,
    lower=_lower_take,
    vjp=(lambda g, indices, x_shape, axis: scatter_add_along_axis(g, indices, x_shape[axis], axis), NO_GRAD),
    jvp=lambda dx, indices, axis: take_along_axis(dx, indices, axis),
    reference=lambda x, indices, axis=-1: np.take_along_axis(x, indices, axis),
    samples=_takes,
    errors=(
        bad(
            BoundsError,
            "take_along_axis: argument 'indices': expected -3 to 2, got 3 at position 2",
            (2, 3),
            np.array([[0, 1], [3, -4]]),
        ),
        bad(
            ShapeError,
            "take_along_axis: argument 'indices': expected the sizes (2, 3) of x on all axes but 1, got (1, 4)",
            (2, 3),
            np.zeros((1, 4), np.int64),
        ),
        bad(
            ShapeError,
            "'indices': expected the sizes (2, 3) of x on all axes but 1, got (2,)",
            (2, 3),
            np.array([0, 0]),
        ),
    ),
    batch_axis=BOTH,
    kinds={"axis": AXIS},
)
def take_along_axis(x: Gradual[D] | Constant, indices: Operand[i64, *S], axis: int = -1) -> Var[D, *S]:
    """The elements of ``x`` at ``indices`` along an axis, an index for each result; negative ones count from the end.

    It takes elements in the order that `argsort` finds. Other axes have the same sizes in both.

    Source: numpy.take_along_axis, without broadcasting.
    Shapes: x (*A, n, *B), indices (*A, m, *B) -> (*A, m, *B); n and m are the sizes of ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.take_along_axis(Tape().leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), [[2, 0], [-1, -1]]).numpy()
    array([[3., 1.],
           [6., 6.]])
    """
    ...


def _infer_scatter(values: Spec, indices: Spec, size: int, axis: int) -> Spec:
    a = normal_axis("scatter_add_along_axis", axis, values.rank)
    if indices.shape != values.shape:
        raise ShapeError(
            f"scatter_add_along_axis: argument 'indices': expected shape {values.shape}, got {indices.shape}"
        )
    return like(values, _resized(values.shape, a, size))


def _lower_scatter(values: Slot, indices: Slot, size: int, axis: int) -> Slot:
    a = normal_axis("scatter_add_along_axis", axis, values.spec.rank)
    shape = _resized(values.shape, a, size)
    ints, said = (*extent(shape, a), values.shape[a]), outside("scatter_add_along_axis", size)
    work = values.spec.size
    return call(kernels.scatter_add_along_axis, [values, indices], shape, *ints, work=work, refusal=said)


def _reference_scatter(values: Array, indices: Array, size: int, axis: int = -1) -> Array:
    a = axis % values.ndim
    out = np.zeros(_resized(values.shape, a, size), values.dtype)
    for place in np.ndindex(*values.shape):
        at = (*place[:a], int(indices[place]), *place[a + 1 :])
        out[at] = out[at] + values[place]
    return out


@op(
    infer=_infer_scatter,
    lower=_lower_scatter,
    vjp=(lambda g, indices, axis: take_along_axis(g, indices, axis), NO_GRAD),
    jvp=lambda dvalues, indices, size, axis: scatter_add_along_axis(dvalues, indices, size, axis),
    reference=_reference_scatter,
    samples=lambda make: [
        Sample((make(2, 6) * make(2, 6), np.array([[1, 0, -1, 1, 1, 2], [0, 0, 0, 0, 0, -3]])), {"size": 3}),
        Sample((make(5, 3), make.indices(4, 5, 3)), {"size": 4, "axis": 0}),
        Sample((make(2, 3, 2), make.indices(2, 2, 3, 2)), {"size": 2, "axis": 1}),
        Sample((make(3, 0), np.zeros((3, 0), np.int64)), {"size": 2}),
    ],
    errors=(
        bad(
            BoundsError,
            "scatter_add_along_axis: argument 'indices': expected -2 to 1, got 2 at position 1",
            (2, 2),
            np.array([[0, 2], [-3, 0]]),
            size=2,
            axis=0,
        ),
        bad(
            ShapeError,
            "scatter_add_along_axis: argument 'indices': expected shape (2, 3), got (2, 2)",
            (2, 3),
            np.zeros((2, 2), np.int64),
            size=3,
        ),
    ),
    batch_axis={"values": 0, "indices": 0},
    kinds={"size": at_least(0), "axis": AxisOf("values")},
)
def scatter_add_along_axis(
    values: Gradual[F] | Constant, indices: Gradual[i64] | Constant, size: int, axis: int = -1
) -> Gradual[F]:
    """Zeros, ``size`` along an axis, with each of ``values`` added at its own index, in ascending position.

    Source: torch.Tensor.scatter_add of zeros.
    Shapes: values (*A, m, *B), indices (*A, m, *B) -> (*A, size, *B); m is the size of ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.scatter_add_along_axis(Tape().leaf([[1.0, 2.0], [4.0, 8.0]]), [[1, 1], [0, -1]], size=3).numpy()
    array([[0., 3., 0.],
           [4., 0., 8.]])
    """
    ...


def _infer_flat(start: Spec, indices: Spec, n: int, stride: int, axis: int) -> Spec:
    if start.shape != indices.shape:
        raise ShapeError(f"flat_index: argument 'indices': expected shape {start.shape}, got {indices.shape}")
    return start


def _lower_flat(start: Slot, indices: Slot, n: int, stride: int, axis: int) -> Slot:
    said = f"index: argument 'index': expected {-n} to {n - 1} on axis {axis}, got {{value}} at position {{position}}"
    size = start.spec.size
    return call(kernels.flat_index, [start, indices], start.shape, size, n, stride, refusal=said)


@op(
    infer=_infer_flat,
    lower=_lower_flat,
    along=NO_GRAD,
    reference=lambda start, indices, n, stride, axis: start + stride * (indices % n if n else indices),
    samples=lambda make: [
        Sample((np.array([[0, 1], [10, 11]]), np.array([[0, -1], [2, -3]])), {"n": 3, "stride": 4, "axis": 1}),
        Sample((np.zeros(0, np.int64), np.zeros(0, np.int64)), {"n": 0, "stride": 1, "axis": 0}),
    ],
    batch_axis={"start": 0, "indices": 0},
    private=True,
)  # fmt: skip
def flat_index(start: Var[i64, *S], indices: Var[i64, *S], n: int, stride: int, axis: int) -> Var[i64, *S]:
    """``start + stride * index``, indices from the end counted from the front: positions among elements side by side.

    ``axis`` is the one of ``n`` elements that messages name.
    """
    ...
