"""What a plan is without addresses: its calls, their words, and the region and offset of every operand."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from ...tape.numerics.engine.chain import Chain
from ...tape.numerics.engine.launch import Words
from ...tape.numerics.prepared.loop import LoopCopy, LoopPointer
from ..lower.array_layout import ArrayLayout
from ..lower.bind import bytes_of
from ..lower.choice import ChoicePlan
from ..lower.loop import LoopPlan
from ..lower.lower import stored
from ..lower.plan import BindingPlan, operand_strides
from ..lower.program import LoweredOp
from ..step.memory import ALIGNMENT, aligned
from .source import LibrarySource

NOT_FINITE = "the loss or a gradient is not finite"
"""The words of a step that would train on such a number."""

Version = tuple[str, str, str]
"""A kernel by its module and its name, and its element type."""


@dataclass(frozen=True, slots=True)
class At:
    """Bytes from the start of a region: ``arena``, ``state``, ``const``, ``in0``, ``in1``, …, ``out0``, …"""

    region: str
    offset: int


Operand = At | LoopPointer
"""Where an operand begins; within a loop also in which of its arrays, and by how much it moves on."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A kernel of a chain, as in `Chain`: each operand's place and bytes of an element."""

    version: Version
    words: tuple[int, ...]
    operands: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LoopCalls:
    """Calls that are made for each of ``places``, in their order, with copies before the first and after each.

    ``truth`` lets another turn begin; None where all do.
    """

    places: range
    calls: tuple["Call", ...]
    before: tuple[LoopCopy, ...]
    after: tuple[LoopCopy, ...]
    truth: LoopPointer | None


@dataclass(frozen=True, slots=True)
class ChoiceCalls:
    """Two loops over the same arrays, and which of these is the truth that says which loop runs."""

    truth: int
    on_true: LoopCalls
    on_false: LoopCalls


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel call; or the links of a chain over ``size`` elements; or others. ``words`` are of a kernel alone."""

    version: Version
    operands: tuple[Operand, ...]
    words: tuple[int, ...] = ()
    links: tuple[ChainLink, ...] = ()
    size: int = 0
    inner: LoopCalls | ChoiceCalls | None = None
    message: str = ""

    @property
    def versions(self) -> list[Version]:
        """The kernels that are called."""
        if self.inner:
            sides = [self.inner] if isinstance(self.inner, LoopCalls) else [self.inner.on_true, self.inner.on_false]
            return [version for side in sides for call in side.calls for version in call.versions]
        return [link.version for link in self.links] or [self.version]


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """An array that a caller hands over, or finds."""

    name: str
    at: At
    layout: ArrayLayout


@dataclass(frozen=True)
class Image:
    """A plan. ``cleared`` are parts of the arena that hold zeros when the calls begin: offsets and bytes."""

    calls: tuple[Call, ...]
    arena: int
    const: bytes
    state: bytes
    inputs: tuple[PlacedArray, ...]
    outputs: tuple[PlacedArray, ...]
    held: tuple[PlacedArray, ...]
    cleared: tuple[tuple[int, int], ...]

    @property
    def versions(self) -> list[Version]:
        """The kernels that are called, each once."""
        return list(dict.fromkeys(version for call in self.calls for version in call.versions))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is computed, in hexadecimal: of all but the numbers in the state."""
        told = (self.calls, self.arena, len(self.state), self.inputs, self.outputs, self.held, self.cleared)
        return sha256(repr(told).encode() + self.const).hexdigest()


