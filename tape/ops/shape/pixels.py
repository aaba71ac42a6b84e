"""Channels and cells of planes exchanged for each other."""

from typing import Any, TypeVar

from ....base.arrays import Array
from ...errors import ShapeError
from ...record.composed import composed, fitted
from ...record.kinds.values import at_least
from ...record.samples import Sample, bad
from ...record.types import Bs, C, D
from ...var.var import Gradual, Var
from .reshape import permute, reshape

H = TypeVar("H")
W = TypeVar("W")


def _reference_shuffle(x: Array, upscale_factor: int) -> Array:
    """Channel ``c r² + i r + j`` at rows i and columns j of blocks of r by r cells."""
    r = upscale_factor
    *lead, channels, height, width = x.shape
    out = x.reshape((*lead, channels // (r * r), height * r, width * r)).copy()
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return out


def _reference_unshuffle(x: Array, downscale_factor: int) -> Array:
    r = downscale_factor
    *lead, channels, height, width = x.shape
    out = x.reshape((*lead, channels * r * r, height // r, width // r)).copy()
    for i in range(r):
        for j in range(r):
            out[..., i * r + j :: r * r, :, :] = x[..., i::r, j::r]
    return out


@composed(
    reference=_reference_shuffle,
    samples=lambda make: [
        Sample((make(2, 8, 2, 3),), {"upscale_factor": 2}),
        Sample((make(1, 9, 1, 2),), {"upscale_factor": 3}),
        Sample((make(0, 4, 2, 2),), {"upscale_factor": 2}),
    ],
    errors=(
        bad(ShapeError, "pixel_shuffle: argument 'x': expected a number of channels that 4 divides, got shape "
            "(1, 6, 2, 2)", (1, 6, 2, 2), upscale_factor=2),
    ),
    kinds={"upscale_factor": at_least(1)},
    batch_axis={"x": 0},
)  # fmt: skip
def pixel_shuffle(x: Var[D, *Bs, C, H, W], upscale_factor: int) -> Gradual[D]:
    """Planes r times as high and wide: channel ``c r² + i r + j`` becomes the cells (i, j) of blocks of r by r.

    Source: torch.nn.functional.pixel_shuffle; Shi et al. (2016), Real-Time Single Image and Video Super-Resolution.
    Shapes: x (*Bs, C, H, W) -> (*Bs, C / r², r H, r W); r is ``upscale_factor``

    >>> from dgrr.tape import Tape, ops
    >>> ops.pixel_shuffle(Tape().leaf([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2).numpy()
    array([[[1., 2.],
            [3., 4.]]])
    """
    (x,) = fitted("pixel_shuffle", x)
    whole: Any = x
    r, (*lead, channels, height, width) = upscale_factor, whole.shape
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle: argument 'x': expected a number of channels that {r * r} divides, "
            f"got shape {tuple(whole.shape)}"
        )
    n = len(lead)
    blocks: Any = reshape(whole, (*lead, channels // (r * r), r, r, height, width))
    mixed: Any = permute(blocks, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(mixed, (*lead, channels // (r * r), height * r, width * r))


@composed(
    reference=_reference_unshuffle,
    samples=lambda make: [
        Sample((make(2, 2, 4, 6),), {"downscale_factor": 2}),
        Sample((make(1, 1, 3, 6),), {"downscale_factor": 3}),
        Sample((make(0, 1, 2, 2),), {"downscale_factor": 2}),
    ],
    errors=(
        bad(ShapeError, "pixel_unshuffle: argument 'x': expected a height and a width that 2 divides, got shape "
            "(1, 3, 4)", (1, 3, 4), downscale_factor=2),
    ),
    kinds={"downscale_factor": at_least(1)},
    batch_axis={"x": 0},
)  # fmt: skip
def pixel_unshuffle(x: Var[D, *Bs, C, H, W], downscale_factor: int) -> Gradual[D]:
    """The inverse of `pixel_shuffle`: the cells of blocks of r by r become ``r²`` channels.

    Source: torch.nn.functional.pixel_unshuffle.
    Shapes: x (*Bs, C, H, W) -> (*Bs, C r², H / r, W / r); r is ``downscale_factor``

    >>> from dgrr.tape import Tape, ops
    >>> ops.pixel_unshuffle(Tape().leaf([[[1.0, 2.0], [3.0, 4.0]]]), 2).shape
    (4, 1, 1)
    """
    (x,) = fitted("pixel_unshuffle", x)
    whole: Any = x
    r, (*lead, channels, height, width) = downscale_factor, whole.shape
    if height % r or width % r:
        raise ShapeError(
            f"pixel_unshuffle: argument 'x': expected a height and a width that {r} divides, "
            f"got shape {tuple(whole.shape)}"
        )
    n = len(lead)
    blocks: Any = reshape(whole, (*lead, channels, height // r, r, width // r, r))
    mixed: Any = permute(blocks, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(mixed, (*lead, channels * r * r, height // r, width // r))
