"""What a value is, what an op is, and how gradients flow."""

from .numerics import literals as _literals  # noqa: F401  # isort: skip  # pyright: ignore[reportUnusedImport]  (first: it refuses wrong numbers)
from typing import TYPE_CHECKING

from ..base.pytorch_names import refuse_names as _refuse_names
from . import nn, ops
from .errors import (
    BoundsError,
    BroadcastWarning,
    DgrrError,
    DomainError,
    DTypeError,
    GradientError,
    MissingAttributeError,
    NonFiniteError,
    ShapeError,
    SingularMatrixError,
    TapeError,
)
from .graph.hooks import HookHandle
from .graph.nonfinite import NodeInfo, NonFiniteReport
from .inspect.compare import NodeDifference, compare_grads, compare_tapes
from .location import Location
from .nn.context import Context, Random
from .numerics import NUMERICS
from .numerics.engine.threads import get_threads, set_threads
from .numerics.interrupts import hold_while_compiling as _hold_while_compiling
from .tape import Tape
from .transforms.checkpoint import checkpoint
from .transforms.gradcheck import Element, GradcheckReport, gradcheck
from .transforms.transforms import grad, hvp, jacobian, jvp, value_and_grad, vjp
from .transforms.vmap import vmap
from .values.dtypes import DType, Float, boolean, f32, f64, i64
from .values.shape import Dim, Shape
from .values.tensor import AnyTensor, Tensor
from .var.var import AnyVar, SomeVar, Var

__all__ = [
    "NUMERICS",
    "AnyTensor",
    "AnyVar",
    "BoundsError",
    "BroadcastWarning",
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
    "MissingAttributeError",
    "NodeDifference",
    "NodeInfo",
    "NonFiniteError",
    "NonFiniteReport",
    "Random",
    "Shape",
    "ShapeError",
    "SingularMatrixError",
    "SomeVar",
    "Tape",
    "TapeError",
    "Tensor",
    "Var",
    "boolean",
    "checkpoint",
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
    "vmap",
]

_hold_while_compiling()

if not TYPE_CHECKING:  # checkers refuse by themselves what this refuses
    __getattr__ = _refuse_names(__name__, __all__)
