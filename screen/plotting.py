"""Plots with matplotlib, which comes with the extra ``dgrr[plot]``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.packages import package
from .curves import Scale

LOOKED_AT = 60
"""Points that may be named."""

_LETTER, _LINE = 0.0095, 0.05
"""About how wide a letter of a name is, and how high, as shares of the axes."""

SMOOTHED = 200
"""From how many values on a curve has its running mean beside it."""


def axes(call: str, ax: Any = None) -> Any:
    """Axes to draw on: those that are given, or new ones.

    Raises ModuleNotFoundError where matplotlib is not installed.
    """
    if ax is not None:
        return ax
    pyplot = package(call, "matplotlib.pyplot")
    return pyplot.subplots(figsize=(7, 3.5), layout="constrained")[1]


def curve(call: str, values: npt.ArrayLike, ax: Any = None, *, first: int = 0, label: str = "loss") -> Any:
    """The values of steps; a long curve is pale beside its running mean, what is not finite is marked below it."""
    ax, y = axes(call, ax), np.asarray(values, np.float64)
    steps = np.arange(first, first + y.size)
    long = y.size >= SMOOTHED
    shown = {"linewidth": 0.8, "alpha": 0.35} if long else {}
    (line,) = ax.plot(steps, np.where(np.isfinite(y), y, np.nan), label=label, **shown)
    if long:
        ax.plot(steps, running_mean(y), color=line.get_color(), label=f"{label}, mean of {_window(y.size)} steps")
    if Scale.of(y.tolist()).logarithmic:
        ax.set_yscale("log")
    if (lost := ~np.isfinite(y)).any():
        bottom = ax.get_xaxis_transform()
        ax.plot(steps[lost], np.zeros(lost.sum()), "kx", transform=bottom, clip_on=False, label="not finite")
    ax.set_xlabel("step")
    ax.set_ylabel(label)
    return ax


class Norm(NamedTuple):
    """A point of a plot of norms: where it stands, NaN for what is not finite, and what it is called."""

    id: int
    value: float
    kind: str
    """"ops" or "leaves"."""
    name: str


def norms(call: str, points: Sequence[Norm], ax: Any = None) -> Any:
    """Points on a logarithmic scale by their kind; zeros, and what is not finite, stand on the lower edge.

    As many are named as there is room for: those on the edge first, then leaves, then the greatest.
    """
    ids, values = [point.id for point in points], [point.value for point in points]
    ax, x, y = axes(call, ax), np.asarray(ids), np.asarray(values, np.float64)
    bad, edge = np.isnan(y), ax.get_xaxis_transform()
    if (y > 0).any():
        ax.set_yscale("log")
    for kind, marker in (("ops", "."), ("leaves", "o")):
        own = np.asarray([point.kind == kind for point in points], np.bool_) & (y > 0) & ~bad
        ax.plot(x[own], y[own], marker, label=kind)
    for what, marker, marked in (("zero", "v", (y == 0) & ~bad), ("not finite", "kx", bad)):
        if marked.any():
            ax.plot(x[marked], np.zeros(marked.sum()), marker, transform=edge, clip_on=False, label=what)
    ax.set_xlabel("node")
    ax.set_ylabel("gradient norm")
    ax.legend()
    ax.margins(y=0.1)
    _name(ax, points)
    return ax


def _name(ax: Any, points: Sequence[Norm]) -> None:
    """Names above their points, none over another."""
    taken = list[tuple[float, float, float]]()
    _, low = ax.get_xlim(), ax.get_ylim()[0]  # which also sets the scales that the next line takes
    to_axes = ax.transData + ax.transAxes.inverted()
    for point in sorted(points, key=_rank)[:LOOKED_AT]:
        on_edge = not point.value > 0  # NaN is not above zero either
        x, y = to_axes.transform((point.id, low if on_edge else point.value))
        side, begin, end = _beside(x, _LETTER * len(point.name))
        if all(end < first or last < begin or abs(y - height) >= _LINE for first, last, height in taken):
            taken.append((begin, end, y))
            where = {"xy": (point.id, 0), "xycoords": ax.get_xaxis_transform()} if on_edge else {}
            where = {"xy": (point.id, point.value)} | where
            ax.annotate(point.name, xytext=(0, 5), textcoords="offset points", ha=side, fontsize=7, **where)


def _beside(x: float, width: float) -> tuple[str, float, float]:
    """How a name stands at its point so that it ends inside the axes, and from where to where."""
    if x < width / 2:
        return "left", x, x + width
    return ("right", x - width, x) if x > 1 - width / 2 else ("center", x - width / 2, x + width / 2)


def _rank(point: Norm) -> tuple[int, float]:
    """What is named first: not finite, zero, leaves, the greatest norm."""
    if not point.value > 0:
        return (1 if point.value == 0 else 0, point.id)
    return (2, point.id) if point.kind == "leaves" else (3, -point.value)


def running_mean(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of each value and those before it in a window, the mean of the finite ones; NaN where there is none."""
    window, known = _window(y.size), np.isfinite(y)
    ones, sums = np.ones(window), np.where(known, y, 0.0)
    counts = np.convolve(known.astype(np.float64), ones)[: y.size]
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, np.convolve(sums, ones)[: y.size] / np.maximum(counts, 1), np.nan)


def _window(size: int) -> int:
    return max(size // 50, 2)
