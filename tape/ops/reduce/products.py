"""Products along axes, and running sums."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from math import prod as size_of
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import AXES, AXIS
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Axis, F, S
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...var.method_types import typed_as
from ...var.var import Gradual, Var, reduction
from ..elementwise.arithmetic import mul
from ..indices.take import scatter_add, take
from ..shape.slicing import getitem
from .kernels import products as kernels
from .reduce import broadcast_to, reduce_sum, spread_along
from .reference import reductions as reference
from .rows import from_rows, infer_rows, lower_rows, row_samples, to_rows


def _slope(x: Any, axis: Axis) -> Any:
    """The derivative of the product by each element: the product of the others."""
    return from_rows(prod_but_one(to_rows(x, axis)), tuple(x.shape), axis)


def _products(make: Make) -> list[Sample]:
    zeros = np.array([[1.5, 0.0, -2.0], [0.0, 3.0, 0.0], [-0.0, 1.0, 2.0]], make.dtype)
    extreme = np.array([[1e-30, 1e-30, 1e30], [np.inf, 0.0, 1.0], [np.nan, 0.0, 1.0]], make.dtype)
    given = [Sample((x,), {"axis": -1}) for x in (zeros, extreme)]
    return row_samples(make, *given, Sample((make(3, 0),), {"axis": 1}))


@typed_as(reduction)
@op(
    infer=partial(infer_rows, "prod"),
    lower=partial(lower_rows, "prod", kernels.prod_rows, columns=kernels.prod_columns),
    vjp=(lambda g, x, x_shape, axis: mul(spread_along(g, x_shape, axis), _slope(x, axis)),),
    jvp=lambda dx, x, axis, keepdims: reduce_sum(mul(dx, _slope(x, axis)), axis, keepdims),
    reference=reference.prod,
    samples=_products,
    kinds={"axis": AXES},
    excused={"batch": "by default the batch is multiplied"},
)
def prod(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """The product along an axis, several, or all, as one chain; 1 for no elements. Zeros have exact gradients.

    Source: numpy.prod.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.prod(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), 1).numpy()
    array([ 2., 12.])
    """
    ...


def _others(n: int) -> Any:
    """Row i: every position but i."""
    positions = np.array([k for i in range(n) for k in range(n) if k != i], np.int64)
    return positions.reshape(n, max(n - 1, 0))


def _but_two(x: Any) -> Any:
    """``(..., i, k)``: the product of all but element i and the k-th of the others."""
    return prod_but_one(take(x, _others(x.shape[-1]), -1))


def _but_one_vjp(g: Any, x: Any, x_shape: Sizes) -> Any:
    n, pairs = x_shape[-1], _but_two(x)
    weights = broadcast_to(getitem(g, (..., None)), tuple(pairs.shape))
    return scatter_add(mul(pairs, weights), _others(n), n, -1)


def _but_one_jvp(dx: Any, x: Any) -> Any:
    return reduce_sum(mul(_but_two(x), take(dx, _others(x.shape[-1]), -1)), -1)


def _infer_but_one(x: Spec) -> Spec:
    normal_axis("prod_but_one", -1, x.rank)
    return x


@op(
    infer=_infer_but_one,
    lower=lambda x: call(kernels.prod_but_one, [x], x.shape, size_of(x.shape[:-1]), x.shape[-1], work=3 * x.spec.size),
    vjp=(_but_one_vjp,),
    jvp=_but_one_jvp,
    reference=reference.prod_but_one,
    samples=lambda make: [
        Sample((make(3, 5),)),
        Sample((make(2, 1),)),
        Sample((make(2, 0),)),
        Sample((make(2, 3, 4).swapaxes(1, 2),)),
        Sample((np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0]], make.dtype),)),
    ],
    errors=(bad(ShapeError, "prod_but_one: argument 'axis': expected no axis of a scalar, got -1", ()),),
    batch_axis={"x": 0},
    private=True,
)
def prod_but_one(x: Var[F, *S]) -> Var[F, *S]:
    """For each element the product of the others along the last axis: the gradient of prod, without a division."""
    ...


def backwards(x: Any, axis: int) -> Any:
    """``x`` with an axis reversed."""
    before = normal_axis("backwards", axis, len(x.shape))
    return getitem(x, (*(slice(None),) * before, slice(None, None, -1)))


def _lower_cumsum(x: Slot, axis: int) -> Slot:
    a = normal_axis("cumsum", axis, x.spec.rank)
    ints = (size_of(x.shape[:a]), x.shape[a], size_of(x.shape[a + 1 :]))
    return call(kernels.cumsum, [x], x.shape, *ints, aliases=(0,))


@op(
    lower=_lower_cumsum,
    vjp=(lambda g, axis: backwards(cumsum(backwards(g, axis), axis), axis),),
    jvp=lambda dx, axis: cumsum(dx, axis),
    reference=reference.cumsum,
    samples=lambda make: [
        Sample((make(7),), {"axis": 0}),
        Sample((make(4, 33) * make(4, 33),), {"axis": -1}),
        Sample((make(5, 3),), {"axis": 0}),
        Sample((make(3, 4, 5),), {"axis": 1}),
        Sample((make(2, 0),), {"axis": 1}),
        Sample((make(4, 3).T,), {"axis": 1}),
        Sample((np.array([-0.0, -0.0, np.inf, 1.0, -np.inf], make.dtype),), {"axis": 0}),
    ],
    kinds={"axis": AXIS},
    batch_axis={"x": 0},
)
def cumsum(x: Var[F, *S], axis: int) -> Var[F, *S]:
    """The running sum along an axis, one chain from +0.

    Source: numpy.cumsum.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cumsum(Tape().leaf([1.0, 2.0, 3.0]), 0).numpy()
    array([1., 3., 6.])
    """
    ...