class Imaging:
    """An image in the making."""

    def __init__(self, plan: BindingPlan, source: LibrarySource) -> None:
        self.plan, self.program, self.source = plan, plan.program, source
        self.where = dict[int, At]()
        self.arena, self.const, self.state = ALIGNMENT + plan.arena_bytes, bytearray(), bytearray(ALIGNMENT)

    def run(self) -> Image:
        """The image of a plan of one thread; nothing is compiled or run."""
        inputs = self._inputs()
        self.where |= {root: At("arena", ALIGNMENT + block.offset) for root, block in self.plan.slots.items()}
        cleared = self._groups()
        self._held()
        self._constants()
        outputs = [
            PlacedArray(name, *self._of(self.program.graph.outputs[given]))
            for name, given in self.source.outputs.items()
        ]
        held = [PlacedArray(name, *self._of(id)) for id, (name, _) in self.source.held.items() if id in self.where]
        calls = [self._call(i, op) for i, op in enumerate(self.program.ops)]
        return Image(
            tuple(calls),
            self.arena,
            bytes(self.const),
            bytes(self.state) if held else b"",
            tuple(inputs),
            tuple(outputs),
            tuple(held),
            tuple(cleared),
        )

    # ------------------------------------------------------------------ where values lie

    def _of(self, value: int) -> tuple[At, ArrayLayout]:
        place = self.program.places[value]
        base = self.where[place.root]
        return At(base.region, base.offset + place.layout.offset), place.layout

    def _inputs(self) -> list[PlacedArray]:
        found = list[PlacedArray]()
        for k, (name, id) in enumerate(self.source.inputs.items()):
            self.where[id] = At(f"in{k}", 0)
            found.append(PlacedArray(name, self.where[id], self.program.layout(id)))
        return found

    def _groups(self) -> list[tuple[int, int]]:
        """Blocks of several values: in the state if they outlive a call; else in the arena, their gaps cleared."""
        gaps = list[tuple[int, int]]()
        for whole, members in self.program.groups.items():
            nbytes = self.program.layout(whole).nbytes
            if all(member in self.source.held for member in members):
                start = self._grown(self.state, bytes(nbytes))
                for member, offset in members.items():
                    self._put(member, start + offset)
                self.where[whole] = At("state", start)
                continue
            self.where[whole] = At("arena", self.arena)
            ends = [*list(members.values())[1:], nbytes]
            for (member, offset), end in zip(members.items(), ends, strict=True):
                full = offset + self.program.layout(member).nbytes
                gaps += [(self.arena + full, end - full)] if end > full else []
            self.arena += aligned(nbytes)
        return gaps

    def _held(self) -> None:
        """Other arrays that outlive a call."""
        for id, (_, array) in self.source.held.items():
            if id not in self.where and self.program.graph.values.get(id) is not None:
                self._put(id, self._grown(self.state, bytes(array.nbytes)))

    def _put(self, id: int, start: int) -> None:
        """An array to its place in the state."""
        data = np.ascontiguousarray(self.source.held[id][1]).tobytes()
        self.state[start : start + len(data)] = data
        self.where[id] = At("state", start)

    def _constants(self) -> None:
        """What is read of the rest, by its content: equal arrays lie there once."""
        known = dict[bytes, At]()
        for root in self._read():
            if root not in self.where:
                data = bytes_of(stored(self.source.constants[root])[0]).tobytes()
                if data not in known:
                    known[data] = At("const", self._grown(self.const, data))
                self.where[root] = known[data]

    def _read(self) -> list[int]:
        values = [v for op in self.program.ops for v in op.table] + sorted(self.program.kept)
        return list(dict.fromkeys(self.program.root(v) for v in values))

    @staticmethod
    def _grown(block: bytearray, data: bytes) -> int:
        """The offset at which data was added to a block, at the beginning of a line."""
        block += b"\0" * (-len(block) % ALIGNMENT)
        start = len(block)
        block += data
        return start

    # ------------------------------------------------------------------ calls

    def _call(self, i: int, op: LoweredOp) -> Call:
        operands = [self._of(v)[0] for v in op.table]
        if i in self.plan.scratch:
            operands.append(At("arena", ALIGNMENT + self.plan.scratch[i].offset))
        return call_of(self.plan, op, operands)


def call_of(plan: BindingPlan, op: LoweredOp, operands: Sequence[Operand]) -> Call:
    """A call of a plan, in a loop or outside."""
    version, given = version_of(op.kernel, op.element), tuple(operands)
    message = op.refusal or ("" if op.outputs else NOT_FINITE)
    if isinstance(op.words, LoopPlan):
        return Call(version, given, inner=_loop(op.words))
    if isinstance(op.words, ChoicePlan):
        on_true, on_false = op.words.sides
        return Call(version, given, inner=ChoiceCalls(len(on_true.results), _loop(on_true), _loop(on_false)))
    if isinstance(op.words, Chain):
        links = [
            ChainLink(
                version_of(k.kernel, k.element),
                numbers(k.words),
                tuple(zip(k.operands, k.itemsizes, strict=True)),
            )
            for k in op.words.links
        ]
        return Call(version, given, links=tuple(links), size=op.words.size)
    words = op.words if isinstance(op.words, Words) else op.words.words(operand_strides(plan.program, op))
    return Call(version, given, numbers(words), message=message)


def _loop(loop: LoopPlan) -> LoopCalls:
    body, calls = loop.body, list[Call]()
    for i, op in enumerate(body.program.ops):
        calls.append(call_of(body, op, loop.pointers(i, op)))
    return LoopCalls(loop.places, tuple(calls), tuple(loop.before), tuple(loop.after), loop.truth)


def version_of(kernel: Any, element: np.dtype[Any]) -> Version:
    """A kernel as another process finds it."""
    return kernel.body.__module__, kernel.name, str(element)


def numbers(words: Words) -> tuple[int, ...]:
    """The words of a call."""
    return tuple(int(word) for word in words.values)


def image_of(plan: BindingPlan, source: LibrarySource) -> Image:
    """The image of a plan that was made for one thread."""
    return Imaging(plan, source).run()
