"""``x[index]`` with arrays: positions found by numpy's own rules, and one `take` at them."""

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, DTypeError, ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.kinds import MISFIT, integer
from ...record.samples import Sample, bad
from ...record.types import D
from ...values.dtypes import boolean, i64
from ...values.tensor import AnyTensor, as_array
from ...var.var import AnyVar, Gradual, Var, shape_of
from ..indices.along import flat_index
from ..indices.take import take
from .reshape import reshape
from .slicing import getitem, require_whole

Parts = list[Any]
"""What stands for each axis: a whole number, a slice, int64 indices as an array or a Var; None for a new axis.

``...`` stays where it stands for no axis but between indices.
"""

BOOL = boolean.dtype


def _plain(part: Any) -> Any:
    """One part of an index as a whole number, a slice, None, ``...``, an array of int64 or bool, or a Var of int64."""
    given: Any = part
    if isinstance(part, slice):
        require_whole("index", given)
    if part is None or part is ... or isinstance(part, slice):
        return given
    if isinstance(part, Var):
        return _data(given)
    found: Any = as_array(given.array if isinstance(part, AnyTensor) else given, "index: argument 'index'")
    if isinstance(part, list) and not found.size:
        found = found.astype(np.int64)
    if found.ndim == 0 and (number := integer(found.item())) is not MISFIT:
        return number
    if found.dtype.kind not in "iub" or not found.ndim:
        raise DTypeError(
            "index: argument 'index': expected whole numbers, slices, ..., None, arrays of int64 or masks, "
            f"got {found.dtype if isinstance(part, np.ndarray | list | AnyTensor) else type(part).__name__}"
        )
    return found if found.dtype == BOOL else found.astype(np.int64)


def _data(part: AnyVar) -> AnyVar:
    if part.dtype == BOOL:
        raise DTypeError(
            "index: argument 'index': expected a mask whose values are known, an array of numpy, got a Var; how many "
            "elements it selects depends on them: use ops.where(mask, x, 0.0), which keeps the shape"
        )
    if part.dtype != i64.dtype:
        raise DTypeError(f"index: argument 'index': expected int64, got a Var of {part.dtype}; convert with ops.cast")
    return part


def _is_data(part: Any) -> bool:
    return isinstance(part, Var)


def _is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and cast(Array, part).dtype == BOOL


def _taken_axes(part: Any) -> int:
    """How many axes of x a part of the index stands for."""
    return 0 if part is None or part is ... else part.ndim if _is_mask(part) else 1


def _each_axis(shape: Sizes, index: Any) -> Parts:
    """The index with ``...`` and missing axes written out, and masks as the positions where they are true."""
    given = cast(Sequence[Any], index) if isinstance(index, tuple) else (index,)
    parts = [_plain(part) for part in given]
    places = [i for i, part in enumerate(parts) if part is ...] or [len(parts)]
    rest = [part for part in parts if part is not ...]
    count = sum(map(_taken_axes, rest))
    if count > len(shape) or len(places) > 1:
        raise ShapeError(
            f"index: argument 'index': expected at most {len(shape)} axes and one ..., got {count} axes"
            f"{' and several ...' if len(places) > 1 else ''}"
        )
    missing: Parts = [slice(None)] * (len(shape) - count)
    rest[places[0] : places[0]] = missing or _gap(rest[: places[0]], rest[places[0] :])
    made: Parts = []
    axis = 0
    for part in rest:
        made += _checked(part, shape, axis)
        axis += _taken_axes(part)
    return made


def _gap(before: Parts, behind: Parts) -> Parts:
    """What ``...`` leaves where it stands for no axis: itself between indices, which for numpy stand apart then."""
    return [...] if any(map(_is_index, before)) and any(map(_is_index, behind)) else []


