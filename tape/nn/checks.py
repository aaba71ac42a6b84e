"""What layers check of x when they are called, and the error for fields that do not go together."""

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from ..errors import DomainError, ShapeError
from ..numerics.sizes import Sizes
from ..var.var import AnyVar
from .layer import Layer


def refuse(layer: Layer, argument: str, expected: str) -> DomainError:
    """The error for a field of a layer that is not what was expected."""
    given = getattr(layer, argument)
    return DomainError(f"{type(layer).__name__}: argument {argument!r}: expected {expected}, got {given!r}")


def require_features(layer: Layer, x: AnyVar, size: int) -> None:
    """Raises ShapeError unless the last axis of ``x`` has this size."""
    _require(_shape(x)[-1:] == (size,), layer, x, f"shape (*Bs, {size})")


def require_channels(layer: Layer, x: AnyVar, count: int) -> None:
    """Raises ShapeError unless axis 1 of ``x``, behind the batch, has this size."""
    one = "; add a batch axis to one sample with x[None]" if _shape(x)[:1] == (count,) else ""
    _require(_shape(x)[1:2] == (count,), layer, x, f"shape (N, {count}, *S)", one)


def require_several(layer: Layer, x: AnyVar, axes: Iterable[int], of: str) -> None:
    """Raises ShapeError unless ``x`` has along these axes 2 elements at least, of which there is a variance."""
    _require(prod(_shape(x)[axis] for axis in axes) >= 2, layer, x, f"at least 2 elements of {of}")


def _shape(x: Any) -> Sizes:
    """The shape of a Var, or of what stands in its place."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def _require(met: bool, layer: Layer, x: AnyVar, expected: str, hint: str = "") -> None:
    if not met:
        given = f"{'' if expected.startswith('shape') else 'shape '}{_shape(x)}"
        raise ShapeError(f"{layer!r}: argument 'x': expected {expected}, got {given}{hint}")
