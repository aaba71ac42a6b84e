"""The type variables of op signatures, and what the op files share."""

from typing import Any, TypeVar, TypeVarTuple

from ..numerics.sizes import Sizes
from ..values.dtypes import DType, Float
from ..values.spec import Spec

D = TypeVar("D", bound=DType)
"""Any element type."""
F = TypeVar("F", bound=Float)
"""A float type."""
B = TypeVar("B")
C = TypeVar("C")
K = TypeVar("K")
M = TypeVar("M")
N = TypeVar("N")
S = TypeVarTuple("S")
Bs = TypeVarTuple("Bs")
Axis = int | tuple[int, ...] | None


def like(spec: Spec, shape: Sizes) -> Spec:
    """A value of another shape with the same element type."""
    return Spec(shape, spec.dtype)


def same(x: Any, *_: Any, **__: Any) -> Any:
    """The first argument; an ``infer`` for results like the first input, and a VJP that passes on."""
    return x
