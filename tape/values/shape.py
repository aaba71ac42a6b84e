"""Shapes: tuples of sizes at run time, named dimensions for the type checker, and the rule that joins them.

``Shape[Batch, In]`` is read twice: by the type checker, as the type arguments of a ``Var``, and at run
time, as a `Pattern` that is unified with the sizes of a real array.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Generic, Literal, TypeVar, TypeVarTuple, Unpack, cast, get_args, get_origin

from ..errors import ShapeError
from ..numerics.sizes import Sizes

S = TypeVarTuple("S")

Bindings = Mapping[object, Any]
"""What is known of each Dim and TypeVar (an int) and each TypeVarTuple (a tuple of ints)."""


class Dim:
    """A named axis: ``class Batch(Dim)`` has any one size, ``class Pixels(Dim, size=784)`` a fixed one."""

    size: ClassVar[int | None] = None

    def __init_subclass__(cls, *, size: int | None = None) -> None:
        super().__init_subclass__()
        cls.size = size


class Shape(Generic[*S], tuple[int, ...]):
    """The sizes of an array, row-major: ``Shape((2, 3))``; subscripted, a named shape: ``Shape[Batch, In]``.

    Raises ShapeError for a size below zero.

    >>> s = Shape((2, 3))
    >>> s.size, s.rank, s.can_broadcast_to(Shape((4, 2, 3)))
    (6, 2, True)
    >>> Shape(()).size
    1
    """

    def __new__(cls, sizes: Iterable[int] = ()) -> "Shape[*S]":
        """A shape of the given sizes."""
        shape = super().__new__(cls, sizes)
        if min(shape, default=0) < 0:
            raise ShapeError(f"Shape: expected sizes of at least 0, got {tuple(shape)}")
        return shape

    @property
    def size(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self)

    def can_broadcast_to(self, other: Sizes) -> bool:
        """Whether an array of this shape can be repeated to ``other``, aligned at the last axis."""
        return can_broadcast(self, other)


def can_broadcast(sizes: Sizes, target: Sizes) -> bool:
    """Whether ``sizes`` can be repeated to ``target``: aligned at the end, each size equal or 1."""
    padded = (1,) * (len(target) - len(sizes)) + tuple(sizes)
    return len(padded) == len(target) and all(a in (1, b) for a, b in zip(padded, target, strict=True))


@dataclass(frozen=True, slots=True)
class Pattern:
    """Axes before and after at most one pack; an axis is a Dim, a TypeVar, an int or Any."""

    before: tuple[object, ...]
    pack: object = None
    after: tuple[object, ...] = ()

    @classmethod
    def of(cls, *args: object) -> "Pattern":
        """From type arguments: axes, with at most one ``*pack`` among them."""
        axes = [get_args(a)[0] if get_origin(a) is Literal else a for a in args]
        for i, axis in enumerate(axes):
            if get_origin(axis) is Unpack or getattr(axis, "__unpacked__", False):
                inner = get_args(axis)[0]
                pack = inner if isinstance(inner, TypeVarTuple) else Any
                return cls(tuple(axes[:i]), pack, tuple(axes[i + 1 :]))
        return cls(tuple(axes))

    @classmethod
    def named(cls, call: str, shape: object) -> "Pattern":
        """From ``Shape[...]`` or from a tuple of ints. Raises ShapeError for anything else."""
        if get_origin(shape) is Shape:
            return cls.of(*get_args(shape))
        if isinstance(shape, tuple) and all(isinstance(size, int) for size in cast(tuple[object, ...], shape)):
            return cls(cast(Sizes, shape))
        raise ShapeError(f"{call}: argument 'shape': expected Shape[...] or a tuple of sizes, got {shape!r}")

    @property
    def exact(self) -> bool:
        """Whether every axis has a name or a size, so that unified inputs decide the shape."""
        return self.pack is not Any and Any not in self.before + self.after

    def unify(self, sizes: Sizes, known: Bindings) -> dict[object, Any] | None:
        """``known`` extended so that this pattern describes ``sizes``, or None if they disagree."""
        head, tail = len(self.before), len(sizes) - len(self.after)
        if tail < head or (self.pack is None and tail > head):
            return None
        bound = dict(known)
        for axis, size in zip(self.before + self.after, sizes[:head] + sizes[tail:], strict=True):
            if axis is not Any and bound.setdefault(axis, _fixed(axis, size)) != size:
                return None
        middle = sizes[head:tail]
        if isinstance(self.pack, TypeVarTuple) and bound.setdefault(self.pack, middle) != middle:
            return None
        return bound

    def sizes(self, known: Bindings) -> Sizes:
        """The sizes that an `exact` pattern stands for once all its names are bound."""
        middle = known[self.pack] if self.pack is not None else ()
        return (*(_size(a, known) for a in self.before), *middle, *(_size(a, known) for a in self.after))

    def solved(self, call: str, known: Bindings) -> Sizes:
        """The sizes of its axes, -1 for those that have none yet. Raises ShapeError if it has a pack."""
        if self.pack is not None:
            raise ShapeError(f"{call}: expected a name or a size for each axis, got {self.render(known)}")
        return tuple(_size(axis, known) for axis in self.before)

    def require(self, call: str, sizes: Sizes, known: Bindings) -> dict[object, Any]:
        """`unify`, but raises ShapeError if they disagree."""
        bound = self.unify(sizes, known)
        if bound is None:
            raise ShapeError(f"{call}: expected shape {self.render(known)}, got {sizes}")
        return bound

    def render(self, known: Bindings) -> str:
        """``(3, N)``: what is known as a number, what is free by name, ``*Bs`` or ``...`` for any axes."""
        parts = [_show(axis, known) for axis in self.before]
        if self.pack in known:
            parts += map(str, known[self.pack])
        elif self.pack is not None:
            parts.append("..." if self.pack is Any else f"*{self.pack}")
        parts += [_show(axis, known) for axis in self.after]
        one_size = len(parts) == 1 and parts[0][0] not in "*."
        return f"({parts[0]},)" if one_size else f"({', '.join(parts)})"


def _fixed(axis: object, default: int) -> int:
    """The size an axis has by itself: an int, or a Dim with a declared size."""
    size = axis if isinstance(axis, int) else getattr(axis, "size", None)
    return size if isinstance(size, int) else default


def _size(axis: object, known: Bindings) -> int:
    return int(known[axis]) if axis in known else _fixed(axis, -1)


def _show(axis: object, known: Bindings) -> str:
    if axis is Any:
        return "_"
    size, name = _size(axis, known), str(getattr(axis, "__name__", axis))
    if size == -1:
        return name
    return str(size) if isinstance(axis, int | TypeVar) else f"{name}={size}"


def normal_axis(op: str, axis: int, rank: int, argument: str = "axis") -> int:
    """``axis`` counted from the front. Raises ShapeError, which names the argument, if there is no such axis.

    >>> normal_axis("softmax", -1, 3)
    2
    """
    if not -rank <= axis < rank:
        raise ShapeError(f"{op}: argument {argument!r}: expected {_axis_range(rank)}, got {axis}")
    return axis % rank


def normal_axes(op: str, axis: int | tuple[int, ...] | None, rank: int, argument: str = "axis") -> Sizes:
    """Axes in ascending order, counted from the front; all of them for None.

    Raises ShapeError for an axis that does not exist or stands twice.
    """
    if axis is None:
        return tuple(range(rank))
    axes = tuple(sorted(normal_axis(op, a, rank, argument) for a in (axis if isinstance(axis, tuple) else (axis,))))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{op}: argument {argument!r}: expected different axes, got {axis}")
    return axes


def _axis_range(rank: int) -> str:
    return f"an axis from {-rank} to {rank - 1}" if rank else "no axis of a scalar"
