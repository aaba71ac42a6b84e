"""Rows of ops that give planes other sizes, borders and places, and of pools beyond the plain ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .row import Arrays, Attrs, Draw, Row
from .spatial import TIES, ceiled, each, of_rank, pooled

Widths = tuple[tuple[int, int], ...]
TORCHS = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}
"""What the peer calls the modes of pad that it has."""


def padded(draw: Draw) -> tuple[Arrays, Attrs]:
    """One value on any axes, negative widths too; the other modes on the last one or two, as wide as the peer takes."""
    mode = draw.one_of(*TORCHS)
    if mode == "constant":
        shape = draw.shape((1, 4), (3, 5))
        widths: Widths = tuple([draw.integers(2, -1, 3) for _ in shape])  # type: ignore[misc]
        return {"x": draw.normal(*shape)}, {"widths": widths, "value": draw.real(-1.0, 1.0), "mode": mode}
    rank = draw.integer(1, 2)
    space = draw.integers(rank, 3, 5)
    widths = ((0, 0),) * 2 + tuple([draw.integers(2, 0 if mode == "wrap" else -1, n - 1) for n in space])  # type: ignore[assignment]
    return {"x": draw.normal(*draw.integers(2, 1, 2), *space)}, {"widths": widths, "mode": mode}


def pad(t: Any, x: Any, widths: Widths, mode: str, value: float = 0.0) -> Any:
    given = widths if mode == "constant" else widths[2:]
    flat = [n for pair in reversed(given) for n in pair]
    return t.nn.functional.pad(x, flat, TORCHS[mode], value if mode == "constant" else None)


RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}


def resized(draw: Draw) -> tuple[Arrays, Attrs]:
    """Every mode by sizes and by scales, which are halves and quarters, so that no position is rounded to another."""
    mode = draw.one_of("nearest", "nearest-exact", "area", *RANKS)
    rank = RANKS.get(mode) or draw.integer(1, 3)
    x = draw.normal(*draw.integers(2, 1, 2), *draw.integers(rank, 2, 7))
    attrs: Attrs = {"mode": mode}
    if mode in RANKS:
        attrs["align_corners"] = draw.one_of(False, True)
    least = 1
    if mode in ("bilinear", "bicubic"):
        attrs["antialias"] = draw.one_of(False, True)
        least += attrs["antialias"]
    if mode.startswith("nearest") or draw.one_of(False, True):
        return {"x": x}, {**attrs, "size": draw.integers(rank, least, 9)}
    scales = zip(x.shape[2:], [n / 4 for n in draw.integers(rank, 2 * least, 9)], strict=True)
    return {"x": x}, {**attrs, "scale_factor": tuple([1.0 if int(n * scale) == n else scale for n, scale in scales])}


def interpolate(t: Any, x: Any, **attrs: Any) -> Any:
    return t.nn.functional.interpolate(x, **attrs)


def gridded(draw: Draw) -> tuple[Arrays, Attrs]:
    x = draw.normal(draw.integer(1, 2), draw.integer(1, 3), *draw.integers(2, 2, 5))
    grid = draw.normal(x.shape[0], *draw.integers(2, 1, 4), 2)
    modes = {"mode": draw.one_of("bilinear", "nearest", "bicubic"),
             "padding_mode": draw.one_of("zeros", "border", "reflection")}  # fmt: skip
    return {"x": x, "grid": grid}, {**modes, "align_corners": draw.one_of(False, True)}


def gridded_volumes(draw: Draw) -> tuple[Arrays, Attrs]:
    x = draw.normal(draw.integer(1, 2), draw.integer(1, 2), *draw.integers(3, 2, 4))
    grid = draw.normal(x.shape[0], *draw.integers(3, 1, 3), 3)
    modes = {"mode": draw.one_of("trilinear", "nearest"),
             "padding_mode": draw.one_of("zeros", "border", "reflection")}  # fmt: skip
    return {"x": x, "grid": grid}, {**modes, "align_corners": draw.one_of(False, True)}


def grid_sample3d(t: Any, x: Any, grid: Any, mode: str, **attrs: Any) -> Any:
    return t.nn.functional.grid_sample(x, grid, "nearest" if mode == "nearest" else "bilinear", **attrs)


def grid_sample(t: Any, x: Any, grid: Any, **attrs: Any) -> Any:
    return t.nn.functional.grid_sample(x, grid, **attrs)


def mapped(draw: Draw) -> tuple[Arrays, Attrs]:
    """The peer warns of planes of one cell whose corners are aligned."""
    align_corners = draw.one_of(False, True)
    n = draw.integer(2, 3)
    size = draw.integers(n, 1 + align_corners, 5)
    return {"theta": draw.normal(draw.integer(1, 3), n, n + 1)}, {"size": size, "align_corners": align_corners}


def affine_grid(t: Any, theta: Any, size: Sequence[int], align_corners: bool) -> Any:
    return t.nn.functional.affine_grid(theta, (theta.shape[0], 1, *size), align_corners=align_corners)


def shuffled(draw: Draw) -> tuple[Arrays, Attrs]:
    r, channels, height, width = draw.integers(4, 1, 3)
    batch = draw.one_of((), (draw.integer(1, 2),))
    return {"x": draw.normal(*batch, channels * r * r, height, width)}, {"upscale_factor": r}


def unshuffled(draw: Draw) -> tuple[Arrays, Attrs]:
    r, channels, height, width = draw.integers(4, 1, 3)
    batch = draw.one_of((), (draw.integer(1, 2),))
    return {"x": draw.normal(*batch, channels, r * height, r * width)}, {"downscale_factor": r}


def max_pool_indices(t: Any, x: Any, **attrs: Any) -> Any:
    return of_rank("max_pool", x.ndim - 2, t)(x, return_indices=True, **attrs)[1]


def unpooled(draw: Draw) -> tuple[Arrays, Attrs]:
    """Windows that do not overlap, so that no cell is named twice."""
    rank = draw.integer(1, 3)
    kernel = draw.integers(rank, 1, 3)
    more, shape = draw.integers(rank, 0, 2), (*draw.integers(2, 1, 2), *draw.integers(rank, 1, 3))
    size = tuple([n * k + min(extra, k - 1) for n, k, extra in zip(shape[2:], kernel, more, strict=True)])
    places = [draw.rng.permutation(int(np.prod(size)))[: int(np.prod(shape[2:]))] for _ in range(shape[0] * shape[1])]
    arrays: Arrays = {"x": draw.normal(*shape), "indices": np.array(places).reshape(shape)}
    return arrays, {"kernel_size": kernel, "output_size": size}


def max_unpool(t: Any, x: Any, indices: Any, kernel_size: Any, output_size: Any) -> Any:
    return of_rank("max_unpool", x.ndim - 2, t)(x, indices, kernel_size, output_size=output_size)


def normed(draw: Draw) -> tuple[Arrays, Attrs]:
    rank = draw.integer(1, 3)
    kernel = draw.integers(rank, 1, 3)
    space = [k + draw.integer(0, 4) for k in kernel]
    attrs = {"norm_type": draw.one_of(1.0, 2.0, 3.0, 1.5), "kernel_size": kernel, "ceil_mode": ceiled(draw, rank)}
    return {"x": draw.positive(*draw.integers(2, 1, 2), *space)}, {**attrs, "stride": each(draw, rank, 1, 3)}


def lp_pool(t: Any, x: Any, kernel_size: Any, **attrs: Any) -> Any:
    return of_rank("lp_pool", x.ndim - 2, t)(x, kernel_size=kernel_size if x.ndim > 3 else kernel_size[0], **attrs)


POSITIONS = """positions are exact; those of a scale the peer rounds, it copies along axes whose size stays, its
gradient of nearest cells has others than its value, and of what it filters to one column it repeats the first row"""

ROWS = [
    Row("pad", pad, padded, "the peer has no mode symmetric, no borders wider than the axis; it cuts before it wraps"),
    Row("interpolate", interpolate, resized, POSITIONS),
    Row("grid_sample", grid_sample, gridded, "a place that is NaN gives NaN"),
    Row("grid_sample3d", grid_sample3d, gridded_volumes, "a place that is NaN gives NaN"),
    Row("affine_grid", affine_grid, mapped),
    Row("pixel_shuffle", lambda t, x, **attrs: t.nn.functional.pixel_shuffle(x, **attrs), shuffled),
    Row("pixel_unshuffle", lambda t, x, **attrs: t.nn.functional.pixel_unshuffle(x, **attrs), unshuffled),
    Row("max_pool_indices", max_pool_indices, pooled(dilation=lambda draw, rank: each(draw, rank, 1, 2),
                                                     ceil_mode=ceiled), TIES),
    Row("max_unpool", max_unpool, unpooled, "a cell that is named twice: the last element alone has a gradient"),
    Row("lp_pool", lp_pool, normed),
]  # fmt: skip