def _checked(part: Any, shape: Sizes, axis: int) -> Parts:
    """A part that begins at an axis, as parts of one axis each. Raises BoundsError or ShapeError."""
    if part is None or part is ... or isinstance(part, slice):
        return [part]
    if _is_mask(part):
        wanted = shape[axis : axis + part.ndim]
        if part.shape != wanted:
            raise ShapeError(
                f"index: argument 'index': expected a mask of shape {wanted} from axis {axis} on, got {part.shape}"
            )
        return list(part.nonzero())
    n = shape[axis]
    where = f"index: argument 'index': expected {-n} to {n - 1} on axis {axis}, got"
    if _is_data(part):
        if n == 0 and 0 not in shape_of(part):
            raise BoundsError(f"{where} indices of an axis without elements")
        return [part]
    indices = np.asarray(part)
    outside = np.flatnonzero((indices < -n) | (indices >= n))
    if outside.size:
        at = int(outside[0])
        raise BoundsError(f"{where} {indices.flat[at]}" + (f" at position {at}" if indices.ndim else ""))
    return [part]


def _is_array(part: Any) -> bool:
    return isinstance(part, np.ndarray | Var)


def _is_index(part: Any) -> bool:
    """Whether it selects single places along its axes; beside an array a number does so, too."""
    return _is_array(part) or isinstance(part, int)


