"""Programs: a step as a straight list of kernel calls over places in storage."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...tape.numerics.engine.chain import Chain
from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.engine.launch import Words
from ...tape.numerics.sizes import Sizes
from ...tape.ops.conv.kernels.words import Workspace
from ...tape.ops.linear.kernels.product import Product
from ...tape.record.lowering import StridedLayout
from ...tape.values.tables import PlainTable, Tabled
from ..ir.graph import IRGraph, Role
from .array_layout import ArrayLayout


class StoragePlace(NamedTuple):
    """Where a value lies: the value whose storage it shares (itself, unless it is another's view), and how."""

    root: int
    layout: ArrayLayout


class RepeatedCalls(ABC):
    """Words of a call that makes others, with what these need: it has no parts, and they may have."""

    kernel: ClassVar[Kernel]
    """What makes them."""

    @property
    @abstractmethod
    def versions(self) -> list[tuple[Kernel, np.dtype[Any]]]:
        """The kernels that it calls, each with the element type that it is compiled for."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether any call has more than one part."""

    @property
    @abstractmethod
    def work(self) -> int:
        """How long all calls take, in operations of elementwise kernels."""

    @property
    @abstractmethod
    def flops(self) -> int:
        """Arithmetic operations of all calls."""

    @abstractmethod
    def with_kernels(self, kernels: Mapping[Kernel, Kernel]) -> "RepeatedCalls":
        """The same with other kernels in the place of some."""

    @abstractmethod
    def words(self, strides: tuple[Sizes, ...]) -> Words:
        """The words of the kernel."""

    @abstractmethod
    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes of memory that it needs to work in."""


@dataclass(frozen=True, slots=True, eq=False)
class LoweredOp:
    """A kernel call: its pointer table is ``outputs`` then ``inputs``.

    ``words`` are fixed, or made from the strides of the inputs at the positions ``strided``, which alone need
    not be dense. ``aliases`` are the inputs whose storage the first output may take. ``pointwise`` says that
    each element of the output comes from the elements at its position. ``source`` is the node it comes from.
    """

    kernel: Kernel
    element: np.dtype[Any]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    words: Words | StridedLayout
    work: int
    source: int
    strided: tuple[int, ...] = ()
    aliases: tuple[int, ...] = ()
    pointwise: bool = False
    refusal: str = ""

    def with_kernels(self, kernels: Mapping[Kernel, Kernel]) -> "LoweredOp":
        """The same call of another kernel, if it is in the place of this one."""
        words = self.words.with_kernels(kernels) if isinstance(self.words, Chain | RepeatedCalls) else self.words
        return replace(self, kernel=kernels.get(self.kernel, self.kernel), words=words)

    @property
    def flops(self) -> int:
        """Arithmetic operations; ``work`` counts those of products by the time that they take."""
        return self.words.flops if isinstance(self.words, Product | Workspace | RepeatedCalls) else self.work

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel, and those that it calls."""
        return tuple([kernel for kernel, _ in self.versions])

    @property
    def versions(self) -> list[tuple[Kernel, np.dtype[Any]]]:
        """The same, each with the element type that it is compiled for."""
        own = (self.kernel, self.element)
        if isinstance(self.words, Chain):
            return [own, *[(link.kernel, link.element) for link in self.words.links]]
        return [own, *self.words.versions] if isinstance(self.words, RepeatedCalls) else [own]

    @property
    def table(self) -> tuple[int, ...]:
        """The values in the order of the pointer table."""
        return self.outputs + self.inputs


@dataclass(frozen=True, repr=False)
class Program(Tabled):
    """The lowered ops of a graph, in the order of execution, and the place of every value.

    ``views`` are the nodes that became views of other values and need no op; ``groups`` are blocks in which
    several values lie side by side: root → the roots that were put there, and where.
    """

    graph: IRGraph
    ops: tuple[LoweredOp, ...]
    places: Mapping[int, StoragePlace]
    views: frozenset[int]
    groups: Mapping[int, Mapping[int, int]] = field(default_factory=dict[int, Mapping[int, int]])

    def with_ops(self, ops: "tuple[LoweredOp, ...] | list[LoweredOp]") -> "Program":
        """The same program with other ops; itself, with all that is known of it, if they are its own."""
        return self if len(ops) == len(self.ops) and all(map(is_, ops, self.ops)) else replace(self, ops=tuple(ops))

    @cached_property
    def called(self) -> frozenset[Kernel]:
        """The kernels of its ops, without those that these call."""
        return frozenset([op.kernel for op in self.ops])

    def with_kernels(self, kernels: Mapping[Kernel, Kernel]) -> "Program":
        """The same program with other kernels in the place of some."""
        return self.with_ops([op.with_kernels(kernels) for op in self.ops]) if kernels else self

    def kernels(self) -> list[Kernel]:
        """The kernels that its ops call, each once, those inside chains too."""
        return list(dict.fromkeys(kernel for op in self.ops for kernel in op.kernels))

    def layout(self, value: int) -> ArrayLayout:
        """The layout of a value."""
        return self.places[value].layout

    def root(self, value: int) -> int:
        """The value whose storage a value shares."""
        return self.places[value].root

    def is_static(self, root: int) -> bool:
        """Whether a root is made by an op, and lies in the arena."""
        value = self.graph.values.get(root)
        return root not in self.groups and (value is None or value.role is Role.STATIC)

    @cached_property
    def kept(self) -> frozenset[int]:
        """The roots of what must be there after the last op."""
        return frozenset({self.root(v) for v in (*self.graph.outputs.values(), *self.graph.updates.values())})

    @cached_property
    def readers(self) -> Mapping[int, Sequence[LoweredOp]]:
        """The ops that read each root that is read."""
        found, places = defaultdict[int, list[LoweredOp]](list), self.places
        for op in self.ops:
            for root in {places[v].root for v in op.inputs}:
                found[root].append(op)
        return dict(found)

    def table(self) -> PlainTable:
        """One row per op: what it runs, on what, and where it comes from."""
        columns = ("op", "kernel", "outputs", "inputs", "shape", "node")
        return PlainTable(f"lowered {self.graph.name}", columns, list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for i, op in enumerate(self.ops):
            shape = str(self.layout(op.outputs[0]).shape) if op.outputs else ""
            outputs, inputs = (" ".join(f"%{v}" for v in values) for values in (op.outputs, op.inputs))
            node = f"{op.source}"
            yield {
                "op": i,
                "kernel": op.kernel.name,
                "outputs": outputs,
                "inputs": inputs,
                "shape": shape,
                "node": node,
            }
