"""Vars: handles to the nodes of a tape, with the operators and methods that record ops.

The operators reach ops through the op table, because ops are defined above this file and take Vars. The types that
many ops and methods share are each written once, as the overloads of a function that is never called. Overloads that
ask for an `UnknownAxis` are those of gradual Vars. They come first, so that no exact overload is chosen for a Var
whose axes might be any.
"""

# What the op table returns is typed by each method's own signature.
# mypy: disable-error-code="no-any-return"
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeGuard, TypeVar, TypeVarTuple, overload

import numpy as np

from ...base.arrays import Array
from ..errors import ShapeError
from ..values.dtypes import DType, Float, boolean, i64
from ..values.shape import Pattern, Shape
from .appearance import var_html
from .arithmetic import Arithmetic, Constant, Number
from .broadcasting import binary, shape_of as shape_of
from .foreign import numpy_operator, refuse_attribute, refuse_function, value_array
from .handle import Handle
from .indices import has_arrays
from .method_types import Axes, Axis, Flat, UnknownAxis, method
from .op_table import COMPOSED, OPS

D = TypeVar("D", bound=DType)
D2 = TypeVar("D2", bound=DType)
F = TypeVar("F", bound=Float)
M = TypeVar("M")
K = TypeVar("K")
N = TypeVar("N")
S = TypeVarTuple("S")
S2 = TypeVarTuple("S2")
Bs = TypeVarTuple("Bs")


class Removable(Protocol):
    """What `SomeVar.register_hook` gives: a `HookHandle`."""

    def remove(self) -> None:
        """Take the hook away."""
        ...


class SomeVar(Handle[D]):
    """A Var whose shape the type checker does not know: `expect` checks it, `gradual` leaves it to the run time.

    Every `Var` is one, so nothing is made or copied; it is what ``tape.var(id)`` is declared to give.

    >>> from dgrr.tape import Dim, Shape, Tape, f64
    >>> class Batch(Dim): ...
    >>> tape = Tape(f64)
    >>> _ = tape.leaf([1.0, 2.0], name="x")
    >>> x = tape.var("x").expect(Shape[Batch])  # a Var[f64, Batch]
    >>> (x + x).numpy()
    array([2., 4.])
    """

    __slots__ = ()

    @overload
    def expect(self, shape: type[Shape[*S]]) -> "Var[D, *S]": ...
    @overload
    def expect(self, shape: tuple[int, ...]) -> "Gradual[D]": ...
    def expect(self, shape: Any) -> Any:
        """The same Var with a shape that was checked now and that the type checker knows from here on.

        A Dim has one size on one tape. Raises ShapeError if the sizes are others.
        """
        self.tape.bind("expect", Pattern.named("expect", shape), self.value.sizes)
        return self

    @property
    def gradual(self) -> "Gradual[D]":
        """The same Var with a shape that is left to the run time."""
        same: Any = self
        return same

    def register_hook(self, function: Callable[[Any], Any]) -> Removable:
        """Call ``function(gradient)`` in every backward pass; see `Tape.hook`."""
        handle: Removable = self.tape.hook(self.gradual, function)
        return handle


def elementwise(x: "Var[F, *S]") -> "Var[F, *S]":
    """One element of the result for each of ``x``."""
    return x


