"""Values: a dtype, a shape and a read-only array."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar, TypeVarTuple, cast, overload

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...screen.pictures import Picture
from ..errors import DTypeError, ShapeError
from ..numerics.basic import arithmetic
from ..numerics.engine.launch import Words, launch
from ..numerics.sizes import Sizes
from .attributes import plain
from .dtypes import FLOATS, DType, element_dtype
from .shape import Pattern, Shape
from .spec import Spec
from .unique import Unique

D = TypeVar("D", bound=DType)
S = TypeVarTuple("S")


INT64 = 1 << 63
"""The first whole number that int64 does not hold."""

NUMBERS_KEPT = 1024
"""Numbers beside tensors that are kept, converted."""

_shape = lru_cache(NUMBERS_KEPT)(Shape[*tuple[Any, ...]])
"""The shape of sizes, which is asked for in every derivative."""


class AnyTensor:
    """A value whose shape is known at run time: a read-only array, contiguous or a strided view.

    The constructor takes ownership of ``array`` and makes it read-only; use `leaf` to copy. With ``spec`` it takes the
    caller's word that the array fits it and is read-only.
    """

    __slots__ = ("array", "spec")

    def __init__(self, array: Array, spec: Spec | None = None) -> None:
        if spec is None:
            array.setflags(write=False)
            spec = Spec(array.shape, array.dtype)
        self.array, self.spec = array, spec

    def __reduce__(self) -> Any:
        """Copies and pickles have the same bits, and are read-only too."""
        return type(self), (self.array,)

    @classmethod
    def leaf(cls, value: npt.ArrayLike, where: str = "leaf") -> "AnyTensor":
        """A tensor with its own copy of ``value``; integers become int64.

        Raises DTypeError for element types that the engine does not hold.

        >>> AnyTensor.leaf([1, 2]).dtype
        dtype('int64')
        """
        array = as_array(value, where)
        return cls(np.array(array, dtype=element_dtype(where, array.dtype), order="C", copy=True))

    @classmethod
    def number(cls, value: float | np.generic, dtype: np.dtype[Any], shape: tuple[int, ...] = ()) -> "AnyTensor":
        """A tensor of one repeated number, rounded to ``dtype`` by the engine's own kernel.

        numpy's conversion follows the calling thread's floating-point flags, which other libraries set.
        """
        number: Any = value if value.__class__ is float else plain(value)
        if number.__class__ is float or (dtype in FLOATS and not -INT64 <= number < INT64):
            return _repeated(float(number).hex(), dtype, shape)
        return cls(np.broadcast_to(np.array(number).astype(dtype), shape))

    @property
    def sizes(self) -> Sizes:
        """Its sizes as a plain tuple."""
        return self.spec.shape

    @property
    def shape(self) -> Shape[*tuple[Any, ...]]:
        """Its sizes."""
        return _shape(self.spec.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type, a numpy dtype."""
        return self.spec.dtype

    @property
    def size(self) -> int:
        """Its number of elements."""
        return self.spec.size

    def numpy(self) -> Array:
        """The array itself, read-only, without a copy."""
        return self.array

    def item(self) -> float | int | bool:
        """The value of a tensor of one element as a Python number. Raises ShapeError otherwise."""
        if self.array.size != 1:
            raise ShapeError(f"item: expected one element, got shape {self.array.shape}; use .numpy()")
        value: float | int | bool = self.array.item()
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The value for numpy, so that ``np.asarray(tensor)`` works."""
        return np.array(self.array, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        return f"AnyTensor({self.array!r})"

    def _repr_html_(self) -> str:
        """A picture of it and what is in it, in a notebook."""
        return Picture(self.array).to_html(type(self).__name__)

    def add(self, other: "AnyTensor") -> "AnyTensor":
        """The elementwise sum, by the engine's own kernel.

        Raises ShapeError or DTypeError unless both have one shape and one float dtype.
        """
        if other.array.shape != self.array.shape:
            raise ShapeError(f"add: argument 'other': expected shape {self.array.shape}, got {other.array.shape}")
        if other.dtype != self.dtype:
            raise DTypeError(f"add: argument 'other': expected dtype {self.dtype}, got {other.dtype}")
        if self.dtype not in FLOATS:
            raise DTypeError(f"add: expected float32 or float64, got {self.dtype}; convert with ops.cast")
        out = np.empty(self.array.shape, self.dtype)
        arrays = (out, dense(self.array), dense(other.array))
        launch(arithmetic.add, self.dtype, Words(out.size), arrays, out.size)
        return AnyTensor(out)

    @overload
    def expect(self, shape: type[Shape[*S]]) -> "Tensor[Any, *S]": ...
    @overload
    def expect(self, shape: tuple[int, ...]) -> "Tensor[Any, *tuple[Any, ...]]": ...
    def expect(self, shape: Any) -> Any:
        """The same value with a shape that was checked now and that the type checker knows from here on.

        Raises ShapeError if the sizes are others.
        """
        Pattern.named("expect", shape).require("expect", self.sizes, {})
        typed: Tensor[Any, *tuple[Any, ...]] = Tensor(self.array)
        return typed


class Tensor(AnyTensor, Generic[D, *S]):
    """An `AnyTensor` whose element type and shape the type checker knows: ``Tensor[f32, Batch, In]``."""

    __slots__ = ()


def as_array(value: Any, where: str) -> Array:
    """``value`` as an array that a tensor can hold a copy of, if its element type is one of the engine's.

    Raises DTypeError for what is no array: lists of unequal lengths, whole numbers beyond int64, and Vars, whose
    gradient would end here without a word.
    """
    given: Any = value
    if given.__class__ is not np.ndarray:
        _require_no_var(where, given)
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, OverflowError) as error:
        raise DTypeError(f"{where}: expected an array of numbers, got {type(value).__name__}: {error}") from None
    if array.dtype.kind == "u" and array.size and int(array.max()) >= INT64:
        raise DTypeError(f"{where}: expected whole numbers that int64 holds, got {array.max()}")
    return array


def _require_no_var(where: str, value: Any) -> None:
    first = value
    while isinstance(first, list | tuple) and first:
        first = cast(Sequence[Any], first)[0]
    if isinstance(first, Unique):
        kind = type(first).__name__
        what = f"a {kind}" if first is value else f"a {type(value).__name__} of {kind}s"
        raise DTypeError(
            f"{where}: expected an array of numbers, got {what}, whose gradient would end here; "
            "write x.value for its value alone"
        )


def dense(array: Array) -> Array:
    """``array`` if it is contiguous in row-major order, else a copy that is."""
    return array if array.flags.c_contiguous else array.copy(order="C")


@lru_cache(NUMBERS_KEPT)
def _repeated(hexadecimal: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> AnyTensor:
    """A float, in the notation that tells zeros apart, as `AnyTensor.number` makes it."""
    given = np.array(float.fromhex(hexadecimal))
    if dtype == np.float32:
        rounded = np.empty((), dtype)
        launch(arithmetic.to_float32, given.dtype, Words(1), (rounded, given), 1)
        given = rounded
    return AnyTensor(np.broadcast_to(given.astype(dtype), shape))
