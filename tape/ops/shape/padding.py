"""Arrays between borders: of one value, or of their own elements; and without their outer elements."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, DTypeError, ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import one_of
from ...record.lowering import Slot, call, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import D, like
from ...values.spec import Spec
from ...values.tensor import INT64
from ...var.var import Gradual
from ..indices.take import scatter_add
from . import kernels
from .slicing import getitem, place

Widths = int | tuple[tuple[int, int], ...]
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _borders(shape: Sizes, widths: Any) -> list[tuple[int, int]]:
    """Elements before and after on each axis, negative ones to be cut off. Raises ShapeError."""
    pairs: Any = ((widths, widths),) * len(shape) if isinstance(widths, int) else widths
    if len(pairs) != len(shape) or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(
            f"pad: argument 'widths': expected a whole number, or (before, after) for each of {len(shape)} axes, "
            f"got {widths}"
        )
    for n, (before, after) in zip(shape, pairs, strict=True):
        if max(-before, 0) + max(-after, 0) > n:
            raise ShapeError(
                f"pad: argument 'widths': expected to cut off at most the {n} elements of an axis, got {widths}"
            )
    return list(pairs)


def _padded(x: Spec, widths: Any, value: Any, mode: str) -> Spec:
    if not isinstance(value, int if x.dtype.kind in "ib" else int | float):
        raise DTypeError(f"pad: argument 'value': expected a value of {x.dtype}, got {value!r}")
    if x.dtype.kind == "i" and not -INT64 <= value < INT64:
        raise DomainError(f"pad: argument 'value': expected a value of {x.dtype}, got {value!r}")
    borders = _borders(x.shape, widths)
    if mode != "constant" and any(_nothing(n, pair, mode) for n, pair in zip(x.shape, borders, strict=True)):
        raise ShapeError(
            f"pad: argument 'x': expected elements to repeat on every axis that grows, got shape {x.shape}"
        )
    return like(x, tuple(before + n + after for n, (before, after) in zip(x.shape, borders, strict=True)))


def _nothing(n: int, pair: tuple[int, int], mode: str) -> bool:
    """Whether an axis grows that has no elements, or for "wrap" keeps none."""
    left = len(range(n)[_uncut(n, pair)]) if mode == "wrap" else n
    return left == 0 < max(pair)


def sources(n: int, before: int, after: int, mode: str) -> list[int]:
    """The element of an axis of ``n`` that stands at each place between its borders; what is cut off does not wrap.

    >>> sources(3, 2, 2, "reflect"), sources(3, 2, -1, "wrap")
    ([2, 1, 0, 1, 2, 1, 0], [0, 1, 0, 1])
    """
    places = range(-before, n + after)
    if mode == "wrap":
        kept = range(n)[_uncut(n, (before, after))]
        return [kept[(i - kept.start) % len(kept)] for i in places]
    if mode == "edge":
        return [min(max(i, 0), n - 1) for i in places]
    period = 2 * n if mode == "symmetric" else max(2 * n - 2, 1)
    last = 2 * n - 1 if mode == "symmetric" else 2 * n - 2  # what i and last - i have in common
    return [i % period if i % period < n else last - i % period for i in places]


def _lower_pad(x: Slot, widths: Any, value: float, mode: str) -> Slot:
    borders = _borders(x.shape, widths)
    return _lower_value(x, borders, value) if mode == "constant" else _lower_own(x, borders, mode)


def _lower_own(x: Slot, borders: Sequence[tuple[int, int]], mode: str) -> Slot:
    """One axis after the other, the last first, so that what is copied often is small."""
    for axis, pair in reversed(list(enumerate(borders))):
        if any(pair):
            taken = sources(x.shape[axis], *pair, mode)
            shape, inner = (*x.shape[:axis], len(taken), *x.shape[axis + 1 :]), prod(x.shape[axis + 1 :])
            ints = (prod(x.shape[:axis]), len(taken), x.shape[axis], inner)
            x = call(kernels.repeat, [x], shape, *ints, *taken)
    return x


def _lower_value(x: Slot, borders: Sequence[tuple[int, int]], value: float) -> Slot:
    """What is cut off first, then one axis after the other as in `_lower_own`."""
    kept = _kept(x.shape, borders)
    if any(min(pair) < 0 for pair in borders):
        x = view("getitem", x, tuple(part.stop - part.start for part in kept), lambda a: a[kept])
    floats = x.dtype.kind == "f"
    kernel = kernels.pad if floats else kernels.pad_whole
    given = float(value) if floats else int(value) if x.dtype.kind == "i" else int(value != 0)
    for axis, pair in reversed(list(enumerate(borders))):
        before, after = max(pair[0], 0), max(pair[1], 0)
        if before or after:
            n, inner = x.shape[axis], prod(x.shape[axis + 1 :])
            shape = (*x.shape[:axis], before + n + after, *x.shape[axis + 1 :])
            ints = (prod(x.shape[:axis]), before * inner, n * inner, after * inner, given)
            x = call(kernel, [x], shape, *ints)
    return x


def _kept(x_shape: Sizes, borders: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """The part of x that is not cut off."""
    return tuple(_uncut(n, pair) for n, pair in zip(x_shape, borders, strict=True))


def _uncut(n: int, pair: tuple[int, int]) -> slice:
    return slice(max(-pair[0], 0), n - max(-pair[1], 0))


def _pad_vjp(g: Any, x_shape: Sizes, widths: Any, mode: str) -> Any:
    borders = _borders(x_shape, widths)
    if mode == "constant":
        return _inside(g, x_shape, borders)
    for axis, (n, pair) in enumerate(zip(x_shape, borders, strict=True)):
        if any(pair):
            places: Any = np.array(sources(n, *pair, mode), np.int64)
            g = scatter_add(g, places, n, axis)
    return g


def _inside(g: Any, x_shape: Sizes, borders: Sequence[tuple[int, int]]) -> Any:
    """The elements of ``g`` that came from x, in their places."""
    kept = _kept(x_shape, borders)
    starts = [max(before, 0) for before, _ in borders]
    found = tuple(slice(start, start + part.stop - part.start) for start, part in zip(starts, kept, strict=True))
    part = getitem(g, found)
    return place(part, x_shape, kept) if any(min(pair) < 0 for pair in borders) else part


def _reference_pad(x: Any, widths: Any, value: Any = 0, mode: str = "constant") -> Any:
    """numpy's pad, cut to what negative widths leave: "wrap", which repeats that alone, before it is padded."""
    if not x.ndim:
        return x
    pairs = [(widths, widths)] * x.ndim if isinstance(widths, int) else widths
    grown: Any = np.pad
    if mode == "wrap":
        x = x[tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, pairs, strict=True)])]
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    wide = grown(x, [(max(a, 0), max(b, 0)) for a, b in pairs], mode, **_values(x, value, mode))
    return wide[tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(wide.shape, pairs, strict=True)])]


