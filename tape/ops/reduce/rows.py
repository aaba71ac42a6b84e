"""Reductions as rows: what lies along the axes that are reduced, brought together at the end."""

from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.engine.kernel import Kernel
from ...numerics.sizes import Sizes
from ...record.lowering import Slot, call
from ...record.samples import Make, Sample
from ...record.types import Axis
from ...values.shape import normal_axes
from ...values.spec import Spec
from ..shape.reshape import permute, reshape
from .reduce import adjacent, ordered, reduced


def kept_axes(rank: int, axes: Sizes) -> Sizes:
    """The axes that are not reduced."""
    return tuple(a for a in range(rank) if a not in axes)


def infer_rows(name: str, x: Spec, axis: Axis, keepdims: bool, empty: bool = True) -> Spec:
    """The result of a reduction; ``empty``: it has a value for no elements. Raises ShapeError."""
    axes = normal_axes(name, axis, x.rank)
    if not empty and not prod(x.shape[a] for a in axes):
        raise ShapeError(
            f"{name}: argument 'x': expected elements along axis {axes if axis is None else axis}, "
            f"got shape {x.shape}; there is nothing to reduce"
        )
    return reduced(name, x, axis, keepdims)


def lower_rows(
    name: str,
    kernel: Kernel,
    x: Slot,
    axis: Axis,
    keepdims: bool,
    work: int = 1,
    dtype: np.dtype[Any] | None = None,
    columns: Kernel | None = None,
) -> Slot:
    """A kernel of ``rows, n`` on the elements reduced, in row-major order; ``work`` operations for each.

    ``columns`` is a kernel of ``outer, n, inner`` with the same bits, for axes side by side before the last one.
    """
    axes, shape = normal_axes(name, axis, x.spec.rank), reduced(name, x.spec, axis, keepdims).shape
    n, rows = prod(x.shape[a] for a in axes), prod(shape)
    if columns is not None and axes and adjacent(axes) and axes[-1] < x.spec.rank - 1:
        outer = prod(x.shape[: axes[0]])
        return call(columns, [x], shape, outer, n, prod(x.shape[axes[-1] + 1 :]), work=work * x.spec.size)
    moved = ordered(x, kept_axes(x.spec.rank, axes) + axes)
    return call(kernel, [moved], shape, rows, n, dtype=dtype, work=work * x.spec.size)


def to_rows(x: Any, axis: Axis) -> Any:
    """Of ops: ``x`` with the axes reduced joined into a last one."""
    shape: Sizes = tuple(x.shape)
    axes = normal_axes("to_rows", axis, len(shape))
    kept = kept_axes(len(shape), axes)
    moved = x if kept + axes == tuple(range(len(shape))) else permute(x, kept + axes)
    return reshape(moved, (*(shape[a] for a in kept), prod(shape[a] for a in axes)))


def from_rows(rows: Any, shape: Sizes, axis: Axis) -> Any:
    """Of ops: the inverse of `to_rows` for an array of this shape."""
    axes = normal_axes("from_rows", axis, len(shape))
    order = kept_axes(len(shape), axes) + axes
    moved = reshape(rows, tuple(shape[a] for a in order))
    return moved if order == tuple(range(len(shape))) else permute(moved, tuple(int(i) for i in np.argsort(order)))


def without(shape: Sizes, axis: Axis) -> Sizes:
    """The sizes of the axes that are not reduced."""
    return tuple(shape[a] for a in kept_axes(len(shape), normal_axes("without", axis, len(shape))))


def row_samples(make: Make, *extra: Sample) -> list[Sample]:
    """Scalars, rows, columns, several axes, axes apart, kept axes, no rows, strides."""
    cases: list[tuple[Sizes, Axis]] = [
        ((), None), ((7,), None), ((5, 33), -1), ((4, 3), 0), ((3, 2, 4), (0, 2)), ((2, 3, 2, 2), (1, 2)),
        ((2, 3, 2, 4), (0, 2)), ((0, 3), 1),
    ]  # fmt: skip
    plain = [Sample((make(*shape),), {"axis": axis}) for shape, axis in cases]
    return [*plain, Sample((make(4, 3).T,), {"axis": 1, "keepdims": True}), *extra]
