"""Operands of an operator brought to one shape, by nodes that the tape shows."""

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import BroadcastWarning, ShapeError
from ..location import Location, caller
from ..numerics.sizes import Sizes
from ..values.tensor import AnyTensor
from .handle import Handle
from .op_table import OPS

NUMBERS = frozenset({float, int})
"""Types of what takes the shape of the other operand, and is known at a glance."""


def shape_of(x: Any) -> Sizes:
    """The sizes of a Var, a tensor or an array as a plain tuple."""
    if x.__class__ is AnyTensor:
        sizes: Sizes = x.spec.shape
        return sizes
    value = x.value if isinstance(x, Handle) else x
    return value.sizes if isinstance(value, AnyTensor) else tuple(value.shape)


def binary(op: str, a: Any, b: Any) -> Any:
    """An op of two operands after broadcasting both to their common shape."""
    number = a.__class__ in NUMBERS or b.__class__ in NUMBERS
    if not number and not (a.__class__ is b.__class__ and a.tape.alike(a, b)):
        a, b = together(op, (a, b))
    return OPS[op].call(a, b)


def together(op: str, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of an op in their common shape. Raises ShapeError or DTypeError before anything is appended."""
    arrays = [x if _has_shape(x) else None for x in operands]
    if len({shape_of(x) for x in arrays if x is not None}) < 2:
        return operands
    OPS[op].signature.require_dtypes(*(None if x is None else x.dtype for x in arrays))
    common = _common_shape(op, arrays)
    if _is_suspicious([shape_of(x) for x in arrays if x is not None], common):
        _remark(op, [shape_of(x) for x in arrays if x is not None], common)
    return [x if array is None else _repeated(x, common) for x, array in zip(operands, arrays, strict=True)]


def _is_suspicious(shapes: Sequence[Sizes], common: Sizes) -> bool:
    """Whether operands of as many elements but not as many axes are all repeated: (B, 1) and (B,) become (B, B)."""
    counts = {prod(shape) for shape in shapes}
    return len(counts) == 1 and len({len(shape) for shape in shapes}) > 1 and prod(common) > max(counts)


_REMARKED = set[tuple[str, int]]()
"""The lines of users' programs that were told."""


def _remark(op: str, shapes: Sequence[Sizes], common: Sizes) -> None:
    """Warn, once for each line of the user's."""
    place = caller()
    where = None if place is None else Location.of(place)
    if where is None or (where.file, where.line) in _REMARKED:
        return
    _REMARKED.add((where.file, where.line))
    warnings.warn_explicit(
        f"{op}: {' and '.join(map(str, shapes))} are broadcast to {common}, larger than either; if that is meant, "
        "give both as many axes, as (B, 1) and (1, B); else reshape one, as x[:, 0] or y[:, None]",
        BroadcastWarning,
        where.file,
        where.line,
    )


def _has_shape(x: Any) -> bool:
    """Whether ``x`` is no number: a number takes the shape of the other operand."""
    return isinstance(x, Handle | AnyTensor | np.ndarray)


def _common_shape(op: str, arrays: Sequence[Any]) -> Sizes:
    common: Sizes = ()
    for name, x in zip(OPS[op].signature.inputs, arrays, strict=True):
        try:
            common = common if x is None else np.broadcast_shapes(common, shape_of(x))
        except ValueError:
            raise ShapeError(
                f"{op}: argument {name!r}: expected a shape that broadcasts with {common}, got {shape_of(x)}; "
                "sizes must be equal or 1, counted from the last axis"
            ) from None
    return common


def _repeated(x: Any, sizes: Sizes) -> Any:
    if shape_of(x) == sizes:
        return x
    on_tape = isinstance(x, Handle | AnyTensor)
    return OPS["broadcast_to"].call(x, sizes) if on_tape else np.broadcast_to(np.asarray(x), sizes)