def _values(x: Array, value: Any, mode: str) -> dict[str, Any]:
    return {"constant_values": x.dtype.type(value)} if mode == "constant" else {}


def _pads(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Widths, float], ...] = (
        ((3,), 2, 0.0), ((2, 3), ((1, 0), (0, 2)), -0.0), ((2, 2, 3), ((0, 0), (1, 2), (3, 0)), 0.1), ((), 3, 1.0),
        ((0, 2), ((1, 1), (0, 1)), np.nan), ((2, 3), 0, 1.0), ((3, 40), ((0, 0), (1, 1)), -np.inf),
    )  # fmt: skip
    plain = [Sample((make(*shape),), {"widths": widths, "value": value}) for shape, widths, value in cases]
    whole = Sample((np.arange(6).reshape(2, 3),), {"widths": ((1, 0), (0, 1)), "value": -(2**53) - 1})
    return [*plain, whole, Sample((make.mask(3),), {"widths": 1, "value": True}), *_own(make)]


def _own(make: Make) -> list[Sample]:
    """Every mode: on several axes, wider than x, on an axis of one element, cut at one end, of whole numbers."""
    cases: tuple[tuple[Sizes, Widths, str], ...] = (
        ((2, 3, 4), ((0, 0), (1, 2), (2, 1)), "edge"), ((3, 4), ((2, 1), (-1, 3)), "reflect"), ((1, 3), 3, "reflect"),
        ((2, 3), ((1, 2), (0, 7)), "symmetric"), ((3, 2), ((2, -2), (1, 5)), "wrap"), ((5,), -1, "edge"),
        ((4, 3), ((-1, 2), (1, -2)), "constant"), ((0, 2), ((0, 0), (1, 1)), "wrap"),
    )  # fmt: skip
    made = [Sample((make(*shape),), {"widths": widths, "mode": mode}) for shape, widths, mode in cases]
    return [*made, Sample((np.arange(4),), {"widths": 2, "mode": "symmetric"})]


