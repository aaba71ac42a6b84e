"""The living definition of the bits, continued: axes of another size, cell by cell, nothing shared with the kernels."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np

from .....base.arrays import Array
from ....numerics.exact_fma import fma

Cells = list[tuple[int, Fraction]]


def axis_cells(n: int, m: int, scale: float | None, mode: str, align_corners: bool, antialias: bool) -> list[Cells]:
    """The cells that each of ``m`` outputs reads on an axis of ``n``, ascending, with their weights."""
    step = Fraction(n, m) if scale is None else 1 / Fraction(scale)
    if mode == "area":
        windows = [range(floor(Fraction(o * n, m)), ceil(Fraction((o + 1) * n, m))) for o in range(m)]
        return [[(c, Fraction(1, len(window))) for c in window] for window in windows]
    if mode.startswith("nearest"):
        shift = Fraction(int(mode == "nearest-exact"), 2)
        return [[(min(floor((o + shift) * step), n - 1), Fraction(1))] for o in range(m)]
    if align_corners:
        step = Fraction(n - 1, max(m - 1, 1)) if m > 1 else Fraction(0)
    cubic = mode == "bicubic"
    if antialias:
        return [filtered(n, o, step, cubic) for o in range(m)]
    at = [o * step if align_corners else (2 * o + 1) * step / 2 - Fraction(1, 2) for o in range(m)]
    return [around(n, t, cubic) for t in at]


def around(n: int, at: Fraction, cubic: bool) -> Cells:
    """The two or four cells around a position; one outside is the outermost, whose weights are added."""
    held: dict[int, Fraction] = defaultdict(Fraction)
    reach = 2 if cubic else 1
    for c in range(floor(at) - reach + 1, floor(at) + reach + 1):
        t = abs(at - c)
        held[min(max(c, 0), n - 1)] += keys(t, Fraction(-3, 4)) if cubic else 1 - t
    return [(c, weight) for c, weight in sorted(held.items()) if weight]


def filtered(n: int, o: int, step: Fraction, cubic: bool) -> Cells:
    """All cells under a filter around the centre of output ``o``, of the width of an output but no less than a cell."""
    width, centre = max(step, Fraction(1)), (2 * o + 1) * step / 2
    reach = width * (1 + cubic)
    low, high = max(floor(centre - reach + Fraction(1, 2)), 0), min(floor(centre + reach + Fraction(1, 2)), n)
    distances = {c: abs((2 * c + 1 - 2 * centre) / (2 * width)) for c in range(low, high)}
    held = {c: keys(t, Fraction(-1, 2)) if cubic else max(1 - t, Fraction(0)) for c, t in distances.items()}
    return [(c, weight / sum(held.values())) for c, weight in held.items() if weight]


def keys(t: Fraction, a: Fraction) -> Fraction:
    """Keys' cubic of a distance."""
    if t < 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else Fraction(0)


def _cells(axes: list[Cells]) -> list[tuple[tuple[int, Fraction], ...]]:
    return list(product(*axes))


def _read(
    n: Sequence[int], m: Sequence[int], scales: Any, mode: str, align_corners: bool, antialias: bool, dtype: Any
) -> list[tuple[tuple[int, ...], tuple[int, ...], Any]]:
    """Every (output, cell, weight), outputs and their cells in row-major order."""
    factors = scales or [None] * len(n)
    axes = [axis_cells(*given, mode, align_corners, antialias) for given in zip(n, m, factors, strict=True)]
    found: list[tuple[tuple[int, ...], tuple[int, ...], Any]] = []
    for o in np.ndindex(*m):
        for pairs in _cells([axis[i] for axis, i in zip(axes, o, strict=True)]):
            rounded = [dtype.type(float(weight)) for _, weight in pairs]
            found.append((o, tuple([c for c, _ in pairs]), prod(rounded[1:], start=rounded[0])))
    return found


def interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool = False, antialias: bool = False,
) -> Array:  # fmt: skip
    """``fma((Z·V)·H, x, sum)`` over the cells of each output from +0; a nearest cell as it is."""
    rank = len(size or scale_factor)
    first = x.ndim - rank
    source = x.shape[first:]
    target = size or tuple(floor(float(n * s)) for n, s in zip(source, scale_factor, strict=True))
    out: Any = np.zeros((*x.shape[:first], *target), x.dtype)
    for o, c, weight in _read(source, target, scale_factor, mode, align_corners, antialias, x.dtype):
        for plane in np.ndindex(*x.shape[:first]):
            cell = x[plane + c]
            out[plane + o] = cell if mode.startswith("nearest") else fma(weight, cell, out[plane + o])
    return np.asarray(out)


def interpolate_grad(
    g: Any, sizes: Sequence[int], scale_factor: Any, mode: str, align_corners: bool, antialias: bool
) -> Array:
    """``fma((Z·V)·H, g, sum)`` over the outputs that read each cell, ascending, from +0; nearest cells add."""
    first = g.ndim - len(sizes)
    out: Any = np.zeros((*g.shape[:first], *sizes), g.dtype)
    for o, c, weight in _read(sizes, g.shape[first:], scale_factor, mode, align_corners, antialias, g.dtype):
        for plane in np.ndindex(*g.shape[:first]):
            given, held = g[plane + o], out[plane + c]
            out[plane + c] = held + given if mode.startswith("nearest") else fma(weight, given, held)
    return np.asarray(out)