@overload
def reduction(
    x: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", axis: int | Axes, keepdims: bool = False
) -> "Gradual[F]": ...
@overload
def reduction(x: "Gradual[F]", axis: None = None, keepdims: Flat = False) -> "Var[F]": ...
@overload
def reduction(x: "Var[F, *S, N]", axis: Literal[-1], keepdims: Flat = False) -> "Var[F, *S]": ...
@overload
def reduction(x: "Var[F, N, *S]", axis: Literal[0], keepdims: Flat = False) -> "Var[F, *S]": ...
@overload
def reduction(x: "Var[F, Any, *tuple[Any, ...]]", axis: int, keepdims: bool = False) -> "Gradual[F]": ...
@overload
def reduction(x: "Gradual[F]", axis: Axes | None = None, keepdims: bool = False) -> "Gradual[F]": ...
def reduction(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """One element of the result for the elements along an axis, several, or all."""


@overload
def position(
    x: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", axis: int | Axes, keepdims: bool = False
) -> "Gradual[i64]": ...
@overload
def position(x: "Gradual[Any]", axis: None = None, keepdims: Flat = False) -> "Var[i64]": ...
@overload
def position(x: "Var[Any, *S, N]", axis: Literal[-1], keepdims: Flat = False) -> "Var[i64, *S]": ...
@overload
def position(x: "Var[Any, N, *S]", axis: Literal[0], keepdims: Flat = False) -> "Var[i64, *S]": ...
@overload
def position(x: "Var[Any, Any, *tuple[Any, ...]]", axis: int, keepdims: bool = False) -> "Gradual[i64]": ...
@overload
def position(x: "Gradual[Any]", axis: Axes | None = None, keepdims: bool = False) -> "Gradual[i64]": ...
def position(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The position of one of the elements along an axis, several, or all."""


@overload
def moment(
    x: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", axis: int | Axes, keepdims: bool = False, correction: int = 0
) -> "Gradual[F]": ...
@overload
def moment(x: "Gradual[F]", axis: None = None, keepdims: Flat = False, correction: int = 0) -> "Var[F]": ...
@overload
def moment(x: "Var[F, *S, N]", axis: Literal[-1], keepdims: Flat = False, correction: int = 0) -> "Var[F, *S]": ...
@overload
def moment(x: "Var[F, N, *S]", axis: Literal[0], keepdims: Flat = False, correction: int = 0) -> "Var[F, *S]": ...
@overload
def moment(
    x: "Var[F, Any, *tuple[Any, ...]]", axis: int, keepdims: bool = False, correction: int = 0
) -> "Gradual[F]": ...
@overload
def moment(x: "Gradual[F]", axis: Axes | None = None, keepdims: bool = False, correction: int = 0) -> "Gradual[F]": ...
def moment(x: Any, axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Any:
    """A `reduction` whose number of elements is corrected."""


@overload
def product(a: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]", b: "Gradual[F]") -> "Gradual[F]": ...
@overload
def product(a: "Gradual[F]", b: "Var[F, UnknownAxis, *tuple[UnknownAxis, ...]]") -> "Gradual[F]": ...
@overload
def product(a: "Var[F, *Bs, M, K]", b: "Var[F, K, N]") -> "Var[F, *Bs, M, N]": ...
@overload
def product(a: "Var[F, M, K]", b: "Var[F, *Bs, K, N]") -> "Var[F, *Bs, M, N]": ...
@overload
def product(a: "Var[F, *Bs, M, K]", b: "Var[F, *Bs, K, N]") -> "Var[F, *Bs, M, N]": ...
@overload
def product(a: "Var[F, K]", b: "Var[F, K]") -> "Var[F]": ...
@overload
def product(a: "Var[F, *Bs, M, K]", b: "Var[F, K]") -> "Var[F, *Bs, M]": ...
@overload
def product(a: "Var[F, K]", b: "Var[F, *Bs, K, N]") -> "Var[F, *Bs, N]": ...
@overload
def product(a: Constant, b: "Gradual[F]") -> "Gradual[F]": ...
@overload
def product(a: "Gradual[F]", b: Constant) -> "Gradual[F]": ...
def product(a: Any, b: Any) -> Any:
    """A matrix product whose leading axes are broadcast; a vector is a row on the left and a column on the right."""


class Var(SomeVar[D], Arithmetic, Generic[D, *S]):
    """A handle to one node of one tape; its type carries the element type and, where known, the shape.

    Operators take another Var, an array or a number; numbers and arrays become constants. Unlike the ops
    themselves, ``+ - * / // % **``, ``& | ^`` and the comparisons broadcast, by a ``broadcast_to`` node that the tape
    shows. ``numpy.asarray`` gives the value, and numpy's functions are refused with the op that does the same.
    Every use of a Var of another tape, or from before ``tape.reset()``, is a TapeError.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    if TYPE_CHECKING:  # checkers refuse by themselves what these refuse
        __array_ufunc__ = None

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array: ...
    else:
        __array__, __array_function__, __array_ufunc__ = value_array, refuse_function, numpy_operator
        __getattr__ = refuse_attribute

    def _repr_html_(self) -> str:
        """What it is, and some of its values, in a notebook."""
        return var_html(self)

    @overload
    def __iter__(self: "_Unknown[D]") -> "Iterator[Gradual[D]]": ...
    @overload
    def __iter__(self: "Var[D, N, *S2]") -> "Iterator[Var[D, *S2]]": ...
    def __iter__(self) -> Any:
        """What lies along the first axis, one after another. Raises ShapeError for a scalar."""
        if not self.value.sizes:
            raise ShapeError("iter: expected an axis to go along, got a scalar; use .item() for its value")
        return (self[i] for i in range(len(self)))

    @overload
    def __matmul__(self: "_Unknown[D]", other: "Gradual[D] | Array") -> "Gradual[D]": ...
    @overload
    def __matmul__(self: "Gradual[D]", other: "_Unknown[D]") -> "Gradual[D]": ...
    @overload
    def __matmul__(self: "Var[D, *Bs, M, K]", other: "Var[D, K, N]") -> "Var[D, *Bs, M, N]": ...
    @overload
    def __matmul__(self: "Var[D, M, K]", other: "Var[D, *Bs, K, N]") -> "Var[D, *Bs, M, N]": ...
    @overload
    def __matmul__(self: "Var[D, *Bs, M, K]", other: "Var[D, *Bs, K, N]") -> "Var[D, *Bs, M, N]": ...
    @overload
    def __matmul__(self: "Var[D, K]", other: "Var[D, K]") -> "Var[D]": ...
    @overload
    def __matmul__(self: "Var[D, *Bs, M, K]", other: "Var[D, K]") -> "Var[D, *Bs, M]": ...
    @overload
    def __matmul__(self: "Var[D, K]", other: "Var[D, *Bs, K, N]") -> "Var[D, *Bs, N]": ...
    @overload
    def __matmul__(self: "Gradual[D]", other: Array) -> "Gradual[D]": ...
    def __matmul__(self, other: Any) -> Any:
        """``self @ other``: the matrix product over the last two axes; leading axes are broadcast."""
        return OPS["matmul"].call(self, other)

    def __rmatmul__(self, other: Array) -> "Gradual[D]":
        """``other @ self``."""
        return OPS["matmul"].call(other, self)

    def __lt__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self < other``; no gradient."""
        return binary("less", self, other)

    def __le__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self <= other``; no gradient."""
        return binary("less_equal", self, other)

    def __gt__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self > other``; no gradient."""
        return binary("greater", self, other)

    def __ge__(self, other: "Var[D, *S] | Array | Number") -> "Var[boolean, *S]":
        """``self >= other``; no gradient."""
        return binary("greater_equal", self, other)

    def __eq__(self, other: object) -> "Var[boolean, *S]":  # type: ignore[override]  # pyright: ignore
        """``self == other`` element by element, as in numpy; no gradient."""
        return binary("equal", self, other)

    def __ne__(self, other: object) -> "Var[boolean, *S]":  # type: ignore[override]  # pyright: ignore
        """``self != other`` element by element; no gradient."""
        return binary("not_equal", self, other)

    @overload
    def __getitem__(self: "_Unknown[D]", index: Any) -> "Gradual[D]": ...
    @overload
    def __getitem__(self: "Var[D, N, *S2]", index: int) -> "Var[D, *S2]": ...
    @overload
    def __getitem__(self, index: Any) -> "Gradual[D]": ...
    def __getitem__(self, index: Any) -> Any:
        """As in numpy: ints, slices with steps, ``...``, ``None``, arrays of indices and masks."""
        if has_arrays(index):
            advanced: Any = COMPOSED["index"]
            return advanced(self, index=index)
        return OPS["getitem"].call(self, index)

    @overload
    def astype(self, dtype: type[D2]) -> "Var[D2, *S]": ...
    @overload
    def astype(self, dtype: Any) -> "Var[Any, *S]": ...
    def astype(self, dtype: Any) -> Any:
        """The same values in another element type, as `ops.cast` converts them; a float's gradient is cast back."""
        return OPS["cast"].call(self, dtype)

    @property
    def T(self: "Var[D, M, N]") -> "Var[D, N, M]":
        """The transpose of a matrix."""
        return OPS["transpose2d"].call(self)

    relu = method("relu", elementwise, "``max(self, 0)``.")
    exp = method("exp", elementwise, "``e ** self``.")
    log = method("log", elementwise, "The natural logarithm.")
    tanh = method("tanh", elementwise, "The hyperbolic tangent.")
    sigmoid = method("sigmoid", elementwise, "``1 / (1 + e ** -self)``.")
    abs = method("absolute", elementwise, "``|self|``.")
    square = method("square", elementwise, "``self * self``.")
    sqrt = method("sqrt", elementwise, "The square root of ``max(self, 0)``.")
    detach = method("stop_gradient", elementwise, "The same value, through which no gradient flows.")

    sum = method("reduce_sum", reduction, "The sum over an axis, several, or all.")
    mean = method("reduce_mean", reduction, "The mean over an axis, several, or all.")
    max = method("reduce_max", reduction, "The largest element along an axis, several, or all.")
    min = method("reduce_min", reduction, "The smallest element along an axis, several, or all.")
    prod = method("prod", reduction, "The product along an axis, several, or all.")
    argmax = method("argmax", position, "The position of the first largest element; no gradient.")
    argmin = method("argmin", position, "The position of the first smallest element; no gradient.")
    var = method("var", moment, "The variance along an axis, several, or all; ``correction=1`` for the unbiased one.")

    def swapaxes(self, axis1: int, axis2: int) -> "Gradual[D]":
        """Two axes exchanged."""
        return OPS["swapaxes"].call(self, axis1, axis2)

    def permute(self, *axes: int) -> "Gradual[D]":
        """The axes in another order."""
        return OPS["permute"].call(self, axes)

    @overload
    def reshape(self, shape: type[Shape[*S2]], /) -> "Var[D, *S2]": ...
    @overload
    def reshape(self, *shape: int | tuple[int, ...] | list[int]) -> "Gradual[D]": ...
    def reshape(self, *shape: Any) -> Any:
        """The same elements under another shape; one size may be -1, one Dim may be new."""
        one = len(shape) == 1 and not isinstance(shape[0], int | np.integer)
        return OPS["reshape"].call(self, shape[0] if one else shape)

    @overload
    def flatten(self, start_axis: type[Shape[*S2]]) -> "Var[D, *S2]": ...
    @overload
    def flatten(self, start_axis: int = 0) -> "Gradual[D]": ...
    def flatten(self, start_axis: Any = 0) -> Any:
        """The axes from ``start_axis`` on joined into one: into the last of a ``Shape[...]``."""
        return OPS["flatten"].call(self, start_axis)

    @overload
    def broadcast_to(self, shape: type[Shape[*S2]]) -> "Var[D, *S2]": ...
    @overload
    def broadcast_to(self, shape: tuple[int, ...]) -> "Gradual[D]": ...
    def broadcast_to(self, shape: Any) -> Any:
        """Repeated to ``shape``."""
        return OPS["broadcast_to"].call(self, shape)


_Unknown = Var[D, UnknownAxis, *tuple[UnknownAxis, ...]]
"""What only a gradual Var is, for overloads that must not guess its axes."""

Gradual = Var[D, *tuple[Any, ...]]
"""``Gradual[f32]``: a Var whose shape the annotations do not say."""

AnyVar = Var[Any, *tuple[Any, ...]]
"""A Var about which the type checker knows nothing; it fits everywhere, like Any."""


def is_var(x: Any) -> TypeGuard[AnyVar]:
    """``isinstance(x, Var)`` in words that type checkers can follow from Any."""
    return isinstance(x, Var)
