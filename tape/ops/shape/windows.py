"""Windows that slide over the last axes: their cells as columns, and columns added back."""

from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import D, F
from ...values.per_axis import PerAxis, per_axis
from ...var.var import Gradual
from ..indices.take import scatter_add, take
from .padding import pad
from .reshape import reshape
from .slicing import getitem


class SlidingWindows:
    """Where windows of some sizes lie in planes of others."""

    def __init__(self, name: str, sizes: Sizes, kernel: Sizes, dilation: Any, padding: Any, stride: Any) -> None:
        """Raises DomainError for numbers that no window has, ShapeError for planes smaller than a window."""
        rank = len(kernel)
        self.kernel = _numbers(name, "kernel_size", kernel, rank, 1)
        self.dilation = _numbers(name, "dilation", dilation, rank, 1)
        self.padding = _numbers(name, "padding", padding, rank, 0)
        self.stride = _numbers(name, "stride", stride, rank, 1)
        self.padded = tuple(n + 2 * p for n, p in zip(sizes, self.padding, strict=True))
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        self.counts = tuple((n - r) // s + 1 for n, r, s in zip(self.padded, reach, self.stride, strict=True))
        if min(self.counts) < 1:
            raise ShapeError(
                f"{name}: argument 'kernel_size': expected windows inside {self.padded}, the padded planes, "
                f"got windows over {tuple(reach)}"
            )

    @property
    def cells(self) -> Any:
        """For each cell of the kernel and each window its position in a padded plane, in row-major order."""
        found = np.zeros((1, 1), np.int64)
        for n, k, d, s, count in zip(self.padded, self.kernel, self.dilation, self.stride, self.counts, strict=True):
            along = np.arange(k)[:, None] * d + np.arange(count) * s
            found = (found[:, None, :, None] * n + along[None, :, None, :]).reshape(len(found) * k, -1)
        return found

    @property
    def inside(self) -> tuple[Any, ...]:
        """The planes without their padding, as an index."""
        return (..., *(slice(p, n - p) for p, n in zip(self.padding, self.padded, strict=True)))


def _numbers(name: str, argument: str, given: Any, axes: int, least: int) -> Sizes:
    numbers = per_axis(given, axes, least) if axes else None
    if numbers is None:
        raise DomainError(
            f"{name}: argument {argument!r}: expected at least {least} for each of {max(axes, 1)} axes, got {given}"
        )
    return numbers


def _unfolding(x: Any, kernel_size: Sizes, dilation: PerAxis, padding: PerAxis, stride: PerAxis) -> SlidingWindows:
    rank = len(kernel_size)
    if len(x.shape) <= rank:
        raise ShapeError(
            f"unfold: argument 'x': expected channels and {rank} axes as 'kernel_size' has, got {tuple(x.shape)}"
        )
    sizes = tuple(x.shape)[len(x.shape) - rank :]
    return SlidingWindows("unfold", sizes, kernel_size, dilation, padding, stride)


def _reference_unfold(
    x: Array, kernel_size: Sizes, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1
) -> Array:
    windows = _unfolding(x, kernel_size, dilation, padding, stride)
    rank = len(kernel_size)
    before = x.ndim - rank
    padded = np.pad(x, [(0, 0)] * before + [(p, p) for p in windows.padding])
    columns: list[Array] = []
    for window in np.ndindex(*windows.counts):
        starts = [o * s for o, s in zip(window, windows.stride, strict=True)]
        part: Any = (..., *(slice(a, a + d * (k - 1) + 1, d) for a, d, k in
                            zip(starts, windows.dilation, windows.kernel, strict=True)))  # fmt: skip
        columns.append(padded[part].reshape((*x.shape[: before - 1], x.shape[before - 1] * prod(kernel_size))))
    return np.stack(columns, -1)


def _unfolds(make: Make) -> list[Sample]:
    return [
        Sample((make(2, 3, 4, 5),), {"kernel_size": (2, 3)}),
        Sample((make(2, 5, 6),), {"kernel_size": (2, 2), "dilation": (2, 1), "padding": (1, 0), "stride": (2, 3)}),
        Sample((make(2, 1, 7),), {"kernel_size": (3,), "padding": 1, "stride": 2}),
        Sample((make(0, 2, 3, 3),), {"kernel_size": (3, 3)}),
    ]


def _refused(name: str, *arrays: Any, **attrs: Any) -> tuple[Any, ...]:
    """What both refuse of the numbers of windows."""
    text = f"{name}: argument {{}}".format
    return (
        bad(DomainError, text("'kernel_size': expected at least 1 for each of 1 axes, got ()"), *arrays,
            **{**dict.fromkeys(attrs, ()), "kernel_size": ()}),
        bad(DomainError, text("'stride': expected at least 1 for each of 2 axes, got 0"), *arrays,
            **{**attrs, "kernel_size": (2, 2), "stride": 0}),
        bad(DomainError, text("'padding': expected at least 0 for each of 2 axes, got (1, 1, 1)"), *arrays,
            **{**attrs, "kernel_size": (2, 2), "padding": (1, 1, 1)}),
        bad(
            ShapeError,
            text("'kernel_size': expected windows inside (3, 3), the padded planes, got windows over (2, 5)"),
            *arrays,
            **{**attrs, "kernel_size": (2, 3), "dilation": (1, 2)},
        ),
    )  # fmt: skip


@composed(
    reference=_reference_unfold,
    samples=_unfolds,
    errors=(
        *_refused("unfold", (2, 3, 3)),
        bad(
            ShapeError,
            "unfold: argument 'x': expected channels and 2 axes as 'kernel_size' has, got (3, 3)",
            (3, 3),
            kernel_size=(2, 2),
        ),
    ),
    excused={"batch": "where the batch stands depends on how many axes the windows have"},
)
def unfold(
    x: Gradual[D], kernel_size: tuple[int, ...], dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1
) -> Gradual[D]:
    """The cells of windows that slide along the last axes, a column for each window.

    A column has, for each channel, the cells of its window in row-major order; cells of the padding are 0.

    Source: torch.nn.functional.unfold, for any number of axes.
    Shapes: x (*Bs, C, *spatial) -> (*Bs, n, windows); n is C times the cells of a window, and both windows and cells
        stand in row-major order

    >>> from dgrr.tape import Tape, ops
    >>> ops.unfold(Tape().leaf([[1.0, 2.0, 3.0, 4.0]]), (2,)).numpy()
    array([[1., 2., 3.],
           [2., 3., 4.]])
    """
    (x,) = fitted("unfold", x)
    windows = _unfolding(x, kernel_size, dilation, padding, stride)
    *leading, channels = tuple(x.shape)[: len(x.shape) - len(kernel_size)]
    if any(windows.padding):
        x = pad(x, (*((0, 0),) * (len(leading) + 1), *((p, p) for p in windows.padding)))
    planes = reshape(x, (*leading, channels, prod(windows.padded)))
    cells = windows.cells
    return reshape(take(planes, cells, -1), (*leading, channels * len(cells), cells.shape[1]))


def _folding(
    x: Any, output_size: Sizes, kernel_size: Sizes, dilation: PerAxis, padding: PerAxis, stride: PerAxis
) -> SlidingWindows:
    if len(output_size) != len(kernel_size) or min(output_size, default=0) < 0:
        raise ShapeError(
            f"fold: argument 'output_size': expected {len(kernel_size)} sizes as 'kernel_size' has, got {output_size}"
        )
    windows = SlidingWindows("fold", output_size, kernel_size, dilation, padding, stride)
    count, cells = prod(windows.counts), prod(kernel_size)
    shape = tuple(x.shape)
    if len(shape) < 2 or shape[-1] != count or shape[-2] % cells:
        raise ShapeError(
            f"fold: argument 'x': expected shape (*Bs, n, {count}), n a multiple of the {cells} cells of a window, "
            f"got {shape}"
        )
    return windows


def _reference_fold(
    x: Array,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
) -> Array:
    windows = _folding(x, output_size, kernel_size, dilation, padding, stride)
    cells = windows.cells
    *leading, rows, count = x.shape
    values = x.reshape((*leading, rows // len(cells), len(cells), count))
    out = np.zeros((*values.shape[:-2], prod(windows.padded)), x.dtype)
    for cell, window in np.ndindex(*cells.shape):
        out[..., cells[cell, window]] = out[..., cells[cell, window]] + values[..., cell, window]
    return np.asarray(out.reshape((*values.shape[:-2], *windows.padded))[windows.inside])


@composed(
    reference=_reference_fold,
    samples=lambda make: [
        Sample((make(2, 12, 6),), {"output_size": (4, 3), "kernel_size": (2, 2)}),
        Sample(
            (make(8, 9),),
            {"output_size": (5, 6), "kernel_size": (2, 2), "dilation": (2, 1), "padding": (1, 0), "stride": (2, 2)},
        ),
        Sample((make(3, 4),), {"output_size": (7,), "kernel_size": (3,), "padding": 1, "stride": 2}),
    ],
    errors=(
        *_refused("fold", (4, 4), output_size=(3, 3)),
        bad(
            ShapeError,
            "fold: argument 'output_size': expected 2 sizes as 'kernel_size' has, got (3,)",
            (4, 4),
            output_size=(3,),
            kernel_size=(2, 2),
        ),
        bad(
            ShapeError,
            "fold: argument 'x': expected shape (*Bs, n, 4), n a multiple of the 4 cells of a window, got (5, 4)",
            (5, 4),
            output_size=(3, 3),
            kernel_size=(2, 2),
        ),
    ),
    excused={"batch": "where the batch stands depends on how many axes there are"},
)
def fold(
    x: Gradual[F],
    output_size: tuple[int, ...],
    kernel_size: tuple[int, ...],
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
) -> Gradual[F]:
    """Columns, as `unfold` makes them, added at the cells of their windows, in planes of ``output_size``.

    A cell adds what it gets in the order of the kernel's cells, and for one of them in that of the windows, from +0.
    What falls on the padding is left out.

    Source: torch.nn.functional.fold, for any number of axes.
    Shapes: x (*Bs, n, windows) -> (*Bs, C, *output_size); n is C times the cells of a window

    >>> from dgrr.tape import Tape, ops
    >>> ops.fold(Tape().leaf([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]), (4,), (2,)).numpy()
    array([[1., 4., 6., 4.]])
    """
    (x,) = fitted("fold", x)
    windows = _folding(x, output_size, kernel_size, dilation, padding, stride)
    cells = windows.cells
    *leading, rows, count = tuple(x.shape)
    channels = rows // len(cells)
    values = reshape(x, (*leading, channels, len(cells), count))
    planes = scatter_add(values, cells, prod(windows.padded), -1)
    return getitem(reshape(planes, (*leading, channels, *windows.padded)), windows.inside)
