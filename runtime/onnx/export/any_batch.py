"""Three exports of a model that differ in the size of the batch, made into one for every size.

What depends on the size is found in constants: whole numbers that grow with it by equal amounts, as shapes do, and
arrays that repeat one part along the axes that grow. These are computed from the shape of the first input; for
anything else the model is refused.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....tape.errors import DomainError
from ...step.batch import map_batch
from .graph import ExportError

TIMES = (1, 2, 3)
"""How many times the batch of the example the sizes are that are compared."""
NAME = "batch"
"""What the axis is called in the shapes of inputs and outputs."""

INT64 = np.dtype(np.int64)


def sized(x: Any) -> tuple[Any, ...]:
    """Examples of each size. Raises DomainError where the inputs have no first axis in common."""
    sizes = set[int]()

    def first_axis(where: str, array: Array) -> None:
        if not array.ndim or not array.shape[0]:
            raise DomainError(f"onnx.export: dynamic_batch: {where}: expected a batch first, got shape {array.shape}")
        sizes.add(array.shape[0])

    map_batch(first_axis, x, "x")
    if len(sizes) != 1:
        raise DomainError(f"onnx.export: dynamic_batch: expected inputs of one batch, got sizes {sorted(sizes)}")
    least = max(2, *sizes)

    def stretched(times: int) -> Callable[[str, Array], Array]:
        return lambda where, array: np.zeros((times * least, *array.shape[1:]), array.dtype)

    return tuple(map_batch(stretched(times), x, "x") for times in TIMES)


def for_every_batch(package: Any, models: Sequence[Any]) -> Any:
    """The one model. Raises ExportError for what depends on the size in another way."""
    made = package.ModelProto()
    made.CopyFrom(models[0])
    Merged(package, made, models).write()
    return made


class Merged:
    """The model as it is rewritten."""

    def __init__(self, package: Any, made: Any, models: Sequence[Any]) -> None:
        self._package, self._made, self._models = package, made, models
        read = package.numpy_helper.to_array
        self._constants = [{c.name: read(c) for c in model.graph.initializer} for model in models]
        self._sizes = [model.graph.input[0].type.tensor_type.shape.dim[0].dim_value for model in models]
        self._before, self._new, self._names = list[Any](), list[Any](), dict[Any, str]()

    def write(self) -> None:
        """Replace what depends on the size, and name the axis."""
        graph = self._made.graph
        if len({len(model.graph.node) for model in self._models}) > 1:
            raise _depends("the number of operators")
        for i, node in enumerate(graph.node):
            self._rewrite(node, [model.graph.node[i] for model in self._models])
        nodes, used = [*self._before, *graph.node], {name for node in graph.node for name in node.input}
        kept = [constant for constant in graph.initializer if constant.name in used]
        del graph.node[:], graph.initializer[:]
        graph.node.extend(nodes)
        graph.initializer.extend([*kept, *self._new])
        for field in ("input", "output"):
            every = [getattr(model.graph, field) for model in (self._made, *self._models)]
            for value, *others in zip(*every, strict=True):
                self._name_axes(value, others)

    def _rewrite(self, node: Any, nodes: Sequence[Any]) -> None:
        if any((other.op_type, other.attribute) != (node.op_type, node.attribute) for other in nodes):
            raise _depends(f"node '{node.name}'")
        for place, names in enumerate(zip(*(other.input for other in nodes), strict=True)):
            found = [constants.get(name) for constants, name in zip(self._constants, names, strict=True)]
            values = [value for value in found if value is not None]
            if len(values) < len(found):
                if len(set(names)) > 1:
                    raise _depends(f"input {place} of node '{node.name}'")
            elif len({(value.dtype, value.shape, value.tobytes()) for value in values}) > 1:
                node.input[place] = self._computed(f"input {place} of node '{node.name}'", values)

    def _computed(self, what: str, values: Sequence[Array]) -> str:
        """The name of a constant that depends on the size."""
        if len({value.shape for value in values}) == 1 and values[0].dtype == INT64:
            return self._integers(what, values)
        firsts = [_first(value, values) for value in values]
        if len({(first.dtype, first.shape, first.tobytes()) for first in firsts}) > 1 or any(
            (value != first).any() for value, first in zip(values, firsts, strict=True)
        ):
            raise _depends(what)
        shapes = [np.array(value.shape, INT64) for value in values]
        return self._node("Expand", self._constant(firsts[0]), self._integers(what, shapes))

    def _integers(self, what: str, values: Sequence[Array]) -> str:
        """Whole numbers that grow by as much from each size to the next, as a sum of what stays and a multiple."""
        step, rest = np.divmod(values[1] - values[0], self._sizes[1] - self._sizes[0])
        base = values[0] - step * self._sizes[0]
        if rest.any() or any((base + step * n != value).any() for n, value in zip(self._sizes, values, strict=True)):
            raise _depends(what)
        grown = self._node("Mul", self._constant(step), self._size())
        return self._node("Add", grown, self._constant(base)) if base.any() else grown

    def _size(self) -> str:
        """The size of the batch, a number."""
        shape = self._node("Shape", self._made.graph.input[0].name)
        return self._node("Gather", shape, self._constant(np.array(0)))

    def _node(self, kind: str, *inputs: str) -> str:
        """The result of a node, one for the same inputs."""
        key = (kind, *inputs)
        if key not in self._names:
            name = self._names[key] = f"{NAME}_{kind.lower()}_{len(self._names)}"
            self._before.append(self._package.helper.make_node(kind, list(inputs), [name], name=name))
        return self._names[key]

    def _constant(self, value: Array) -> str:
        key = (value.dtype, value.shape, value.tobytes())
        if key not in self._names:
            name = self._names[key] = f"{NAME}_constant_{len(self._names)}"
            self._new.append(
                self._package.numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
            )
        return self._names[key]

    def _name_axes(self, value: Any, others: Sequence[Any]) -> None:
        """The sizes of an input or output: numbers, ``batch``, or a text that says how they follow from it."""
        shapes = [[dim.dim_value for dim in other.type.tensor_type.shape.dim] for other in others]
        for dim, *sizes in zip(value.type.tensor_type.shape.dim, *shapes, strict=True):
            if len(set(sizes)) > 1:
                step = (sizes[1] - sizes[0]) / (self._sizes[1] - self._sizes[0])
                base = sizes[0] - step * self._sizes[0]
                dim.dim_param = NAME if (step, base) == (1, 0) else f"{step:g}*{NAME}{base:+g}"


def _first(value: Array, values: Sequence[Array]) -> Array:
    """The first of what lies along the axes that are not equally long in all, which stands for the others."""
    others = zip(*(value.shape for value in values), strict=False)
    return value[tuple(slice(None) if len(set(sizes)) == 1 else slice(1) for sizes in others)]


def _depends(what: str) -> ExportError:
    return ExportError(
        f"onnx.export: dynamic_batch: {what}: expected what stays or grows evenly with the size of the batch, got "
        "something else; export for each size"
    )