def _require_broadcast(parts: Parts) -> None:
    arrays: list[Array] = [part for part in _at_zero(parts) if isinstance(part, np.ndarray)]
    try:
        np.broadcast(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ShapeError(
            f"index: argument 'index': expected arrays of indices whose shapes broadcast, got {shapes}"
        ) from None


def _whole_axis(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _kept(parts: Parts) -> tuple[int, int]:
    """How many axes at the front and at the end are kept whole, so that they need no positions.

    Those at the front stay there only if the arrays stand side by side: else numpy puts the arrays' axes first.
    """
    arrays = [i for i, part in enumerate(parts) if _is_index(part)]
    together = arrays[-1] - arrays[0] + 1 == len(arrays)
    front = next(i for i, part in enumerate(parts) if not _whole_axis(part)) if together else 0
    end = next(i for i, part in enumerate(reversed(parts)) if not _whole_axis(part))
    return front, end


def _at_zero(parts: Parts) -> Parts:
    """The index with zeros for the indices that are not known."""
    return [np.zeros(shape_of(part), np.int64) if _is_data(part) else part for part in parts]


def _repeated(parts: Parts, i: int, sizes: Sizes, axis: int, name: int) -> Any:
    """The unknown indices in part ``i`` as often, and where, numpy would read them: in the shape of the result.

    They are looked at before they are repeated, so that the position of a wrong one is its own.
    """
    indices: Any = parts[i]
    own = shape_of(indices)
    count = prod(own)
    places = np.arange(count)
    read = [*_at_zero(parts)]
    read[i] = places.reshape(own)
    here, sizes = sizes[axis], (*sizes[:axis], count, *sizes[axis + 1 :])
    along = np.broadcast_to(places.reshape((-1, *(1,) * (len(sizes) - axis - 1))), sizes)
    found: Any = along[tuple(read)]
    if found.shape == own and np.array_equal(found, read[i]):
        return indices
    zeros: Any = np.zeros(own, np.int64)
    checked = flat_index(zeros, indices, here, 1, name)
    return take(reshape(checked, (count,)), found, 0)


def _positions(parts: Parts, sizes: Sizes, first: int) -> Any:
    """The positions that an index selects among elements of these sizes, side by side.

    What messages call the first of these axes is ``first``.
    """
    if len(sizes) == 1 and len(parts) == 1 and _is_data(parts[0]):
        return parts[0]
    found: Any = np.arange(prod(sizes)).reshape(sizes)[tuple(_at_zero(parts))]
    axis = 0
    for i, part in enumerate(parts):
        if _is_data(part):
            repeated = _repeated(parts, i, sizes, axis, first + axis)
            found = flat_index(found, repeated, sizes[axis], prod(sizes[axis + 1 :]), first + axis)
        axis += _taken_axes(part)
    return found


MATRIX = np.array([[0, 2], [1, -1]])
MASK = np.array([[True, False, True], [False, False, True]])
INDICES: list[tuple[Sizes, Any]] = [
    ((3, 4), ([2, 0, 2], [1, -1, 1])),
    ((2, 3, 4), (slice(None), MATRIX, slice(None, None, 2))),
    ((2, 3, 4), (MATRIX[0] - 1, ..., np.array([[3], [0], [1]]))),
    ((4, 2, 3), (slice(None, 0, -1), MASK)),
    ((3, 2, 5), (0, slice(None), [1, 1])),
    ((2, 3, 2, 2), (slice(None), [0, 2], slice(None), [1, 0])),
    ((2, 3, 2), (slice(None), [1], ..., [1, 0])),
    ((2, 3, 2), (..., None, MASK[0], [0, 1])),
    ((2, 3), np.zeros((0, 2), np.int64)),
]  # fmt: skip
"""Arrays that broadcast, that stand apart, masks, new axes; numbers beside arrays; no indices."""


def _reference(x: Array, index: Any) -> Array:
    return np.asarray(x[index])


@composed(
    reference=_reference,
    samples=lambda make: [
        *(Sample((make(*shape),), {"index": index}) for shape, index in INDICES),
        Sample((np.arange(6).reshape(2, 3),), {"index": MASK}),
    ],
    errors=(
        bad(
            BoundsError,
            "index: argument 'index': expected -3 to 2 on axis 1, got 3 at position 1",
            (2, 3),
            index=(0, [0, 3, -4]),
        ),
        bad(BoundsError, "expected -2 to 1 on axis 0, got -3", (2, 3), index=(-3, [0])),
        bad(
            ShapeError,
            "index: argument 'index': expected a mask of shape (3,) from axis 1 on, got (2,)",
            (2, 3),
            index=(0, np.array([True, False])),
        ),
        bad(
            ShapeError,
            "index: argument 'index': expected arrays of indices whose shapes broadcast, got (2,), (3,)",
            (2, 3),
            index=([0, 1], [0, 1, 2]),
        ),
        bad(ShapeError, "expected at most 1 axes and one ..., got 2 axes", (2,), index=([0], 0)),
        bad(
            DTypeError,
            "index: argument 'index': expected whole numbers, slices, ..., None, arrays of int64 or masks, got float64",
            (2,),
            index=[0.5],
        ),
        bad(DTypeError, "arrays of int64 or masks, got str", (2,), index=([0], "a")),
        bad(ShapeError, "expected slices of whole numbers with a step other than 0", (2, 3), index=([0], slice(0.5))),
    ),
    excused={"batch": "the index may select from the batch"},
)
def index(x: Gradual[D], index: Any) -> Gradual[D]:
    """``x[index]`` with arrays of indices and masks, mixed with all that `getitem` takes, by the rules of numpy.

    Arrays are broadcast together, and their axes stand where theirs did, or first if they stood apart; they may be
    Vars of int64. A mask is an array of numpy: with its values unknown the shape of the result would be. Indices may
    repeat, and their gradients are added in ascending position of the result.

    Source: advanced indexing of numpy.
    Shapes: x (...) -> (...); as numpy's ``x[index]`` of the same index

    >>> from dgrr.tape import Tape
    >>> x = Tape().leaf([[1.0, 2.0], [3.0, 4.0]])
    >>> x[[1, 0], [0, 0]].numpy(), x[np.array([[True, False], [True, True]])].numpy()
    (array([3., 1.]), array([1., 3., 4.]))
    """
    (x,) = fitted("index", x)
    shape = shape_of(x)
    parts = _each_axis(shape, index)
    if not any(map(_is_array, parts)):
        return getitem(x, tuple(parts))
    _require_broadcast(parts)
    front, end = _kept(parts)
    parts = parts[front : len(parts) - end]
    stop = len(shape) - end
    sizes = shape[front:stop]
    positions = _positions(parts, sizes, front)
    rows = x if len(sizes) == 1 else reshape(x, (*shape[:front], prod(sizes), *shape[stop:]))
    return take(rows, positions, front)
