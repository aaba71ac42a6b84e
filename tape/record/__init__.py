"""What an op declares: its record, signature, derivatives, samples, lowering; the face for authors of ops.

An op: `op` or `composed` above a typed function, `NO_GRAD` for what has no derivative, samples and errors for its
tests. Its lowering: slots to a slot by `call`, `elementwise`, `view`, `reshaped`, `permuted`. A kernel: `kernel`, with
`word`, `vector` and `share` to read what it is given, and `fma`, `sqrt`, `select` beside ``+ - * /``. An op whose
elements come from those at their places is a formula and its slope: `pointwise` and `pointwise_op`.
"""

# numba's functions carry no types.
# pyright: reportUnknownVariableType=false
from collections.abc import Callable
from typing import Any

from ..numerics.engine import intrinsics
from ..numerics.engine.kernel import Kernel, kernel, share, vector, vector_as
from ..numerics.math.reference import sums as reference_sums
from ..numerics.simd.operations import Number, constant, fma, select, sqrt
from ..numerics.simd.pointwise import pointwise
from ..numerics.sizes import Sizes
from ..values.spec import Spec
from .composed import Composed, composed, fitted
from .derivative import NO_GRAD
from .kinds.values import (
    AXES,
    AXIS,
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    AxisOf,
    PerAxis,
    at_least,
    one_of,
    optional,
)
from .lowering import Slot, call, elementwise, permuted, reshaped, view
from .op import Op
from .op_decorator import op
from .pointwise_op import pointwise_op
from .samples import Bad, Make, Sample, bad, binary, unary, unary_positive
from .types import A, Axis, B, Bs, C, Constant, D, F, K, M, N, Operand, S, W, like, same

# What numba's type of an intrinsic takes first, the context, no caller gives.
_untyped: Any = intrinsics
real: Callable[[Any, Any], Any] = _untyped.real
word: Callable[[Any, Any], Any] = _untyped.word

__all__ = [
    "AXES",
    "AXIS",
    "FINITE",
    "NOT_NEGATIVE",
    "NO_GRAD",
    "POSITIVE",
    "PROBABILITY",
    "A",
    "Axis",
    "AxisOf",
    "B",
    "Bad",
    "Bs",
    "C",
    "Composed",
    "Constant",
    "D",
    "F",
    "K",
    "Kernel",
    "M",
    "Make",
    "N",
    "Number",
    "Op",
    "Operand",
    "PerAxis",
    "S",
    "Sample",
    "Sizes",
    "Slot",
    "Spec",
    "W",
    "at_least",
    "bad",
    "binary",
    "call",
    "composed",
    "constant",
    "elementwise",
    "fitted",
    "fma",
    "kernel",
    "like",
    "one_of",
    "op",
    "optional",
    "permuted",
    "pointwise",
    "pointwise_op",
    "real",
    "reference_sums",
    "reshaped",
    "same",
    "select",
    "share",
    "sqrt",
    "unary",
    "unary_positive",
    "vector",
    "vector_as",
    "view",
    "word",
]
