"""The order of the elements along an axis, and the elements in that order."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...errors import DomainError, TapeError
from ...numerics.basic import arithmetic
from ...record.composed import composed, fitted
from ...record.derivative import NO_GRAD
from ...record.kinds import Kind
from ...record.kinds.values import AXIS, at_least
from ...record.lowering import Slot, call, elementwise, permuted, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample
from ...record.types import D, S
from ...values.dtypes import i64
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...values.tensor import AnyTensor
from ...var.var import Gradual, Var
from ..indices.along import take_along_axis
from . import kernels, reference

INT64 = i64.dtype

FEW = 64
"""So many first elements are found sooner than all are sorted."""


def _infer(x: Spec) -> Spec:
    return Spec(x.shape, INT64)


def _keys(x: Slot) -> Slot:
    """Integers in the order of the elements."""
    if x.dtype == INT64:
        return x
    kernel = kernels.order_keys if x.dtype.kind == "f" else arithmetic.bool_to_int64
    return elementwise(kernel, x, dtype=INT64)


def _flip(descending: bool) -> int:
    return kernels.DESCENDING if descending else kernels.ASCENDING


def _lower(x: Slot, axis: int, descending: bool) -> Slot:
    return _along(x, axis, lambda rows: _sorted(rows, rows.shape[-1], descending))


def _lower_first(x: Slot, k: int, axis: int, descending: bool) -> Slot:
    return _along(x, axis, lambda rows: (_found if k <= FEW else _sorted)(rows, k, descending))


def _along(x: Slot, axis: int, order_of: Callable[[Slot], Slot]) -> Slot:
    """The order of rows, for an axis that may be another than the last."""
    rank, a = x.spec.rank, normal_axis("argsort", axis, x.spec.rank)
    if a == rank - 1:
        return order_of(x)
    order = (*(i for i in range(rank) if i != a), a)
    return permuted(order_of(permuted(x, order)), tuple(order.index(i) for i in range(rank)))


def positions_in_order(keys: Slot, flip: int, width: int) -> Slot:
    """Where the keys of each row stand in order; ``flip`` and ``width`` are those of `kernels.argsort_rows`."""
    *leading, n = keys.shape
    work = keys.spec.size * 2 * max(n, 1).bit_length()
    found = call(kernels.argsort_rows, [keys], (2, *keys.shape), prod(leading), n, flip, width, work=work)
    return view("getitem", found, keys.shape, lambda array: array[0])


def _sorted(rows: Slot, k: int, descending: bool) -> Slot:
    """The first ``k`` of each row in order, of all that are sorted."""
    found = positions_in_order(_keys(rows), _flip(descending), rows.dtype.itemsize)
    return found if k == rows.shape[-1] else view("getitem", found, (*rows.shape[:-1], k), lambda array: array[..., :k])


def _found(rows: Slot, k: int, descending: bool) -> Slot:
    """The first ``k`` of each row in order, kept while it is read."""
    *leading, n = rows.shape
    ints = (prod(leading), n, k, _flip(descending))
    return call(kernels.argtopk_rows, [_keys(rows)], (*leading, k), *ints, work=2 * rows.spec.size)


def _samples(make: Make) -> list[Sample]:
    special = np.array([[1, np.nan, -0.0, 0.0, -np.inf, -1, 0.0, np.nan, np.inf, -0.0]], make.dtype)
    special[0, -3] = -special[0, -3]  # a NaN of the other sign
    ties = make.indices(4, 3, 37).astype(make.dtype)
    return [
        Sample((special,), {"descending": True}),
        Sample((special.T,), {"axis": 0}),
        Sample((ties,), {"descending": True}),
        Sample((make(3, 4, 5),), {"axis": 1}),
        Sample((np.array([3, -(2**63), 2**63 - 1, 3, 0]),), {"descending": True}),
        Sample((make.mask(5),)),
        Sample((make(2, 0),)),
        Sample((make(1),)),
        Sample(((37 * np.arange(198.0) % 199 / 8).reshape(2, 99).astype(make.dtype),)),  # far apart: slopes are found
    ]


@op(
    infer=lambda x, axis, descending: _infer(x),
    lower=_lower,
    along=NO_GRAD,
    reference=reference.argsort,
    samples=_samples,
    kinds={"axis": AXIS},
    batch_axis={"x": 0},
)
def argsort(x: Var[D, *S], axis: int = -1, descending: bool = False) -> Var[i64, *S]:
    """Where the elements along an axis stand in ascending or descending order; equal ones by position, either way.

    NaN is the largest, so the last in ascending order, and -0 < +0.

    Source: numpy.argsort with kind "stable", torch.argsort with ``stable=True``; of zeros, reduce_max and reduce_min.

    >>> from dgrr.tape import Tape, ops
    >>> ops.argsort(Tape().leaf([3.0, 1.0, 2.0, 1.0])).numpy()
    array([1, 3, 2, 0])
    """
    ...


@composed(
    reference=reference.sort,
    samples=_samples,
    kinds={"axis": AXIS},
    batch_axis={"x": 0},
)
def sort(x: Var[D, *S], axis: int = -1, descending: bool = False) -> Var[D, *S]:
    """The elements along an axis in ascending or descending order, that of `argsort`; each keeps its gradient.

    NaN is the largest, so the last in ascending order, and -0 < +0.

    Source: numpy.sort, torch.sort.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sort(Tape().leaf([3.0, 1.0, 2.0]), descending=True).numpy()
    array([3., 2., 1.])
    """
    (x,) = fitted("sort", x)
    return take_along_axis(x, argsort(x, axis, descending), axis)


def _infer_first(x: Spec, k: int, axis: int, descending: bool) -> Spec:
    a = normal_axis("argtopk", axis, x.rank)
    return Spec((*x.shape[:a], k, *x.shape[a + 1 :]), INT64)


def _samples_of_few(make: Make) -> list[Sample]:
    special, turned, many = _samples(make)[0].arrays[0], _samples(make)[1].arrays[0], make.indices(9, 2, 99)
    return [
        Sample((special,), {"k": 4, "axis": 1, "descending": True}),
        Sample((turned,), {"k": 3, "axis": 0, "descending": False}),
        Sample((many.astype(make.dtype),), {"k": 5, "axis": -1, "descending": True}),
        Sample((many.astype(make.dtype),), {"k": FEW + 1, "axis": -1, "descending": False}),
        Sample((many.T,), {"k": 7, "axis": 0, "descending": False}),
        Sample((make.mask(5),), {"k": 2, "axis": 0, "descending": True}),
        Sample((make(2, 0),), {"k": 0, "axis": 1, "descending": False}),
    ]


@op(
    infer=_infer_first,
    lower=_lower_first,
    along=NO_GRAD,
    reference=reference.argtopk,
    samples=_samples_of_few,
    kinds={"k": at_least(0), "axis": AXIS},
    batch_axis={"x": 0},
    private=True,
)
def argtopk(x: Gradual[D], k: int, axis: int, descending: bool) -> Gradual[i64]:
    """The first ``k`` along an axis of what `argsort` gives."""
    ...


WHOLE, TRUTH = Kind(int), Kind(bool)


def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Gradual[Any], Gradual[i64]]:
    """The ``k`` largest or smallest elements along an axis, in order, and where they stand: ``(values, indices)``.

    They are the first of `argsort` in descending or ascending order: of equal elements those that stand first, and
    NaN is the largest. Gradients go to the elements that were taken.

    Source: torch.topk; which of equal elements are taken is left open there.
    Shapes: x (*A, n, *B) -> two of (*A, k, *B); n is the size of ``axis``
    Dtypes: x and the values float32, float64, int64 or bool, alike; the indices int64.
    Raises:
        ShapeError: x has no such axis.
        DomainError: ``k`` is negative or more than the axis has elements.
        DTypeError: ``k`` or ``axis`` is no whole number, or ``largest`` is neither True nor False.
        TapeError: x is no Var or tensor.

    >>> from dgrr.tape import Tape, ops
    >>> values, indices = ops.topk(Tape().leaf([3.0, 1.0, 4.0]), 2)
    >>> values.numpy().tolist(), indices.numpy().tolist()
    ([4.0, 3.0], [2, 0])
    """
    k, axis = WHOLE("topk: argument 'k'", k), WHOLE("topk: argument 'axis'", axis)
    largest = TRUTH("topk: argument 'largest'", largest)
    given: Any = x
    if not isinstance(x, Var | AnyTensor):
        raise TapeError("topk: expected a Var among the arguments; put an array on a tape with tape.leaf")
    n = given.shape[normal_axis("topk", axis, len(given.shape))]
    if not 0 <= k <= n:
        raise DomainError(f"topk: argument 'k': expected 0 to {n}, the size of axis {axis}, got {k}")
    indices = argtopk(given, k, axis, largest)
    return take_along_axis(given, indices, axis), indices
