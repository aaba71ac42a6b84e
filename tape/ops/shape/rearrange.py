"""Elements in other places along their axes: rolled, reversed, repeated."""

# References are numpy's own functions, whose arguments say little of types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from ...errors import DomainError, ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.kinds.values import AXES
from ...record.op import MOST_ELEMENTS
from ...record.samples import Make, Sample, bad
from ...record.types import D, S
from ...values.shape import normal_axes, normal_axis
from ...var.var import Gradual, Var
from ..indices.take import take
from .reshape import reshape
from .slicing import getitem

PLACES = {"batch": "elements may change places along the batch"}

Axis = int | tuple[int, ...] | None


def _flat(x: Any) -> Any:
    """All elements along one axis."""
    return x if len(x.shape) == 1 else reshape(x, (int(np.prod(x.shape)),))


def _rolls(shift: int | Sizes, axis: int | Sizes, rank: int) -> list[tuple[int, int]]:
    """By how much along which axis, one after the other. Raises ShapeError."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: argument 'shift': expected one for each of {len(axes)} axes, got {shift}")
    return [(by, normal_axis("roll", a, rank)) for by, a in zip(shifts, axes, strict=True)]


@composed(
    reference=lambda x, shift, axis=None: np.roll(x, shift, axis),
    samples=lambda make: [
        Sample((make(2, 5),), {"shift": -2, "axis": 1}),
        Sample((make(2, 3, 4),), {"shift": (1, 7), "axis": (0, -1)}),
        Sample((make(2, 3),), {"shift": 2}),
        Sample((make(5),), {"shift": -(2**63), "axis": 0}),
        Sample((np.zeros((2, 0), np.int64),), {"shift": 1, "axis": 1}),
    ],
    errors=(
        bad(ShapeError, "roll: argument 'axis': expected an axis from -2 to 1, got 2", (2, 3), shift=1, axis=2),
        bad(
            ShapeError,
            "roll: argument 'shift': expected one for each of 1 axes, got (1, 2)",
            (2, 3),
            shift=(1, 2),
            axis=1,
        ),
    ),
    excused=PLACES,
)
def roll(x: Var[D, *S], shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Var[D, *S]:
    """``x`` moved along axes, by ``shift`` towards the end; what leaves an axis comes in again at its beginning.

    Without an axis the elements move in row-major order.

    Source: numpy.roll.

    >>> from dgrr.tape import Tape, ops
    >>> ops.roll(Tape().leaf([1.0, 2.0, 3.0]), 1).numpy()
    array([3., 1., 2.])
    """
    (x,) = fitted("roll", x)
    shape: Sizes = tuple(x.shape)
    moves = _rolls(shift, 0 if axis is None else axis, 1 if axis is None else len(shape))
    made: Any = _flat(x) if axis is None else x
    for by, a in moves:
        n = int(made.shape[a])
        order: Any = (np.arange(n) - by % max(n, 1)) % max(n, 1)
        made = take(made, order, a)
    rolled: Any = reshape(made, shape) if axis is None else made
    return cast(Var[D, *S], rolled)


def _reversed(rank: int, axis: Axis) -> tuple[slice, ...]:
    axes = normal_axes("flip", axis, rank)
    return tuple(slice(None, None, -1 if a in axes else 1) for a in range(rank))


@composed(
    reference=lambda x, axis=None: np.flip(x, axis),
    samples=lambda make: [
        Sample((make(2, 3),)),
        Sample((make(2, 3, 4),), {"axis": -1}),
        Sample((make(4, 3).T,), {"axis": (0, 1)}),
        Sample((make(),)),
        Sample((make.mask(4),), {"axis": 0}),
    ],
    kinds={"axis": AXES},
    excused=PLACES,
)
def flip(x: Var[D, *S], axis: int | tuple[int, ...] | None = None) -> Var[D, *S]:
    """``x`` reversed along an axis, several, or all.

    Source: numpy.flip.

    >>> from dgrr.tape import Tape, ops
    >>> ops.flip(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), 1).numpy()
    array([[2., 1.],
           [4., 3.]])
    """
    (x,) = fitted("flip", x)
    flipped: Any = getitem(x, _reversed(len(x.shape), axis))
    return cast(Var[D, *S], flipped)


def _require_room(name: str, shape: Sizes) -> None:
    """Raises ShapeError for what no memory holds, of which numpy would say so in its own words."""
    if prod(shape) > MOST_ELEMENTS:
        raise ShapeError(f"{name}: expected a result of less than 2**63 bytes, got shape {shape}")


def _counts(repeats: int | Sizes, n: int) -> Sequence[int]:
    """How often each of n elements stands in the result. Raises ShapeError or DomainError."""
    counts = repeats if isinstance(repeats, tuple) else (repeats,) * n
    if len(counts) != n:
        raise ShapeError(f"repeat: argument 'repeats': expected a number for each of {n} elements, got {len(counts)}")
    if min(counts, default=0) < 0 or (isinstance(repeats, int) and repeats < 0):
        raise DomainError(f"repeat: argument 'repeats': expected at least 0, got {repeats}")
    return counts


@composed(
    reference=lambda x, repeats, axis=None: np.repeat(x, repeats, axis),
    samples=lambda make: [
        Sample((make(2, 3),), {"repeats": 2}),
        Sample((make(2, 3),), {"repeats": (0, 3, 1), "axis": 1}),
        Sample((make(2, 3, 2),), {"repeats": 3, "axis": -3}),
        Sample((make(),), {"repeats": 2}),
        Sample((np.arange(3),), {"repeats": 0, "axis": 0}),
    ],
    errors=(
        bad(ShapeError, "repeat: argument 'axis': expected an axis from -2 to 1, got 2", (2, 3), repeats=1, axis=2),
        bad(
            ShapeError,
            "repeat: argument 'repeats': expected a number for each of 3 elements, got 2",
            (2, 3),
            repeats=(1, 2),
            axis=1,
        ),
        bad(DomainError, "repeat: argument 'repeats': expected at least 0, got -1", (2, 3), repeats=-1, axis=1),
    ),
    excused=PLACES,
)
def repeat(x: Gradual[D], repeats: int | tuple[int, ...], axis: int | None = None) -> Gradual[D]:
    """Each element several times, one after the other: as often as one number says, or one for each along the axis.

    Without an axis the elements stand in row-major order. The gradients of an element's copies are added in order.

    Source: numpy.repeat, torch.repeat_interleave.
    Shapes: x (*A, n, *B) -> (*A, m, *B); m is the sum of ``repeats`` along ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.repeat(Tape().leaf([1.0, 2.0]), (2, 1), axis=0).numpy()
    array([1., 1., 2.])
    """
    (x,) = fitted("repeat", x)
    shape: Sizes = (int(np.prod(x.shape)),) if axis is None else tuple(x.shape)
    a = normal_axis("repeat", 0 if axis is None else axis, len(shape))
    counts = _counts(repeats, shape[a])
    _require_room("repeat", (*shape[:a], sum(counts), *shape[a + 1 :]))
    order: Any = np.repeat(np.arange(shape[a]), counts)
    return take(_flat(x) if axis is None else x, order, a)


def _tiles(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, int | Sizes], ...] = (
        ((2, 3), 2), ((3,), (2, 1, 2)), ((2, 3), (1,)), ((2, 1), (3, 0)), ((), (2,)),
    )  # fmt: skip
    return [Sample((make(*shape),), {"reps": reps}) for shape, reps in cases]


@composed(
    reference=np.tile,
    samples=_tiles,
    errors=(bad(DomainError, "tile: argument 'reps': expected at least 0, got (1, -1)", (2, 3), reps=(1, -1)),),
    excused=PLACES,
)
def tile(x: Gradual[D], reps: int | tuple[int, ...]) -> Gradual[D]:
    """``x`` several times side by side along each axis: numbers for the last axes, or for more axes than x has.

    The gradients of an element's copies are added in order.

    Source: numpy.tile.
    Shapes: x (...) -> (...); each size times its number, those that x or ``reps`` lack at the front being 1

    >>> from dgrr.tape import Tape, ops
    >>> ops.tile(Tape().leaf([1.0, 2.0]), (2, 2)).numpy()
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]])
    """
    (x,) = fitted("tile", x)
    counts = reps if isinstance(reps, tuple) else (reps,)
    if min(counts, default=0) < 0:
        raise DomainError(f"tile: argument 'reps': expected at least 0, got {reps}")
    rank = max(len(counts), len(x.shape))
    sizes, counts = ((1,) * (rank - len(numbers)) + tuple(numbers) for numbers in (x.shape, counts))
    _require_room("tile", tuple([n * count for n, count in zip(sizes, counts, strict=True)]))
    made: Any = x if rank == len(x.shape) else reshape(x, sizes)
    for a, (n, count) in enumerate(zip(sizes, counts, strict=True)):
        if count != 1:
            order: Any = np.tile(np.arange(n), count)
            made = take(made, order, a)
    result: Gradual[D] = made
    return result
