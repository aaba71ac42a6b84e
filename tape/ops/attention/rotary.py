"""Rotary positions: pairs of features turned by an angle that grows with the position."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError
from ...record.composed import composed, fitted
from ...record.kinds.values import POSITIVE
from ...record.op import OPS
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, F, K, N
from ...var.var import Var, shape_of
from ..elementwise.arithmetic import add, mul, sub
from ..shape.joining import append, stack
from ..shape.reshape import reshape
from ..shape.slicing import getitem
from .positions import turns

NAME = "rotary"


def _reference(x: Array, base: float = 10000.0, offset: int = 0, interleaved: bool = False) -> Array:
    n, half = x.shape[-2], x.shape[-1] // 2
    exp, log, sin, cos = (OPS[name].reference for name in ("exp", "log", "sin", "cos"))
    speeds = exp(-np.arange(half) / max(half, 1) * log(np.float64(base)))
    angles: Any = np.multiply.outer(np.arange(offset, offset + n, dtype=np.int64), speeds)
    sines, cosines = sin(angles).astype(x.dtype), cos(angles).astype(x.dtype)
    first, second = (slice(None, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    out = np.empty_like(x)
    out[..., first] = x[..., first] * cosines - x[..., second] * sines
    out[..., second] = x[..., second] * cosines + x[..., first] * sines
    return out


def _samples(make: Make) -> list[Sample]:
    return [
        Sample((make(3, 4),)),
        Sample((make(2, 3, 5, 6),), {"base": 100, "offset": 7}),
        Sample((make(2, 5, 4).swapaxes(0, 1),), {"interleaved": True}),
        Sample((make(2, 0, 2),)),
    ]


@composed(
    reference=_reference,
    samples=_samples,
    errors=(bad(ShapeError, "argument 'x': expected an even number of features, got shape (2, 3)", (2, 3)),),
    kinds={"base": POSITIVE},
    batch_axis={"x": -3},
)
def rotary(
    x: Var[F, *Bs, N, K], base: float = 10000.0, offset: int = 0, interleaved: bool = False
) -> Var[F, *Bs, N, K]:
    """Each pair of features turned by ``position * base ** (-2 i / K)``, i the number of the pair of K / 2.

    So the product of a query and a key depends on how far apart they are. A feature of the first half is paired with
    one of the second half, or with ``interleaved`` with its neighbour. Positions begin at ``offset``. Sines and cosines
    are computed in float64 and rounded to the element type.

    Source: Su, Lu, Pan, Murtadha, Wen and Liu (2021), RoFormer: enhanced transformer with rotary position embedding,
        section 3.2, which pairs neighbours; the halves are those of GPT-NeoX.

    >>> from dgrr.tape import Tape, ops
    >>> ops.rotary(Tape().leaf([[1.0, 0.0], [1.0, 0.0]])).numpy().round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]])
    """
    (x,) = fitted(NAME, x)
    shape = shape_of(x)
    if shape[-1] % 2:
        raise ShapeError(f"{NAME}: argument 'x': expected an even number of features, got shape {shape}")
    half = (*shape[:-1], shape[-1] // 2)
    sines, cosines = (np.broadcast_to(t, half) for t in turns(offset, *half[-2:], float(base), np.dtype(x.dtype)))
    made: Var[F, *Bs, N, K] = turned(x, sines, cosines, interleaved)
    return made


def turned(x: Any, sines: Any, cosines: Any, interleaved: bool) -> Any:
    """Each pair of features of x turned by an angle of which the sine and the cosine are given, of x's leading axes."""
    shape = shape_of(x)
    first, second = _pairs(x, (*shape[:-1], shape[-1] // 2), interleaved)
    a = sub(mul(first, cosines), mul(second, sines))
    b = add(mul(second, cosines), mul(first, sines))
    return reshape(stack([a, b], -1), shape) if interleaved else append(a, b, -1)


def _pairs(x: Any, half: tuple[int, ...], interleaved: bool) -> tuple[Any, Any]:
    """The first and the second of each pair."""
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half[-1]), slice(half[-1], None))
    return getitem(x, (..., first)), getitem(x, (..., second))
