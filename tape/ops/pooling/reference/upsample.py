"""The living definition of the bits, continued: upsampling, cell by cell, nothing shared with the kernels."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import numpy as np

from .....base.arrays import Array
from ....numerics.exact_fma import fma


def upsample_nearest(x: Array, size: Sequence[int]) -> Array:
    """The element at ``floor(o·in / out)`` on every axis."""
    first = x.ndim - len(size)
    for axis, n in enumerate(size, first):
        x = x.take([floor(Fraction(o * x.shape[axis], n)) for o in range(n)], axis)
    return x


def upsample_nearest_grad(g: Array, sizes: Sequence[int]) -> Array:
    """Each element of g added where it came from, ascending."""
    first = g.ndim - len(sizes)
    out = np.zeros((*g.shape[:first], *sizes), g.dtype)
    for at in np.ndindex(*g.shape):
        read = zip(at[first:], sizes, g.shape[first:], strict=True)
        out[at[:first] + tuple(floor(Fraction(o * n, m)) for o, n, m in read)] += g[at]
    return out


def bilinear_cells(size: int, count: int, dtype: np.dtype[Any], *, align_corners: bool) -> list[list[tuple[int, Any]]]:
    """The cells that each output reads along one axis, with their weights, of which none is 0."""
    found: list[list[tuple[int, Any]]] = []
    for o in range(count):
        if align_corners:
            at = Fraction(o * (size - 1), max(count - 1, 1))
        else:
            at = min(max((o + Fraction(1, 2)) * size / count - Fraction(1, 2), Fraction(0)), Fraction(size - 1))
        pairs = ((floor(at), 1 - (at - floor(at))), (floor(at) + 1, at - floor(at)))
        found.append([(cell, nearest(weight, dtype)) for cell, weight in pairs if weight])
    return found


def nearest(exact: Fraction, dtype: np.dtype[Any]) -> Any:
    """The float nearest to a fraction from 0 to 1, half to even."""
    bits = int(np.finfo(dtype).nmant) + 1
    unit = Fraction(1)
    while exact / unit < 2 ** (bits - 1):
        unit /= 2
    return dtype.type(float(round(exact / unit) * unit))


def upsample_bilinear(x: Any, size: Sequence[int], align_corners: bool) -> Array:
    """``fma(V·H, x, sum)`` over the cells of each output in row-major order, from +0."""
    out: Any = np.zeros((*x.shape[:-2], *size), x.dtype)
    rows = bilinear_cells(x.shape[-2], size[0], x.dtype, align_corners=align_corners)
    columns = bilinear_cells(x.shape[-1], size[1], x.dtype, align_corners=align_corners)
    for plane in np.ndindex(*x.shape[:-2]):
        for (o, across), (p, along) in product(enumerate(rows), enumerate(columns)):
            for (i, v), (j, h) in product(across, along):
                out[(*plane, o, p)] = fma(v * h, x[(*plane, i, j)], out[(*plane, o, p)])
    return np.asarray(out)


def upsample_bilinear_grad(g: Any, sizes: Sequence[int], align_corners: bool) -> Array:
    """``fma(V·H, g, sum)`` over the outputs that read each cell in row-major order, from +0."""
    out: Any = np.zeros((*g.shape[:-2], *sizes), g.dtype)
    rows = bilinear_cells(sizes[0], g.shape[-2], g.dtype, align_corners=align_corners)
    columns = bilinear_cells(sizes[1], g.shape[-1], g.dtype, align_corners=align_corners)
    for plane in np.ndindex(*g.shape[:-2]):
        for (o, across), (p, along) in product(enumerate(rows), enumerate(columns)):
            for (i, v), (j, h) in product(across, along):
                out[(*plane, i, j)] = fma(v * h, g[(*plane, o, p)], out[(*plane, i, j)])
    return np.asarray(out)
