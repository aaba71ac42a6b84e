"""Plots with matplotlib, which comes with the extra ``dgrr[plot]``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.packages import package
from .curves import Scale

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


def norms(call: str, ids: Sequence[int], values: Sequence[float], kinds: Sequence[str], ax: Any = None) -> Any:
    """Points on a logarithmic scale by their kind; zeros, and NaN for what is not finite, stand on the lower edge."""
    ax, x, y = axes(call, ax), np.asarray(ids), np.asarray(values, np.float64)
    bad, edge = np.isnan(y), ax.get_xaxis_transform()
    if (y > 0).any():
        ax.set_yscale("log")
    for kind, marker in (("ops", "."), ("leaves", "o")):
        own = np.asarray([each == kind for each in kinds], np.bool_) & (y > 0) & ~bad
        ax.plot(x[own], y[own], marker, label=kind)
    for what, marker, marked in (("zero", "v", (y == 0) & ~bad), ("not finite", "kx", bad)):
        if marked.any():
            ax.plot(x[marked], np.zeros(marked.sum()), marker, transform=edge, clip_on=False, label=what)
    ax.set_xlabel("node")
    ax.set_ylabel("gradient norm")
    ax.legend()
    return ax


def running_mean(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of each value and those before it in a window, the mean of the finite ones; NaN where there is none."""
    window, known = _window(y.size), np.isfinite(y)
    ones, sums = np.ones(window), np.where(known, y, 0.0)
    counts = np.convolve(known.astype(np.float64), ones)[: y.size]
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, np.convolve(sums, ones)[: y.size] / np.maximum(counts, 1), np.nan)


def _window(size: int) -> int:
    return max(size // 50, 2)
