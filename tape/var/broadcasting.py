"""Operands of an operator brought to one shape, by nodes that the tape shows."""

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..numerics.sizes import Sizes
from ..values.tensor import AnyTensor
from .handle import Handle
from .op_table import OPS


def shape_of(x: Any) -> Sizes:
    """The sizes of a Var, a tensor or an array as a plain tuple."""
    value = x.value if isinstance(x, Handle) else x
    return value.sizes if isinstance(value, AnyTensor) else tuple(value.shape)


def binary(op: str, a: Any, b: Any) -> Any:
    """An op of two operands after broadcasting both to their common shape."""
    if a.__class__ is b.__class__ and a.value.spec is b.value.spec:
        pass
    elif _has_shape(a) and _has_shape(b):
        sizes = shape_of(a), shape_of(b)
        if sizes[0] != sizes[1]:
            OPS[op].signature.require_dtypes(a.dtype, b.dtype)  # before anything is appended
            common = _common_shape(op, *sizes)
            a, b = _repeated(a, common), _repeated(b, common)
    return OPS[op].call(a, b)


def _has_shape(x: Any) -> bool:
    """Whether ``x`` is no number: a number takes the shape of the other operand."""
    return isinstance(x, Handle | AnyTensor | np.ndarray)


def _common_shape(op: str, a: Sizes, b: Sizes) -> Sizes:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ShapeError(
            f"{op}: argument {OPS[op].signature.inputs[1]!r}: expected a shape that broadcasts with {a}, got {b}; "
            "sizes must be equal or 1, counted from the last axis"
        ) from None


def _repeated(x: Any, sizes: Sizes) -> Any:
    if shape_of(x) == sizes:
        return x
    return OPS["broadcast_to"].call(x, sizes) if isinstance(x, Handle) else np.broadcast_to(np.asarray(x), sizes)
