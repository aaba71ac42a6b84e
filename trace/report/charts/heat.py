"""The map of magnitudes: params downwards, steps to the right, a colour for each power of ten, and marks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import BasicTicker, FixedTicker, LinearColorMapper, LogColorMapper, NoOverlap, Range1d
from bokeh.models.annotations import ColorBar
from bokeh.palettes import viridis

from ....base.arrays import Array
from .plots import CHOSEN, item, plot, shade

MOST_BINS = 1000
"""Columns of the picture: of a longer run several steps share one, of which the greatest counts."""

ZERO, BROKEN, OTHER, FIRST = 1, 2, 3, 4
"""Places in the palette of what is no magnitude; 0 is nothing."""

_COLOURS = ("#00000000", "#46464a", "#9e1b32", "#e69f00", *viridis(252))
_SHAPES = {"dead": "circle", "exploding": "triangle", "broken": "x", "differs": "asterisk"}
_NOISE = 1e-6
"""A row whose median is so little beside that of all rows is zero but for rounding: it takes no part in the scale."""


_SAME = FIRST + 60
_AROUND = 108
"""Pixels for the tools above, the steps and the scale below."""


class Marks(NamedTuple):
    """Which cells, steps × params, have a mark, and which are known at all."""

    known: Array
    dead: Array
    exploding: Array
    broken: Array
    differs: Array


def marks(magnitudes: Array, exploding: Array | None = None) -> Marks:
    """Those of magnitudes; `exploding` is from where on they are, by param."""
    nothing = np.zeros(magnitudes.shape, bool)
    wild = nothing if exploding is None else np.isfinite(magnitudes) & (magnitudes >= exploding)
    dead = nothing if exploding is None else magnitudes == 0
    return Marks(~np.isnan(magnitudes), dead, wild, np.isinf(magnitudes), nothing)


def differing(known: Array, differs: Array) -> Marks:
    """Those of a run beside the first."""
    nothing = np.zeros(differs.shape, bool)
    return Marks(known, nothing, nothing, nothing, differs)


def scale(magnitudes: Array) -> tuple[float, float]:
    """From where to where the colours go: the 2nd and the 98th percentile of what is neither zero nor rounding.

    >>> rows = np.array([[1.0, 1e-18, 0.0], [10.0, 3e-18, 0.0], [100.0, 2e-18, np.nan]])
    >>> low, high = scale(rows)
    >>> 1 <= low < 2, 50 < high <= 100
    (True, True)
    """
    known = np.where((magnitudes > 0) & np.isfinite(magnitudes), magnitudes, np.nan)
    rows = [row[~np.isnan(row)] for row in known.T]
    rows = [np.log10(row) for row in rows if row.size]
    if not rows:
        return 0.1, 10.0
    medians = np.array([np.median(row) for row in rows])
    least = np.median(medians) + np.log10(_NOISE)
    kept = np.concatenate([row for row, median in zip(rows, medians, strict=True) if median >= least])
    low, high = np.percentile(kept, [2, 98])
    middle = (low + high) / 2
    low, high = min(low, middle - 0.5), max(high, middle + 0.5)
    return float(10.0**low), float(10.0**high)


def bins(columns: Sequence[int], steps: int) -> Array:
    """The bin of each column: bins of as many steps each, and no more of them than there are columns."""
    count = max(1, min(len(columns), MOST_BINS, steps))
    return np.minimum(np.array(columns, np.int64) * count // max(steps, 1), count - 1)


class Cells(NamedTuple):
    """What is known of a run, steps × params: the steps are `columns`, of so many; `magnitudes` or what differs."""

    columns: Sequence[int]
    steps: int
    params: Sequence[str]
    magnitudes: Array | None
    marks: Marks


def heat(cells: Cells, wide: int, parting: int | None) -> dict[str, Any]:
    """A map as the page has it, as wide as so many steps."""
    rows = len(cells.params)
    x_range, y_range = Range1d(start=0, end=max(wide, 1), bounds="auto"), Range1d(start=rows, end=0)
    made = plot(_height(rows) + _AROUND, x_range=x_range, y_range=y_range)
    ends = None if cells.magnitudes is None else scale(cells.magnitudes)
    colours = LinearColorMapper(palette=_COLOURS, low=0, high=256)
    made.image([picture(cells, ends)], x=0, y=0, dw=max(cells.steps, 1), dh=rows, color_mapper=colours)
    for kind, shape in _SHAPES.items():
        _mark(made, pooled(getattr(cells.marks, kind), bins(cells.columns, cells.steps)), cells.steps, shape)
    shade(made, parting, told=False)
    _name(made, cells.params)
    if ends is not None:
        bar = LogColorMapper(palette=viridis(252), low=ends[0], high=ends[1])
        made.add_layout(
            ColorBar(color_mapper=bar, height=10, width=220, margin=0, padding=8, major_label_text_color=CHOSEN),
            "below",
        )
    return {"item": item(made), "scale": ends}


def picture(cells: Cells, ends: tuple[float, float] | None) -> Array:
    """Params × bins: places in the palette."""
    place, found = bins(cells.columns, cells.steps), cells.marks
    made = pooled(_codes(cells.magnitudes, found, ends), place)
    made[pooled(found.broken, place)] = BROKEN
    made[pooled(found.differs, place)] = OTHER
    columns: int = made.shape[1]
    for k in np.setdiff1d(np.arange(columns), place):  # steps are apart unevenly, and none is of this bin
        made[:, k] = made[:, k - 1]
    return made


def _codes(magnitudes: Array | None, found: Marks, ends: tuple[float, float] | None) -> Array:
    if magnitudes is None or ends is None:
        return np.where(found.known, _SAME, 0).astype(np.uint8)
    codes = np.zeros(magnitudes.shape, np.uint8)
    there = (magnitudes > 0) & np.isfinite(magnitudes)
    low, high = np.log10(ends)
    share = (np.log10(magnitudes[there]) - low) / (high - low)
    codes[there] = FIRST + np.rint(np.clip(share, 0, 1) * 251).astype(np.uint8)
    codes[magnitudes == 0] = ZERO
    return codes


def pooled(cells: Array, place: Array) -> Array:
    """Params × bins: the greatest of the steps that share a bin."""
    found = np.zeros((cells.shape[1], int(place[-1]) + 1 if place.size else 1), cells.dtype)
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    if begins.size:
        found[:, place[begins]] = np.maximum.reduceat(cells, begins, axis=0).T
    return found


def _mark(made: Any, cells: Array, steps: int, shape: str) -> None:
    """Marks, white in black so that they stand out from every colour, and no nearer than they can be told apart."""
    least = max(1, cells.shape[1] // 60)
    xs, ys = list[float](), list[float]()
    for row, marked in enumerate(cells):
        before = -least
        for bin_ in np.flatnonzero(marked).tolist():
            if bin_ - before >= least:
                xs.append((bin_ + 0.5) * steps / cells.shape[1])
                ys.append(row + 0.5)
                before = bin_
    if not xs:
        return
    size = min(max(_height(cells.shape[0]) / cells.shape[0] - 6, 5), 9)
    for colour, width in (("black", 4), ("white", 1.8)):
        made.scatter(xs, ys, marker=shape, size=size, line_color=colour, line_width=width, fill_color=None)


def _height(rows: int) -> int:
    return rows * min(max(560 // max(rows, 1), 4 if rows <= 3000 else 1), 22)


def _name(made: Any, params: Sequence[str]) -> None:
    """The names of the rows, as many as there is room for."""
    axis = made.yaxis[0]
    axis.ticker = FixedTicker(ticks=[i + 0.5 for i in range(len(params))])
    axis.major_label_overrides = {i + 0.5: _short(name) for i, name in enumerate(params)}
    axis.major_label_policy = NoOverlap()
    made.xaxis[0].ticker = BasicTicker(min_interval=1)
    made.grid.visible = False


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"…{name[-most + 1 :]}"
