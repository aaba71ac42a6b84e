"""Vars: handles to the nodes of a tape, with the operators and methods that record ops.

The operators reach ops through the op table, because ops are defined above this file and take Vars.
"""

# What the op table returns is typed by each method's own signature.
# mypy: disable-error-code="no-any-return"
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

import numpy as np

from .dtypes import DType, boolean, i64
from .errors import ShapeError
from .shape import Pattern, Shape
from .table import OPS
from .tensor import AnyTensor, Array

if TYPE_CHECKING:
    from .hooks import Hook, HookHandle
    from .tape import Tape

D = TypeVar("D", bound=DType)
M = TypeVar("M")
K = TypeVar("K")
N = TypeVar("N")
S = TypeVarTuple("S")
S2 = TypeVarTuple("S2")
Bs = TypeVarTuple("Bs")

Number = float | int | bool | np.generic
Axis = int | tuple[int, ...] | None


class Var(Generic[D, *S]):
    """A handle to one node of one tape; its type carries the element type and, where known, the shape.

    Operators take another Var, an array or a number; numbers and arrays become constants. Unlike the ops
    themselves, ``+ - * /`` and the comparisons broadcast, by a ``broadcast_to`` node that the tape shows.
    Every use of a Var of another tape, or from before ``tape.reset()``, is a TapeError.
    """

    __slots__ = ("generation", "id", "tape")
    __array_ufunc__ = None  # numpy arrays leave `array + var` to Var
    __hash__ = object.__hash__

    def __init__(self, tape: "Tape[Any]", id: int, generation: int) -> None:
        self.tape, self.id, self.generation = tape, id, generation

    @property
    def value(self) -> AnyTensor:
        """The node's value."""
        return self.tape.value(self)

    def numpy(self) -> Array:
        """The value as a read-only numpy array, without a copy."""
        return self.value.array

    def item(self) -> float | int | bool:
        """The value of a one-element node as a Python number."""
        return self.value.item()

    @property
    def shape(self) -> Shape[*tuple[Any, ...]]:
        """Its sizes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type, a numpy dtype."""
        return self.value.dtype

    @property
    def name(self) -> str | None:
        """The name given when the node was made."""
        return self.tape.node(self).name

    @overload
    def expect(self, shape: type[Shape[*S2]]) -> "Var[D, *S2]": ...
    @overload
    def expect(self, shape: tuple[int, ...]) -> "Gradual[D]": ...
    def expect(self, shape: Any) -> Any:
        """The same Var with a shape that was checked now and that the type checker knows from here on.

        A Dim has one size on one tape. Raises ShapeError if the sizes are others.
        """
        self.tape.bind("expect", Pattern.named(shape), self.value.sizes)
        return self

    def register_hook(self, function: "Hook") -> "HookHandle":
        """Call ``function(gradient)`` in every backward pass; see `Tape.hook`."""
        return self.tape.hook(self, function)

    def __repr__(self) -> str:
        value = self.value
        name = f" {self.name!r}" if self.name else ""
        return f"Var(id={self.id}{name}, shape={tuple(value.shape)}, dtype={value.dtype})"

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __len__(self) -> int:
        return len(self.value)

    def __add__(self, other: "Var[D, *S] | Array | Number") -> "Var[D, *S]":
        """``self + other``."""
        return _binary("add", self, other)

    def __radd__(self, other: Array | Number) -> "Var[D, *S]":
        """``other + self``."""
        return _binary("add", other, self)

    def __sub__(self, other: "Var[D, *S] | Array | Number") -> "Var[D, *S]":
        """``self - other``."""
        return _binary("sub", self, other)

    def __rsub__(self, other: Array | Number) -> "Var[D, *S]":
        """``other - self``."""
        return _binary("sub", other, self)

    def __mul__(self, other: "Var[D, *S] | Array | Number") -> "Var[D, *S]":
        """``self * other``."""
        return _binary("mul", self, other)

    def __rmul__(self, other: Array | Number) -> "Var[D, *S]":
        """``other * self``."""
        return _binary("mul", other, self)

    def __truediv__(self, other: "Var[D, *S] | Array | Number") -> "Var[D, *S]":
        """``self / other``."""
        return _binary("div", self, other)

    def __rtruediv__(self, other: Array | Number) -> "Var[D, *S]":
        """``other / self``."""
        return _binary("div", other, self)

    def __neg__(self) -> "Var[D, *S]":
        """``-self``."""
        return OPS["neg"](self)

    def __pow__(self, exponent: float) -> "Var[D, *S]":
        """``self ** exponent`` for a number."""
        return OPS["power"](self, exponent)

    def __abs__(self) -> "Var[D, *S]":
        """``|self|``."""
        return OPS["absolute"](self)

    @overload
    def __matmul__(self: "Var[D, *Bs, M, K]", other: "Var[D, K, N]") -> "Var[D, *Bs, M, N]": ...
    @overload
    def __matmul__(self: "Var[D, *Bs, M, K]", other: "Var[D, *Bs, K, N]") -> "Var[D, *Bs, M, N]": ...
    @overload
    def __matmul__(self: "Var[D, *Bs, M, K]", other: Array) -> "Gradual[D]": ...
    def __matmul__(self, other: Any) -> Any:
        """``self @ other``: the matrix product over the last two axes."""
        return OPS["matmul"](self, other)

    def __rmatmul__(self, other: Array) -> "Gradual[D]":
        """``other @ self``."""
        return OPS["matmul"](other, self)

    def __lt__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self < other``; no gradient."""
        return _binary("less", self, other)

    def __le__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self <= other``; no gradient."""
        return _binary("less_equal", self, other)

    def __gt__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self > other``; no gradient."""
        return _binary("greater", self, other)

    def __ge__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self >= other``; no gradient."""
        return _binary("greater_equal", self, other)

    def __eq__(self, other: object) -> "Var[boolean, *S]":  # type: ignore[override]  # pyright: ignore
        """``self == other`` element by element, as in numpy; no gradient."""
        return _binary("equal", self, other)

    def __ne__(self, other: object) -> "Var[boolean, *S]":  # type: ignore[override]  # pyright: ignore
        """``self != other`` element by element; no gradient."""
        return _binary("not_equal", self, other)

    def __getitem__(self, index: Any) -> "Gradual[D]":
        """Basic slicing: ints, slices with steps, ``...`` and ``None``, as in numpy."""
        return OPS["getitem"](self, index)

    @property
    def T(self: "Var[D, M, N]") -> "Var[D, N, M]":
        """The transpose of a matrix."""
        return OPS["transpose2d"](self)

    def relu(self) -> "Var[D, *S]":
        """``max(self, 0)``."""
        return OPS["relu"](self)

    def exp(self) -> "Var[D, *S]":
        """``e ** self``."""
        return OPS["exp"](self)

    def log(self) -> "Var[D, *S]":
        """The natural logarithm."""
        return OPS["log"](self)

    def tanh(self) -> "Var[D, *S]":
        """The hyperbolic tangent."""
        return OPS["tanh"](self)

    def sigmoid(self) -> "Var[D, *S]":
        """``1 / (1 + e ** -self)``."""
        return OPS["sigmoid"](self)

    def abs(self) -> "Var[D, *S]":
        """``|self|``."""
        return OPS["absolute"](self)

    def square(self) -> "Var[D, *S]":
        """``self * self``."""
        return OPS["square"](self)

    def clamp(self, low: float, high: float) -> "Var[D, *S]":
        """``minimum(high, maximum(low, self))``."""
        return OPS["clamp"](self, low, high)

    def sqrt(self) -> "Var[D, *S]":
        """The square root of ``max(self, 0)``."""
        return OPS["sqrt"](self)

    def softmax(self, axis: int = -1) -> "Var[D, *S]":
        """The softmax along an axis."""
        return OPS["softmax"](self, axis)

    def log_softmax(self, axis: int = -1) -> "Var[D, *S]":
        """The logarithm of the softmax along an axis."""
        return OPS["log_softmax"](self, axis)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[D]":
        """The sum over an axis, several, or all."""
        return OPS["reduce_sum"](self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[D]":
        """The mean over an axis, several, or all."""
        return OPS["reduce_mean"](self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[D]":
        """The largest element along an axis, several, or all."""
        return OPS["reduce_max"](self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[D]":
        """The smallest element along an axis, several, or all."""
        return OPS["reduce_min"](self, axis, keepdims)

    def argmax(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[i64]":
        """The position of the first largest element; no gradient."""
        return OPS["argmax"](self, axis, keepdims)

    def argmin(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[i64]":
        """The position of the first smallest element; no gradient."""
        return OPS["argmin"](self, axis, keepdims)

    def var(self, axis: Axis = None, keepdims: bool = False, correction: int = 0) -> "Gradual[D]":
        """The variance along an axis, several, or all; ``correction=1`` for the unbiased one."""
        return OPS["var"](self, axis, keepdims, correction)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> "Gradual[D]":
        """The product along an axis, several, or all."""
        return OPS["prod"](self, axis, keepdims)

    def cumsum(self, axis: int) -> "Var[D, *S]":
        """The running sum along an axis."""
        return OPS["cumsum"](self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> "Gradual[D]":
        """Two axes exchanged."""
        return OPS["swapaxes"](self, axis1, axis2)

    def permute(self, *axes: int) -> "Gradual[D]":
        """The axes in another order."""
        return OPS["permute"](self, axes)

    def reshape(self, *shape: int | tuple[int, ...] | list[int]) -> "Gradual[D]":
        """The same elements under another shape; one size may be -1."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return OPS["reshape"](self, sizes)

    def flatten(self, start_axis: int = 0) -> "Gradual[D]":
        """The axes from ``start_axis`` on joined into one."""
        return OPS["flatten"](self, start_axis)

    def broadcast_to(self, shape: tuple[int, ...]) -> "Gradual[D]":
        """Repeated to ``shape``."""
        return OPS["broadcast_to"](self, shape)


Gradual = Var[D, *tuple[Any, ...]]
"""``Gradual[f32]``: a Var whose shape the annotations do not say."""

AnyVar = Var[Any, *tuple[Any, ...]]
"""A Var about which the type checker knows nothing; it fits everywhere, like Any."""


def _has_shape(x: Any) -> bool:
    """Whether ``x`` is no number: a number takes the shape of the other operand."""
    return isinstance(x, Var | AnyTensor | np.ndarray)


def _binary(op: str, a: Any, b: Any) -> Any:
    """An op of two operands after broadcasting both to their common shape."""
    if _has_shape(a) and _has_shape(b):
        sizes = shape_of(a), shape_of(b)
        if sizes[0] != sizes[1]:
            OPS[op].signature.require_dtypes(a.dtype, b.dtype)  # before anything is appended
            common = _common_shape(op, *sizes)
            a, b = _repeated(a, common), _repeated(b, common)
    return OPS[op](a, b)


def shape_of(x: Any) -> tuple[int, ...]:
    """The sizes of a Var, a tensor or an array as a plain tuple."""
    value = x.value if isinstance(x, Var) else x
    return value.sizes if isinstance(value, AnyTensor) else tuple(value.shape)


def _common_shape(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ShapeError(
            f"{op}: argument 'b': expected a shape that broadcasts with {a}, got {b}; "
            "sizes must be equal or 1, counted from the last axis"
        ) from None


def _repeated(x: Any, sizes: tuple[int, ...]) -> Any:
    if shape_of(x) == sizes:
        return x
    return OPS["broadcast_to"](x, sizes) if isinstance(x, Var) else np.broadcast_to(np.asarray(x), sizes)
