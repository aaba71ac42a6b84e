"""Lowering: every node of a graph becomes kernel calls, or a view of what is there.

The rules stand in the op records; here their slots become values with places. An input that a kernel needs
in row-major order and that lies otherwise is copied once, before its first reader.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...base.arrays import Array
from ...tape.errors import DomainError
from ...tape.numerics.basic.copy import copy, copy_words
from ...tape.numerics.engine.launch import Words
from ...tape.record.lowering import KernelStep, Slot, StridedStep, ViewStep, order
from ...tape.record.op import OPS
from ...tape.values.dtypes import boolean
from ..ir.bodies import ATTRIBUTES
from ..ir.graph import IRGraph, IRNode, Role
from ..optim.state_ops import STATE_OPS
from .array_layout import ArrayLayout
from .program import LoweredOp, Program, RepeatedCalls, StoragePlace

Repeated = Callable[[IRNode], RepeatedCalls]

COPY_ELEMENTS = {1: np.dtype(np.bool_), 4: np.dtype(np.float32), 8: np.dtype(np.float64)}
"""The element type under which a copy moves elements of so many bytes."""


class Lowering:
    """A program in the making.

    Without ``aliases`` what lies in row-major order after a view is copied, without ``strides`` what does not.
    """

    def __init__(
        self, graph: IRGraph, constants: Mapping[int, Array], repeated: Repeated, *, aliases: bool, strides: bool
    ) -> None:
        """``repeated(node)`` plans what runs bodies."""
        self.graph, self.aliases, self.strides, self._repeated = graph, aliases, strides, repeated
        self._outputs = set(graph.outputs.values())
        self._consumed = self._outputs & _read(graph, state=True) - _read(graph, state=False)
        """Outputs that rules alone read, and in row-major order: gradients."""
        self.ops: list[LoweredOp] = []
        self.places: dict[int, StoragePlace] = {}
        self.viewed: set[int] = set()
        self._dense: dict[int, int] = {}
        self._ids: Iterator[int] = iter(range(max(graph.values, default=-1) + 1, 1 << 62))
        for value in graph.values.values():
            if value.id in constants:
                self.places[value.id] = StoragePlace(value.id, stored(constants[value.id])[1])
            elif value.role is not Role.STATIC:
                self.places[value.id] = StoragePlace(value.id, ArrayLayout.dense(value.shape, value.dtype))

    def run(self) -> Program:
        """Lower every node."""
        for node in self.graph.nodes:
            if node.op in STATE_OPS:
                self._state_op(node)
            elif node.op in ATTRIBUTES:
                self._bodies(node)
            else:
                self._op(node)
        return Program(self.graph, tuple(self.ops), self.places, frozenset(self.viewed))

    def _op(self, node: IRNode) -> None:
        values = self.graph.values
        specs = [None if i is None else values[i].spec for i in node.inputs]
        slots, result = OPS[node.op].lowered(specs, node.attrs)
        ids: dict[Slot, int] = dict(zip(slots, node.reads, strict=True))
        before = len(self.ops)
        for slot in order(result):
            ids[slot] = node.outputs[0] if slot is result else next(self._ids)
            self._step(slot, ids, node.id)
        if result in slots:
            self.places[node.outputs[0]] = self.places[ids[result]]
        self._hold(node.outputs[0], node.id)
        if len(self.ops) == before:
            self.viewed.add(node.id)

    def _bodies(self, node: IRNode) -> None:
        words = self._repeated(node)
        for out in node.outputs:
            spec = self.graph.values[out].spec
            self.places[out] = StoragePlace(out, ArrayLayout.dense(spec.shape, spec.dtype))
        inputs = tuple([self.dense(v, node.id) for v in node.reads])
        self.ops.append(LoweredOp(words.kernel, boolean.dtype, node.outputs, inputs, words, words.work, node.id))

    def _hold(self, out: int, source: int) -> None:
        """Copy an output of the graph that is a view of what the step overwrites: it is read after the step.

        One that rules alone read, and whose axes are in another order, is copied into row-major order: they want it so,
        and so does whoever reads it after the step.
        """
        place = self.places[out]
        overwritten = out in self._outputs and place.root in self.graph.updates
        turned = not place.layout.is_dense and 0 not in place.layout.strides
        if overwritten or (turned and out in self._consumed):
            self._copy(out, place, source)

    def _step(self, slot: Slot, ids: Mapping[Slot, int], source: int) -> None:
        step, out = slot.step, ids[slot]
        assert step is not None, "order() gives slots with a step"
        inputs = [ids[x] for x in step.inputs]
        if isinstance(step, ViewStep):
            self._view(out, inputs[0], step, source)
            return
        self.places[out] = StoragePlace(out, ArrayLayout.dense(step.out.shape, step.out.dtype))
        if isinstance(step, StridedStep):
            ready = tuple([v if i in step.strided else self.dense(v, source) for i, v in enumerate(inputs)])
            self.ops.append(
                LoweredOp(step.kernel, step.out.dtype, (out,), ready, step.layout, step.work, source, step.strided)
            )
            return
        ready = tuple([self.dense(v, source) for v in inputs])
        self.ops.append(_kernel_call(step, out, ready, source))

    def _view(self, out: int, x: int, step: ViewStep, source: int) -> None:
        place = self.places[x]
        layout = place.layout.through(step.view)
        if layout is None:
            place = self.places[self.dense(x, source)]
            layout = place.layout.through(step.view)
            if layout is None:
                raise DomainError(f"step: expected view {step.name} to move no element of a dense array; fix the op")
        if self.aliases if layout.is_dense else self.strides:
            self.places[out] = StoragePlace(place.root, layout)
        else:
            self._copy(out, StoragePlace(place.root, layout), source)

    def dense(self, value: int, source: int) -> int:
        """The value itself if its elements lie in row-major order, else a copy in which they do."""
        place = self.places[value]
        if place.layout.is_dense:
            return value
        if value not in self._dense:
            self._dense[value] = self._copy(next(self._ids), place, source)
        return self._dense[value]

    def _copy(self, out: int, place: StoragePlace, source: int) -> int:
        layout = place.layout
        self.places[out] = StoragePlace(out, ArrayLayout.dense(layout.shape, layout.dtype))
        viewed = next(self._ids)
        self.places[viewed] = place
        words = copy_words(layout.shape, layout.strides, layout.dtype.itemsize)
        element, one = COPY_ELEMENTS[layout.dtype.itemsize], not any(layout.strides)
        op = LoweredOp(copy, element, (out,), (viewed,), words, prod(layout.shape), source, pointwise=one)
        self.ops.append(op)
        return out

    def _state_op(self, node: IRNode) -> None:
        record, specs = STATE_OPS[node.op], [self.graph.values[i].spec for i in node.reads]
        overwritten = node.reads[: record.in_place]
        for x, out in zip(overwritten, node.outputs, strict=False):
            self.places[out] = self.places[x]
        for out in node.outputs[record.in_place :]:
            fresh = self.graph.values[out]
            self.places[out] = StoragePlace(out, ArrayLayout.dense(fresh.shape, fresh.dtype))
        inputs = tuple([self.dense(v, node.id) for v in node.reads[record.in_place :]])
        if record.gathers:
            inputs = (self._gathered(inputs[:-1]), inputs[-1])
            size: tuple[int, ...] = (len(node.reads) - 1,)
        else:
            size = () if record.sized is None else (specs[record.sized].size,)
        words = Words(*size, *node.attrs.get("attributes", ()))
        work = specs[record.sized].size * record.work if record.sized is not None else 0
        element = specs[record.element].dtype
        aliases = (0,) if record.fresh and record.replaces else ()
        self.ops.append(LoweredOp(record.kernel, element, node.outputs, inputs, words, work, node.id, aliases=aliases))

    def _gathered(self, values: tuple[int, ...]) -> int:
        """One storage for values of one element each, side by side in their order."""
        first = self.places[values[0]].layout
        whole = next(self._ids)
        self.places[whole] = StoragePlace(whole, ArrayLayout.dense((len(values),), first.dtype))
        for i, value in enumerate(values):
            offset = i * first.dtype.itemsize
            self.places[value] = StoragePlace(whole, ArrayLayout(first.shape, first.strides, offset, first.dtype))
        return whole


def _read(graph: IRGraph, *, state: bool) -> set[int]:
    """The values that the nodes read that update state, or all others."""
    return {v for node in graph.nodes if (node.op in STATE_OPS) is state for v in node.reads}


def _kernel_call(step: KernelStep, out: int, inputs: tuple[int, ...], source: int) -> LoweredOp:
    return LoweredOp(
        step.kernel,
        step.element,
        (out,),
        inputs,
        step.ints,
        step.work,
        source,
        aliases=step.aliases,
        pointwise=step.pointwise,
        refusal=step.refusal,
    )


def stored(array: Array) -> tuple[Array, ArrayLayout]:
    """A constant as it is kept, and its layout: one number that is repeated is kept once."""
    if array.size and not any(array.strides):
        return as_strided(array, (1,), (array.itemsize,)), ArrayLayout(array.shape, array.strides, 0, array.dtype)
    dense = np.ascontiguousarray(array)
    return dense, ArrayLayout.dense(array.shape, array.dtype)
