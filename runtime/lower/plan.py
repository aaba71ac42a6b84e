"""The binding plan: for every value a slot, an offset and a lifetime; for every op the parts it is split into."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...tape.numerics.engine.launch import Words, parts_for
from ...tape.values.tables import PlainTable, Tabled
from ..ir.graph import Role
from ..step.memory import aligned
from .arena import ArenaBlock, overlaps, place
from .program import LoweredOp, Program, RepeatedCalls

HAND_OVER = 16
"""How many times cheaper a hand-over to helping threads is within a step than in an eager call."""


@dataclass(frozen=True, repr=False)
class BindingPlan(Tabled):
    """Where everything lies. ``slots`` maps a root to its block of the arena; ``blocks`` are all of them.

    Parameters, state, inputs and constants are bound to arrays of their own and have no block.
    """

    program: Program
    parts: tuple[int, ...]
    slots: Mapping[int, ArenaBlock]
    scratch: Mapping[int, ArenaBlock]
    """Op → the memory it needs while it runs."""
    arena_bytes: int

    @property
    def static_bytes(self) -> int:
        """What all statics and scratch would take without sharing memory."""
        statics = sum(aligned(self.program.layout(root).nbytes) for root in self.slots)
        return statics + sum(block.nbytes for block in self.scratch.values())

    @property
    def shared(self) -> bool:
        """Whether any call has more than one part, those that others make included."""
        made = [op.words.shared for op in self.program.ops if isinstance(op.words, RepeatedCalls)]
        return max(self.parts, default=1) > 1 or any(made)

    @property
    def blocks(self) -> list[ArenaBlock]:
        """Every block once."""
        return [*{id(block): block for block in self.slots.values()}.values(), *self.scratch.values()]

    def overlaps(self) -> list[tuple[ArenaBlock, ArenaBlock]]:
        """Pairs of blocks that share a byte at one op: none, in a right plan."""
        return overlaps(self.blocks)

    def table(self) -> PlainTable:
        """One row per value that has memory: shape, role, offset, bytes, lifetime."""
        rows = [self._row(root) for root in self.program.places if self.program.root(root) == root]
        title = (
            f"plan of {self.program.graph.name}: arena {self.arena_bytes:,} bytes for {self.static_bytes:,} of statics"
        )
        columns = ("value", "name", "role", "shape", "dtype", "offset", "bytes", "first", "last")
        return PlainTable(title, columns, rows)

    def _row(self, root: int) -> dict[str, Any]:
        layout, value = self.program.layout(root), self.program.graph.values.get(root)
        block = self.slots.get(root)
        return {
            "value": f"%{root}",
            "name": value.name if value and value.name else "-",
            "role": str(value.role if value else Role.STATIC),
            "shape": str(layout.shape),
            "dtype": str(layout.dtype),
            "offset": block.offset if block else "-",
            "bytes": layout.nbytes,
            "first": block.first if block else "-",
            "last": block.last if block else "-",
        }


@dataclass
class _Life:
    """The memory of one or several roots that follow each other in place."""

    owner: int
    nbytes: int
    first: int
    last: int


Split = Callable[[int], int]
"""Into how many parts a call of so many arithmetic operations is split."""


def alone(work: int) -> int:
    """One part, as of one thread."""
    return 1


def plan(program: Program, *, in_place: bool, split: Split = parts_for, rest: int = 0) -> BindingPlan:
    """Split the ops into parts and give every static its memory. With ``in_place`` off no op overwrites an input.

    Memory whose values are dead is taken again after ``rest`` more ops.
    """
    parts = tuple([0 if isinstance(op.words, RepeatedCalls) else split(op.work * HAND_OVER) for op in program.ops])
    lives = _lives(program, in_place=in_place)
    scratch = {i: n for i, op in enumerate(program.ops) if (n := _scratch(program, op, parts[i]))}
    found = {id(life): life for life in lives.values()}.values()
    wanted = [(life.owner, life.nbytes, life.first, life.last + rest) for life in found]
    wanted += [(-1 - i, nbytes, i, i + rest) for i, nbytes in scratch.items()]
    blocks, arena = place(sorted(wanted, key=lambda life: life[2]))
    owned = {block.owner: block for block in blocks}
    slots = {root: owned[life.owner] for root, life in lives.items()}
    return BindingPlan(program, parts, slots, {i: owned[-1 - i] for i in scratch}, arena)


def operand_strides(program: Program, op: LoweredOp) -> tuple[tuple[int, ...], ...]:
    """The strides in bytes of the operands that a kernel reads in place."""
    return tuple([program.layout(op.inputs[i]).strides for i in op.strided])


def _scratch(program: Program, op: LoweredOp, parts: int) -> int:
    return 0 if isinstance(op.words, Words) else op.words.scratch(operand_strides(program, op), parts)


def _lives(program: Program, *, in_place: bool) -> dict[int, _Life]:
    """The life of every root that an op makes."""
    last, places = _last_reads(program), program.places
    lives: dict[int, _Life] = {}
    for i, op in enumerate(program.ops):
        for root in [places[v].root for v in op.outputs]:
            if root in lives or not program.is_static(root):
                continue
            end = max(last.get(root, i), i)
            taken = _overwritten(program, op, i, root, lives, last) if in_place and op.aliases else None
            if taken is None:
                lives[root] = _Life(root, program.layout(root).nbytes, i, end)
            else:
                taken.last = end
                lives[root] = taken
    return lives


def _last_reads(program: Program) -> dict[int, int]:
    """The last op that reads each root; past the end for what must stay."""
    last, places = dict[int, int](), program.places
    for i, op in enumerate(program.ops):
        for value in op.table:
            last[places[value].root] = i
    return {**last, **dict.fromkeys(program.kept, len(program.ops))}


def _overwritten(
    program: Program, op: LoweredOp, i: int, root: int, lives: Mapping[int, _Life], last: Mapping[int, int]
) -> _Life | None:
    """The life whose memory the output may take: of an input that fills it and is read here for the last time."""
    places, nbytes = program.places, program.layout(root).nbytes
    roots = [places[v].root for v in op.inputs]
    for position in op.aliases:
        given = roots[position]
        life = lives.get(given)
        if life is None or not life.last == last[given] == i or roots.count(given) > 1:
            continue
        if places[op.inputs[position]].layout.nbytes == nbytes == program.layout(given).nbytes:
            return life
    return None
