"""The type variables of op signatures, and what the op files share."""

from typing import Any, TypeVar, TypeVarTuple

from ..numerics.sizes import Sizes
from ..values.dtypes import DType, Float, Numeric, i64
from ..values.spec import Spec
from ..var.arithmetic import Constant as Constant
from ..var.method_types import Axis as Axis
from ..var.var import Var

D = TypeVar("D", bound=DType)
"""Any element type."""
F = TypeVar("F", bound=Float)
"""A float type."""
A = TypeVar("A", bound=Numeric)
"""A type of numbers."""
W = TypeVar("W", bound=i64)
"""Whole numbers, where a number beside a tensor stands for as many as it has, and not for one index."""
B = TypeVar("B")
C = TypeVar("C")
K = TypeVar("K")
M = TypeVar("M")
N = TypeVar("N")
S = TypeVarTuple("S")
Bs = TypeVarTuple("Bs")

Operand = Var[D, *S] | Constant
"""``Operand[F, *S]``: a Var, or what becomes a constant beside one, where other inputs say all of its type."""


def like(spec: Spec, shape: Sizes) -> Spec:
    """A value of another shape with the same element type."""
    return Spec(shape, spec.dtype)


def same(x: Any, *_: Any, **__: Any) -> Any:
    """The first argument; an ``infer`` for results like the first input, and a VJP that passes on."""
    return x
