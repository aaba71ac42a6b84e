"""Which keys a query sees: masks of every shape that broadcasts, of bools or added to the scores, and windows."""

from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ...errors import DTypeError, ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import POSITIVE, at_least, optional
from ...values.shape import can_broadcast
from ...var.var import shape_of
from ..elementwise.select import equal, greater, not_equal
from ..reduce.reduce import broadcast_to

BOOL = np.dtype(np.bool_)
LOWEST: Any = -np.inf

SCORES = {"softcap": optional(POSITIVE), "window": optional(at_least(1))}
"""What a cap of scores and a window of keys may be."""


def require_mask(where: str, mask: Any, shape: Sizes, dtype: Any, argument: str = "mask", advice: str = "") -> None:
    """Raise DTypeError or ShapeError for a mask of other elements, or one that is not repeated to ``shape``."""
    if mask is None:
        return
    if mask.dtype not in (BOOL, dtype):
        raise DTypeError(
            f"{where}: argument {argument!r}: expected bool or {dtype}, got {mask.dtype}; convert with ops.cast"
        )
    if not can_broadcast(shape_of(mask), shape):
        raise ShapeError(
            f"{where}: argument {argument!r}: expected a shape that can be repeated to {shape}, got {shape_of(mask)}"
            f"{advice}"
        )


def added_and_kept(mask: Any, window: int | None, shape: Sizes, seen: Any = None) -> tuple[Any, Any]:
    """What is added to the scores, of their shape or None, and which are kept, a mask that they take or None.

    A mask of floats is added, and its -inf keeps nothing. ``seen`` is a mask of bools besides.
    """
    added, kept = (None, mask) if mask is None or mask.dtype == BOOL else (mask, not_equal(mask, LOWEST))
    near = None if window is None else _near(shape[-2], shape[-1], window)
    kept = _both(_both(kept, seen), near)
    return None if added is None else _repeated(added, shape), None if kept is None else _fitting(kept, shape)


def _near(queries: int, keys: int, window: int) -> Array:
    """Which keys stand less than ``window`` places before or behind a query."""
    near: Array = np.abs(np.arange(queries)[:, None] - np.arange(keys)) < window
    return near


def _both(a: Any, b: Any) -> Any:
    """Where two masks hold, of which either may be missing; the second may be an array."""
    if a is None or b is None:
        return b if a is None else a
    shape = _common(tuple(a.shape), tuple(b.shape))
    repeated: Any = _repeated(b, shape)
    missing: Any = ~repeated if isinstance(b, np.ndarray) else equal(repeated, cast(Any, np.zeros(shape, BOOL)))
    return greater(_repeated(a, shape), missing)


def _common(a: Sizes, b: Sizes) -> Sizes:
    """The shape to which two that fit one shape are repeated."""
    rank = max(len(a), len(b))
    padded = ((1,) * (rank - len(sizes)) + sizes for sizes in (a, b))
    return tuple([n if m == 1 else m for m, n in zip(*padded, strict=True)])


def _fitting(mask: Any, shape: Sizes) -> Any:
    """A mask for one matrix of scores as such, any other repeated to all scores."""
    return _repeated(mask, shape[-2:] if len(mask.shape) <= 2 else shape)


def _repeated(x: Any, shape: Sizes) -> Any:
    if tuple(x.shape) == tuple(shape):
        return x
    repeated: Any = np.broadcast_to(cast(Any, x), shape) if isinstance(x, np.ndarray) else broadcast_to(x, tuple(shape))
    return repeated
