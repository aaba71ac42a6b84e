"""The living definition of the bits, continued: planes read at the places of a grid, one place at a time."""

from fractions import Fraction
from functools import reduce
from itertools import product
from math import floor
from operator import mul
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference import sums as reference_sums


def grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Array:
    """The sum, rows of cells first, of ``(V·H)·x`` over the cells around each place, from +0."""
    return sampled(x, grid, mode, padding_mode, align_corners, 2)


def grid_sample3d(
    x: Any, grid: Any, mode: str = "trilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Array:
    """The same of volumes: layers first, and ``((D·V)·H)·x``."""
    return sampled(x, grid, mode, padding_mode, align_corners, 3)


def sampled(x: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool, axes: int) -> Array:
    """The same over so many axes."""
    lead, sizes = x.shape[: -axes - 1], x.shape[-axes:]
    out = np.zeros((*x.shape[:-axes], *grid.shape[-axes - 1 : -1]), x.dtype)
    for at in np.ndindex(*lead, *grid.shape[-axes - 1 : -1]):
        batch, place = at[: len(lead)], at[len(lead) :]
        coordinates = grid[at][::-1]
        read = [taps(c, n, mode, padding_mode, align_corners) for c, n in zip(coordinates, sizes, strict=True)]
        for each in product(*read):
            cell, weight = tuple([i for i, _ in each]), reduce(mul, [w for _, w in each])
            inside = all(0 <= i < n for i, n in zip(cell, sizes, strict=True))
            for c in range(x.shape[-axes - 1]):
                value = x[(*batch, c, *cell)] if inside else x.dtype.type(0)
                out[(*batch, c, *place)] += value if mode == "nearest" else value * weight
    return out


def taps(coordinate: Any, size: int, mode: str, padding_mode: str, align_corners: bool) -> list[tuple[int, Any]]:
    """The cells along one axis and their weights."""
    real = coordinate.dtype.type
    moved = coordinate + real(1)
    x = moved * real((size - 1) / 2) if align_corners else moved * real(size / 2) - real(0.5)
    if mode != "bicubic":
        x = within(x, size, padding_mode, align_corners)
    if mode == "nearest":
        return [(round(float(x)), real(1))]
    below = floor(float(x))
    t = x - real(below)
    if mode != "bicubic":
        return [(below, real(1) - t), (below + 1, t)]
    weights = (far(t + real(1)), near(t), near(real(1) - t), far(real(2) - t))
    cells = [int(within(np.float64(below + i), size, padding_mode, align_corners)) for i in (-1, 0, 1, 2)]
    return list(zip(cells, weights, strict=True))


def within(x: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """A place outside brought to the border, or mirrored at it."""
    real = x.dtype.type
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        low, span = (real(0), size - 1) if align_corners else (real(-0.5), size)
        if not span:
            return real(0)
        distance = abs(x - low)
        turns = int(distance / real(span))
        rest = distance - real(turns) * real(span)
        x = (-rest + real(span) if turns % 2 else rest) + low
    return min(max(x, real(0)), real(size - 1))


def near(d: Any) -> Any:
    """Keys' cubic with A = -3/4 at a distance of at most 1."""
    real = d.dtype.type
    return (d * real(1.25) - real(2.25)) * d * d + real(1)


def far(d: Any) -> Any:
    """And from 1 to 2."""
    real = d.dtype.type
    return ((d * real(-0.75) - real(-3.75)) * d + real(-6)) * d - real(-3)


def affine_grid(theta: Array, size: tuple[int, ...], align_corners: bool = False) -> Array:
    """Each place times the matrix."""
    axes: list[list[float]] = []
    for n in size:
        exact = [Fraction(2 * i - n + 1, max(n - 1, 1) if align_corners else n) for i in range(n)]
        axes.append([float(place) for place in exact])
    base = np.array([(*reversed(place), 1.0) for place in product(*axes)], theta.dtype)
    mapped = reference_sums.matmul(theta, np.ascontiguousarray(base.T))
    return np.swapaxes(mapped, -1, -2).reshape((*theta.shape[:-2], *size, len(size)))
