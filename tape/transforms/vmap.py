"""``vmap``: a function of one example becomes a function of many, without a word of it changed.

The function is recorded once, on values that have the shape of one example and nothing else; then what was recorded is
computed for all examples, op by op, as `batching` says.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import DTypeError, GradientError, ShapeError
from ..graph.node import Node
from ..graph.symbol import VMAP
from ..ops import broadcast_to, permute
from ..values.pytree import Nest, beside, leaves, mapped
from ..values.shape import normal_axis
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import is_var, shape_of
from .batching import Members, apply, call_bodies
from .recorded_call import Function, name_of
from .symbolic_tape import SymbolicTape

Axes = int | None | Sequence[Any]
"""One axis for all, or one for each argument; None for what all examples share."""


def vmap(f: Function, in_axes: Axes = 0, out_axes: int = 0) -> Function:
    """The function that computes ``f`` for every index along an axis of its arguments, and stacks the results.

    ``in_axes`` is that axis for all arguments, or a tuple with one for each argument: a number, None for an argument
    that all share, or a nest of these like the argument. Arguments and results are nests of arrays, tensors or Vars, as
    for `grad`; with Vars among them the results are Vars, which can be differentiated. Every member has the bits that
    ``f`` gives it alone. f sees shapes and no values, and must not use Vars from outside. Raises ShapeError for axes
    that are not there, or of different sizes; DTypeError for in_axes that do not fit the arguments; GradientError if f
    returns something else than Vars.

    Source: jax.vmap.

    >>> import numpy as np
    >>> vmap(lambda w, x: (w * x).sum(), in_axes=(None, 0))(np.array([1.0, 2.0]), np.array([[1.0, 1.0], [3.0, 4.0]]))
    AnyTensor(array([ 3., 11.]))
    """

    def call(*args: Nest) -> Nest:
        axes = _axes_of(args, in_axes)
        given = mapped(lambda path, x: _Given.of(path, x, axes[path]), args)
        size = _size(given)
        tape = SymbolicTape(VMAP, unrolls=True)
        inputs = mapped(lambda _, x: tape.symbol(x.example, None, requires_grad=True), given)  # where members do
        out = f(*inputs)
        for path, x in leaves(out):
            if not is_var(x) or x.tape is not tape:
                got = "a Var of another tape" if is_var(x) else type(x).__name__
                at = f" at {path}" if path else ""
                raise GradientError(f"vmap: function {name_of(f)!r}: expected it to return a Var{at}, got {got}")
        known = {var.id: x.members(size) for (_, var), (_, x) in zip(leaves(inputs), leaves(given), strict=True)}
        computed = _replayed(tape, known)
        return mapped(lambda _, var: _stacked(computed[var.id], size, out_axes), out)

    call.__name__ = call.__qualname__ = f"vmap({name_of(f)})"
    return call


class _Given:
    """One value among the arguments: a Var or a tensor, and the axis along which the members lie, or None."""

    def __init__(self, path: str, value: Any, axis: int | None) -> None:
        self.path, self.value, self.axis = path, value, axis

    @classmethod
    def of(cls, path: str, x: Any, axis: int | None) -> "_Given":
        """From what was given. Raises ShapeError for an axis that it does not have."""
        value = x if is_var(x) or isinstance(x, AnyTensor) else AnyTensor.leaf(x, f"vmap: argument 'args{path}'")
        if axis is not None:
            axis = normal_axis("vmap", axis, len(shape_of(value)), f"in_axes for args{path}")
        return cls(path, value, axis)

    @property
    def example(self) -> Spec:
        """Shape and element type for one member."""
        shape = shape_of(self.value)
        return Spec(shape if self.axis is None else shape[: self.axis] + shape[self.axis + 1 :], self.value.dtype)

    def members(self, size: int) -> Any:
        """The value as `apply` takes it."""
        return self.value if self.axis is None else Members(size, _moved(self.value, self.axis, 0))


def _axes_of(args: tuple[Nest, ...], in_axes: Axes) -> dict[str, int | None]:
    """The axis of every value among the arguments, by its path. Raises DTypeError for axes that fit no arguments."""
    spread = [in_axes] * len(args) if in_axes is None or isinstance(in_axes, int) else list(in_axes)
    if len(spread) != len(args):
        raise DTypeError(f"vmap: argument 'in_axes': expected one for each of {len(args)} arguments, got {len(spread)}")
    return {path: axis for i, x in enumerate(args) for path, axis in _below(f"[{i}]", x, spread[i])}


def _below(path: str, x: Nest, axes: Any) -> list[tuple[str, int | None]]:
    """The axis of every value in one argument."""
    if axes is None or isinstance(axes, int):
        return [(below, axes) for below, _ in leaves(x, path)]
    given = beside(x, axes, "vmap", "in_axes")
    return [(below, axis) for (below, _), (_, _, axis) in zip(leaves(x, path), given, strict=True)]


def _size(given: Nest) -> int:
    """How many members there are. Raises ShapeError if that is not clear, or none."""
    every: list[_Given] = [x for _, x in leaves(given)]
    sizes = [(f"args{x.path}", shape_of(x.value)[x.axis]) for x in every if x.axis is not None]
    if not sizes:
        raise ShapeError("vmap: argument 'in_axes': expected an axis for at least one argument, got None for all")
    first, members = sizes[0]
    for path, size in sizes:
        if size != members:
            raise ShapeError(f"vmap: argument {path!r}: expected {members} members as in {first}, got {size}")
    if not members:
        raise ShapeError(f"vmap: argument {first!r}: expected at least one member, got none")
    return members


def _replayed(nodes: Iterable[Node], known: dict[int, Any]) -> dict[int, Any]:
    """The value of every node for all members, given those of the inputs."""
    for node in nodes:
        if node.id in known:
            continue
        if node.op is None:
            known[node.id] = node.value
            continue
        inputs = [None if source is None else known[source.id] for source in node.sources]
        if node.loop is None:
            known[node.id] = apply(node.op, inputs, node.attrs)
        else:
            known |= call_bodies(node.loop, inputs)
    return known


def _stacked(value: Any, size: int, axis: int) -> Any:
    """A result with the members along an axis; one that does not depend on them is repeated."""
    made: Any = value
    made = made.stacked if isinstance(made, Members) else broadcast_to(made, (size, *shape_of(made)))
    return _moved(made, 0, normal_axis("vmap", axis, len(shape_of(made)), "out_axes"))


def _moved(x: Any, source: int, target: int) -> Any:
    """An array with one axis in another place."""
    order = [axis for axis in range(len(shape_of(x))) if axis != source]
    order.insert(target, source)
    return x if source == target else permute(x, tuple(order))
