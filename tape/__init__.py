"""What a value is, what an op is, and how gradients flow."""

from . import nn, ops
from .compare import NodeDifference, compare_grads, compare_tapes
from .context import Context, Random
from .dtypes import DType, Float, boolean, f32, f64, i64
from .errors import (
    BoundsError,
    DgrrError,
    DomainError,
    DTypeError,
    GradientError,
    NonFiniteError,
    ShapeError,
    TapeError,
)
from .gradcheck import Element, GradcheckReport, gradcheck
from .handle import SomeVar
from .hooks import HookHandle
from .location import Location
from .nonfinite import NodeInfo, NonFiniteReport
from .numerics import NUMERICS
from .numerics.pool import get_threads, set_threads
from .shape import Dim, Shape
from .tape import Tape
from .tensor import AnyTensor, Tensor
from .transforms import grad, hvp, jacobian, jvp, value_and_grad, vjp
from .var import AnyVar, Var

__all__ = [
    "NUMERICS",
    "AnyTensor",
    "AnyVar",
    "BoundsError",
    "Context",
    "DType",
    "DTypeError",
    "DgrrError",
    "Dim",
    "DomainError",
    "Element",
    "Float",
    "GradcheckReport",
    "GradientError",
    "HookHandle",
    "Location",
    "NodeDifference",
    "NodeInfo",
    "NonFiniteError",
    "NonFiniteReport",
    "Random",
    "Shape",
    "ShapeError",
    "SomeVar",
    "Tape",
    "TapeError",
    "Tensor",
    "Var",
    "boolean",
    "compare_grads",
    "compare_tapes",
    "f32",
    "f64",
    "get_threads",
    "grad",
    "gradcheck",
    "hvp",
    "i64",
    "jacobian",
    "jvp",
    "nn",
    "ops",
    "set_threads",
    "value_and_grad",
    "vjp",
]