@op(
    infer=_padded,
    lower=_lower_pad,
    vjp=(_pad_vjp,),
    jvp=lambda dx, widths, mode: pad(dx, widths, mode=mode),
    reference=_reference_pad,
    samples=_pads,
    errors=(
        bad(
            ShapeError,
            "pad: argument 'widths': expected a whole number, or (before, after) for each of 2 axes, got ((1, 1),)",
            (2, 3),
            widths=((1, 1),),
        ),
        bad(
            ShapeError, "expected to cut off at most the 2 elements of an axis, got ((1, -3),)", (2,), widths=((1, -3),)
        ),
        bad(ShapeError, "expected to cut off at most the 3 elements of an axis, got -2", (3,), widths=-2),
        bad(ShapeError, "for each of 1 axes, got ((1, 2, 3),)", (2,), widths=((1, 2, 3),)),
        bad(DTypeError, "pad: argument 'value': expected a value of int64, got 0.5", np.arange(3), widths=1, value=0.5),
        bad(
            ShapeError,
            "pad: argument 'x': expected elements to repeat on every axis that grows, got shape (2,)",
            (2,),
            widths=((-2, 1),),
            mode="wrap",
        ),
        bad(
            ShapeError,
            "pad: argument 'x': expected elements to repeat on every axis that grows, got shape (2, 0)",
            (2, 0),
            widths=1,
            mode="edge",
        ),
    ),
    kinds={"mode": one_of(*MODES)},
    excused={"batch": "the batch may grow"},
    instead={"value": "ops.pad(x - value, widths) + value"},
)
def pad(x: Gradual[D], widths: Widths, value: float | bool = 0, mode: str = "constant") -> Gradual[D]:
    """``x`` between borders: so many elements on all sides, or (before, after) for each axis; negative: cut off.

    The mode says what stands in the borders: "constant" the value, "edge" the outermost element, "wrap" the elements of
    the other end, "reflect" and "symmetric" those of this end mirrored, without the outermost and with it; of wide
    borders again and again. What is cut off does not wrap. The gradient adds, along the first axis first, what each
    element was repeated for, in ascending order.

    Source: numpy.pad with these modes, torch.nn.functional.pad for negative borders; PyTorch calls "edge" replicate and
        "wrap" circular.
    Shapes: x (...) -> (...); ``before + size + after`` on each axis

    >>> from dgrr.tape import Tape, ops
    >>> ops.pad(Tape().leaf([1.0, 2.0]), ((1, 2),), value=9.0).numpy()
    array([9., 1., 2., 9., 9.])
    >>> ops.pad(Tape().leaf([1.0, 2.0, 3.0]), ((2, -1),), mode="reflect").numpy()
    array([3., 2., 1., 2.])
    """
    ...
