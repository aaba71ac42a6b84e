"""The bound table agrees with the program: every row, derived again from the program and the arrays themselves."""

from ctypes import c_int64

from .....tape.numerics.engine.launch import Words
from .....tape.numerics.engine.machine import KERNEL, PARTS, TABLE, WORDS
from .....tape.numerics.prepared.loop import NestedWords
from ....lower.plan import operand_strides
from ..bits import difference
from ..report import CheckError
from ..subject import Part, Subject


def check_table(subject: Subject) -> str:
    """Kernel address, pointers, words and parts of every row of every plan."""
    for part in subject.parts:
        check_rows(subject, part)
    return f"{sum(part.bound.count for part in subject.parts)} rows of kernel, pointers, words and parts"


def check_rows(subject: Subject, part: Part) -> None:
    """The same for one plan. Raises CheckError naming the op."""
    bound, ops = part.bound, part.program.ops
    if len(bound.rows) != len(ops):
        raise CheckError(f"{part.graph.name}: expected a table of {len(ops)} rows, got {len(bound.rows)}")
    bases = _bases(subject, part)
    for i, op in enumerate(ops):
        row = bound.rows[i].tolist()
        _require(part, i, "kernel", op.kernel.address(op.element), row[KERNEL])
        _require(part, i, "parts", bound.plan.parts[i], row[PARTS])
        pointers = [bases[part.program.root(v)] + part.program.layout(v).offset for v in op.table]
        if i in bound.plan.scratch:
            pointers.append(_arena(part) + bound.plan.scratch[i].offset)
        _require(part, i, "pointers", pointers, _words_at(row[TABLE], len(pointers)))
        words = op.words if isinstance(op.words, Words) else op.words.words(operand_strides(part.program, op))
        if isinstance(words, NestedWords):
            held = [w for w in bound.words if isinstance(w, NestedWords) and w.address == row[WORDS]]
            _require(part, i, "words", [words.content], [w.content for w in held])
            continue
        expected = words.values.tolist()
        _require(part, i, "words", expected, _words_at(row[WORDS], len(expected)))


def _require(part: Part, i: int, what: str, expected: object, found: object) -> None:
    if expected != found:
        raise CheckError(f"{part.op_name(i)}: {what}: expected {expected}, got {found}")


def _words_at(address: int, count: int) -> list[int]:
    return list((c_int64 * count).from_address(address)) if count else []


def _arena(part: Part) -> int:
    """Where the arena begins: the same for every block."""
    starts = {int(part.bound.memory[root].ctypes.data) - block.offset for root, block in part.bound.plan.slots.items()}
    if len(starts) > 1:
        raise CheckError(f"{part.graph.name}: the blocks of the arena lie in {len(starts)} different pieces of memory")
    return starts.pop() if starts else 0


def _bases(subject: Subject, part: Part) -> dict[int, int]:
    """Root → its address, from the arrays of the step and the offsets of the plan."""
    graph = part.program.graph
    arrays = subject.held(graph)
    found = {id: int(array.ctypes.data) for id, array in arrays.items()}
    found |= {root: _arena(part) + block.offset for root, block in part.bound.plan.slots.items()}
    for whole, members in part.program.groups.items():
        found[whole] = _group(part, whole, {found[m] - offset for m, offset in members.items() if m in arrays})
    for id in graph.values.keys() & part.constants.keys():
        found[id] = _constant(part, id)
    return found


def _group(part: Part, whole: int, starts: set[int]) -> int:
    """Where a group begins: where its members outside say, else in memory of its own."""
    if len(starts) > 1:
        raise CheckError(f"{part.graph.name}: the members of group %{whole} do not lie side by side")
    return starts.pop() if starts else int(part.bound.memory[whole].ctypes.data)


def _constant(part: Part, id: int) -> int:
    """Where a constant is kept, whose elements must be those that were recorded."""
    wrong = difference(part.constants[id], part.program.layout(id).array(part.bound.memory[id]))
    if wrong is not None:
        raise CheckError(f"{part.graph.name}: constant %{id}: {wrong}")
    return int(part.bound.memory[id].ctypes.data)
