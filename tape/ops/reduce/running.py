"""Running products and running extremes along an axis, and the recurrence behind the gradient of products."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np

from ....base.arrays import Array
from ...numerics.engine.kernel import Kernel
from ...record.composed import composed, fitted
from ...record.derivative import NO_GRAD
from ...record.kinds.values import AXIS
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample
from ...record.types import F, S
from ...values.dtypes import i64
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...var.var import Var
from ..elementwise.arithmetic import add, mul
from ..indices.take import take
from ..shape.padding import pad
from ..shape.reshape import reshape
from ..shape.slicing import narrow
from .kernels import running as kernels
from .products import backwards
from .reference import running as reference

Function = TypeVar("Function", bound=Callable[..., Any])


def _lower(name: str, kernel: Kernel, *inputs: Slot, axis: int, more: tuple[int, ...] = (), **options: Any) -> Slot:
    shape = inputs[0].shape
    a = normal_axis(name, axis, len(shape))
    return call(kernel, inputs, shape, prod(shape[:a]), shape[a], prod(shape[a + 1 :]), *more, **options)


def _infer(name: str, x: Spec, axis: int) -> Spec:
    return x


def _delayed(x: Any, axis: int, first: float) -> Any:
    """``x`` moved one place further along an axis, with a number in the first place."""
    n, rank = x.shape[axis], len(x.shape)
    widths = tuple([(1, 0) if a == axis % rank else (0, 0) for a in range(rank)])
    return pad(narrow(x, 0, n - 1, axis), widths, first) if n else x


def _swept(g: Any, a: Any, axis: int) -> Any:
    """``s[r] = g[r] + a[r + 1] * s[r + 1]``, from the last element to the first."""
    return backwards(recurrence(_delayed(backwards(a, axis), axis, 0.0), backwards(g, axis), axis), axis)


def _products(make: Make) -> list[Sample]:
    zeros = np.array([[1.5, 0.0, -2.0, 0.0], [-0.0, 3.0, 2.0, 1.0]], make.dtype)
    extreme = np.array([-0.0, 2.0, np.inf, 0.0, np.nan, 1.0], make.dtype)
    cases = (((7,), 0), ((3, 4, 5), 1), ((5, 3), 0), ((2, 0), 1), ((0, 2), 1))
    drawn = [Sample((make(*shape),), {"axis": axis}) for shape, axis in cases]
    given = [Sample((zeros,), {"axis": -1}), Sample((extreme,), {"axis": 0})]
    return [*drawn, Sample((make(4, 3).T,), {"axis": 1}), *given]


@op(
    infer=lambda x, axis: _infer("cumprod", x, axis),
    lower=lambda x, axis: _lower("cumprod", kernels.cumprod, x, axis=axis, aliases=(0,)),
    vjp=(lambda g, x, y, axis: mul(_swept(g, x, axis), _delayed(y, axis, 1.0)),),
    jvp=lambda dx, x, y, axis: recurrence(x, mul(dx, _delayed(y, axis, 1.0)), axis),
    reference=reference.cumprod,
    samples=_products,
    kinds={"axis": AXIS},
    batch_axis={"x": 0},
)
def cumprod(x: Var[F, *S], axis: int) -> Var[F, *S]:
    """The running product along an axis, one chain. Zeros have exact gradients: nothing is divided.

    Source: numpy.cumprod.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cumprod(Tape().leaf([1.0, 2.0, 3.0]), 0).numpy()
    array([1., 2., 6.])
    """
    ...


def _recurrence_jvp(da: Any, db: Any, a: Any, y: Any, axis: int) -> Any:
    return recurrence(a, add(db, mul(da, _delayed(y, axis, 0.0))), axis)


@op(
    infer=lambda a, b, axis: _infer("recurrence", a, axis),
    lower=lambda a, b, axis: _lower("recurrence", kernels.recurrence, a, b, axis=axis),
    vjp=(
        lambda g, a, y, axis: mul(_swept(g, a, axis), _delayed(y, axis, 0.0)),
        lambda g, a, axis: _swept(g, a, axis),
    ),
    jvp=_recurrence_jvp,
    reference=reference.recurrence,
    samples=lambda make: [
        Sample((make(5), make(5)), {"axis": 0}),
        Sample((make(3, 4, 2), make(3, 4, 2)), {"axis": 1}),
        Sample((make(2, 0), make(2, 0)), {"axis": 1}),
        Sample((make(4, 3).T, make(3, 4)), {"axis": -1}),
    ],
    batch_axis={"a": 0, "b": 0},
    private=True,
)
def recurrence(a: Var[F, *S], b: Var[F, *S], axis: int) -> Var[F, *S]:
    """``y[0] = b[0]``, then ``y[r] = b[r] + a[r] * y[r - 1]`` along an axis: the gradient of cumprod and its own."""
    ...


def _extremes(make: Make) -> list[Sample]:
    row = [2.0, 1.0, 2.0, -0.0, 3.0, np.inf, np.inf, np.nan, 5.0, np.nan]
    rows = np.array([row, np.negative(row), [0.0, -0.0, 0.0, -0.0, -0.0, 0.0, 0.0, -1.0, 1.0, 0.0]], make.dtype)
    cases = (((7,), 0), ((3, 4, 5), 1), ((5, 3), 0), ((2, 0), 1))
    drawn = [Sample((make(*shape),), {"axis": axis}) for shape, axis in cases]
    return [*drawn, Sample((make(4, 3).T,), {"axis": -1}), Sample((rows,), {"axis": 1})]


def _lower_place(name: str, largest: bool, whole: bool, x: Slot, axis: int) -> Slot:
    words = int(largest), int(whole)
    return _lower(name, kernels.running_place, x, axis=axis, more=words, dtype=i64.dtype)


def _infer_place(name: str, x: Spec, axis: int) -> Spec:
    return Spec(_infer(name, x, axis).shape, i64.dtype)


def _places(make: Make) -> list[Sample]:
    return [Sample(s.arrays, {**s.attrs, "largest": up}) for s in _extremes(make) for up in (True, False)]


@op(
    infer=lambda x, axis, largest: _infer_place("running_place", x, axis),
    lower=lambda x, axis, largest: _lower_place("running_place", largest, True, x, axis),
    along=NO_GRAD,
    reference=reference.running_place,
    samples=_places,
    excused={"batch": "positions are those in the whole array"},
    private=True,
)
def running_place(x: Var[F, *S], axis: int, largest: bool) -> Var[i64, *S]:
    """Where, in row-major order, the extreme of the elements up to each one along an axis stands last."""
    ...


def _place(*, largest: bool) -> Callable[[Function], Function]:
    """The record of a function that gives places along an axis."""
    name = f"cumarg{'max' if largest else 'min'}"
    return op(
        infer=partial(_infer_place, name),
        lower=partial(_lower_place, name, largest, False),
        along=NO_GRAD,
        reference=partial(reference.running_index, largest=largest),
        samples=_extremes,
        kinds={"axis": AXIS},
        batch_axis={"x": 0},
    )


@_place(largest=True)
def cumargmax(x: Var[F, *S], axis: int) -> Var[i64, *S]:
    """The place along an axis of the largest element so far, the last of equal ones.

    NaN wins, and -0 < +0.

    Source: the indices of torch.cummax.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cumargmax(Tape().leaf([2.0, 1.0, 2.0]), 0).numpy()
    array([0, 0, 2])
    """
    ...


@_place(largest=False)
def cumargmin(x: Var[F, *S], axis: int) -> Var[i64, *S]:
    """The place along an axis of the smallest element so far, the last of equal ones.

    NaN wins, and -0 < +0.

    Source: the indices of torch.cummin.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cumargmin(Tape().leaf([2.0, 3.0, 1.0]), 0).numpy()
    array([0, 0, 2])
    """
    ...


def _running(name: str, x: Any, axis: int, largest: bool) -> Any:
    (x,) = fitted(name, x)
    return take(reshape(x, (prod(x.shape),)), running_place(x, axis, largest), 0)


def _reference_extreme(x: Array, axis: int, *, largest: bool) -> Array:
    return x.reshape(-1)[reference.running_place(x, axis, largest)]


def _extreme(*, largest: bool) -> Callable[[Function], Function]:
    """The record of a function that gives the elements at these places."""
    return composed(
        reference=partial(_reference_extreme, largest=largest),
        samples=_extremes,
        kinds={"axis": AXIS},
        batch_axis={"x": 0},
    )


@_extreme(largest=True)
def cummax(x: Var[F, *S], axis: int) -> Var[F, *S]:
    """The largest element so far along an axis; the gradient goes to the last of equal ones. See `cumargmax`.

    NaN wins, and -0 < +0.

    Source: torch.cummax.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cummax(Tape().leaf([2.0, 1.0, 3.0]), 0).numpy()
    array([2., 2., 3.])
    """
    found: Var[F, *S] = _running("cummax", x, axis, largest=True)
    return found


@_extreme(largest=False)
def cummin(x: Var[F, *S], axis: int) -> Var[F, *S]:
    """The smallest element so far along an axis; the gradient goes to the last of equal ones. See `cumargmin`.

    NaN wins, and -0 < +0.

    Source: torch.cummin.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cummin(Tape().leaf([2.0, 3.0, 1.0]), 0).numpy()
    array([2., 2., 1.])
    """
    found: Var[F, *S] = _running("cummin", x, axis, largest=False)
    return found
