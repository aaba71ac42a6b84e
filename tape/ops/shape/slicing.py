"""Basic slicing, and its adjoint: a block placed into zeros."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds import MISFIT, integer, shown
from ...record.kinds.values import AXIS
from ...record.lowering import Slot, call, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import D, F, M, N, like
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...var.var import Gradual, Var
from . import kernels


@dataclass(frozen=True)
class Selection:
    """What an index selects from a row-major array: an offset, then sizes and strides, all in elements."""

    offset: int
    sizes: Sizes
    strides: Sizes


def block(shape: Sizes, index: Any) -> Selection:
    """The block that a basic index selects. Raises ShapeError or BoundsError for an index that selects none."""
    offset, axis = 0, 0
    sizes: list[int] = []
    strides: list[int] = []
    for part in _parts(shape, index):
        if part is None:
            sizes.append(1)
            strides.append(0)
            continue
        n, stride = shape[axis], prod(shape[axis + 1 :])
        axis += 1
        if isinstance(part, slice):
            steps = range(*part.indices(n))
            sizes.append(len(steps))
            strides.append(steps.step * stride)
            offset += steps.start * stride if steps else 0
        else:
            offset += _counted(part, n, axis - 1) * stride
    return Selection(offset, tuple(sizes), tuple(strides))


def _counted(i: int, n: int, axis: int) -> int:
    if not -n <= i < n:
        raise BoundsError(f"getitem: argument 'index': expected {-n} to {n - 1} on axis {axis}, got {i}")
    return i % n


def _parts(shape: Sizes, index: Any) -> list[Any]:
    """The index with ``...`` and missing axes written out as full slices."""
    parts: list[Any] = list(cast(Sequence[Any], index)) if isinstance(index, tuple) else [index]
    for part in parts:
        if isinstance(part, slice):
            require_whole("getitem", part)
        if isinstance(part, bool) or not (isinstance(part, int | slice) or part is None or part is ...):
            raise ShapeError(
                f"getitem: argument 'index': expected integers, slices, ... or None, got {type(part).__name__}; "
                "use ops.index for arrays of indices and masks"
            )
    given = sum(part is not None and part is not ... for part in parts)
    if given > len(shape) or sum(part is ... for part in parts) > 1:
        raise ShapeError(f"getitem: argument 'index': expected at most {len(shape)} axes and one ..., got {index!r}")
    if not any(part is ... for part in parts):
        parts.append(...)
    at = next(i for i, part in enumerate(parts) if part is ...)
    return [*parts[:at], *[slice(None)] * (len(shape) - given), *parts[at + 1 :]]


def require_whole(name: str, part: Any) -> None:
    """Raises ShapeError for a slice of anything but whole numbers, or without a step."""
    bounds = [integer(bound) for bound in (part.start, part.stop, part.step) if bound is not None]
    if MISFIT in bounds or (part.step is not None and bounds[-1] == 0):
        raise ShapeError(
            f"{name}: argument 'index': expected slices of whole numbers with a step other than 0, got {shown(part)}"
        )


def _as_view(index: Any) -> tuple[Any, ...]:
    """The index with an ``...``, without which numpy gives a single element as a number instead of a view."""
    parts = tuple(cast(Sequence[Any], index)) if isinstance(index, tuple) else (index,)
    return parts if any(part is ... for part in parts) else (*parts, ...)


def _reference_place(g: Array, shape: Sizes, index: Any) -> Array:
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


INDICES: list[tuple[Sizes, Any]] = [
    ((5,), 2), ((5,), slice(None, None, -2)), ((4, 3), (slice(1, 3), -1)), ((4, 3), (..., slice(0, 2))),
    ((4, 3), (None, 1)), ((2, 3, 4), (slice(None), slice(2, 0, -1), slice(None, None, 3))), ((4,), slice(3, 1)),
    ((), ()), ((0, 3), slice(None)),
]  # fmt: skip


@op(
    infer=lambda x, index: like(x, block(x.shape, index).sizes),
    lower=lambda x, index: view("getitem", x, block(x.shape, index).sizes, lambda a: a[_as_view(index)]),
    vjp=(lambda g, x_shape, index: place(g, x_shape, index),),
    jvp=lambda dx, index: getitem(dx, index),
    reference=lambda x, index: x[index],
    samples=lambda make: [Sample((make(*shape),), {"index": index}) for shape, index in INDICES],
    errors=(
        bad(BoundsError, "argument 'index': expected -2 to 1 on axis 0, got 2", (2, 3), index=2),
        bad(
            ShapeError,
            "argument 'index': expected at most 1 axes and one ..., got (0, 0)",
            (2,),
            index=(0, 0),
        ),
        bad(ShapeError, "use ops.index for arrays of indices and masks", (2,), index=([0, 1],)),
        bad(ShapeError, "use ops.index for arrays of indices and masks", (2,), index=True),
    ),
    covers=("gather_scalar",),
    excused={"batch": "the index may select from the batch"},
)
def getitem(x: Gradual[D], index: Any) -> Gradual[D]:
    """``x[index]`` with integers, slices (steps of either sign), ``...`` and ``None``, as in numpy.

    Source: basic indexing of numpy.
    Shapes: x (...) -> (...); as numpy's ``x[index]`` of the same index

    >>> from dgrr.tape import Tape, ops
    >>> ops.getitem(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), (slice(None), -1)).numpy()
    array([2., 4.])
    """
    ...


def _columns(size: int, part: Selection) -> tuple[int, int, int, int] | None:
    """A block as columns: rows, elements of a row of the whole, before the block in it, of a row of the block.

    None for a block that is none of these, such as one with a step.
    """
    axes = [(n, stride) for n, stride in zip(part.sizes, part.strides, strict=True) if n != 1]
    run = 1
    while axes and axes[-1][1] == run:
        run *= axes.pop()[0]
    rows, pitch = axes[-1] if axes else (1, size)
    for n, stride in axes[-2::-1]:
        if stride != rows * pitch:
            return None
        rows *= n
    fits = run > 0 and rows * pitch == size and part.offset + run <= pitch
    return (rows, pitch, part.offset, run) if fits else None


def _lower_place(g: Slot, shape: Sizes, index: Any) -> Slot:
    part, size = block(shape, index), prod(shape)
    columns = _columns(size, part)
    if columns is not None:
        return call(kernels.place_columns, [g], shape, *columns)
    return call(kernels.place, [g], shape, size, part.offset, len(part.sizes), *part.sizes, *part.strides)


def _places(make: Make) -> list[Sample]:
    return [Sample((make(*block(s, i).sizes),), {"shape": s, "index": i}) for s, i in INDICES]


def _infer_place(g: Spec, shape: Sizes, index: Any) -> Spec:
    sizes = block(shape, index).sizes
    if g.shape != sizes:
        raise ShapeError(f"place: argument 'g': expected shape {sizes}, got {g.shape}")
    return like(g, shape)


@op(
    infer=_infer_place,
    lower=_lower_place,
    vjp=(lambda g, index: getitem(g, index),),
    jvp=lambda dg, shape, index: place(dg, shape, index),
    reference=_reference_place,
    samples=_places,
    errors=(bad(ShapeError, "place: argument 'g': expected shape (2,), got (3,)", (3,), shape=(5,), index=slice(2)),),
    excused={"batch": "the attribute names the batch's size"},
    private=True,
)
def place(g: Gradual[F], shape: Sizes, index: Any) -> Gradual[F]:
    """Zeros of ``shape`` with ``g`` at ``index``: the gradient of slicing."""
    ...


def _range(x_shape: Sizes, start: int, length: int, axis: int) -> tuple[slice, ...]:
    """The range as an index. Raises ShapeError or BoundsError."""
    a = normal_axis("narrow", axis, len(x_shape))
    if min(start, length) < 0 or start + length > x_shape[a]:
        raise BoundsError(
            f"narrow: argument 'start': expected start and length of at least 0, and start + length of at most "
            f"{x_shape[a]} on axis {a}, got {start} + {length}"
        )
    return (*(slice(None),) * a, slice(start, start + length))


def _narrowed(x: Spec, start: int, length: int, axis: int) -> Spec:
    return like(x, block(x.shape, _range(x.shape, start, length, axis)).sizes)


def _lower_narrow(x: Slot, start: int, length: int, axis: int) -> Slot:
    index = _range(x.shape, start, length, axis)
    return view("getitem", x, block(x.shape, index).sizes, lambda a: a[index])


@op(
    infer=_narrowed,
    lower=_lower_narrow,
    vjp=(lambda g, x_shape, start, length, axis: place(g, x_shape, _range(x_shape, start, length, axis)),),
    jvp=lambda dx, start, length, axis: narrow(dx, start, length, axis),
    reference=lambda x, start, length, axis=0: np.take(x, range(start, start + length), axis),
    samples=lambda make: [
        Sample((make(5),), {"start": 1, "length": 3}),
        Sample((make(4, 3),), {"start": 2, "length": 2}),
        Sample((make(2, 4, 3),), {"start": 0, "length": 2, "axis": 1}),
        Sample((make(3, 4),), {"start": 4, "length": 0, "axis": -1}),
    ],
    errors=(
        bad(BoundsError, "start + length of at most 2 on axis 0, got 1 + 2", (2, 3), start=1, length=2),
        bad(
            BoundsError,
            "narrow: argument 'start': expected start and length of at least 0, and start + length of at most 2 on "
            "axis 0, got -1 + 1",
            (2,),
            start=-1,
            length=1,
        ),
        bad(BoundsError, "got 0 + -1", (2,), start=0, length=-1),
    ),
    covers=("slice_range0",),
    excused={"batch": "the range may select from the batch"},
    kinds={"axis": AXIS},
)
def narrow(x: Gradual[D], start: int, length: int, axis: int = 0) -> Gradual[D]:
    """``length`` slices of ``x`` from ``start`` on along an axis; unlike ``x[start:stop]`` it must lie inside.

    Source: torch.narrow.
    Shapes: x (...) -> (...); ``length`` elements along ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.narrow(Tape().leaf([1.0, 2.0, 3.0, 4.0]), start=1, length=2).numpy()
    array([2., 3.])
    """
    ...


def _infer_row(x: Spec, i: int) -> Spec:
    rows, columns = x.shape
    if not -rows <= i < rows:
        raise BoundsError(f"gather_row: argument 'i': expected {-rows} to {rows - 1}, got {i}")
    return like(x, (columns,))


@op(
    infer=_infer_row,
    lower=lambda x, i: view("getitem", x, x.shape[1:], lambda a: np.asarray(a[i])),
    vjp=(lambda g, x_shape, i: place(g, x_shape, i),),
    jvp=lambda dx, i: gather_row(dx, i),
    reference=lambda x, i: x[i],
    samples=lambda make: [Sample((make(4, 3),), {"i": i}) for i in (0, 3, -1)],
    errors=(bad(BoundsError, "gather_row: argument 'i': expected -2 to 1, got 2", (2, 3), i=2),),
    covers=("gather_row",),
    excused={"batch": "it selects one row of the batch"},
)
def gather_row(x: Var[D, M, N], i: int) -> Var[D, N]:
    """Row ``i`` of a matrix; bounded, may count from the end.

    Source: ``x[i]`` of numpy, for a matrix and one whole number.

    >>> from dgrr.tape import Tape, ops
    >>> ops.gather_row(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), -1).numpy()
    array([3., 4.])
    """
    ...
