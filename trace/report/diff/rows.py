"""Two recorded steps as rows: each op of one beside its like in the other, and what the first difference reaches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from ....base.runs.completed_step import TapeNode
from ...comparing.ops import OpDifference, aligned
from ...v2.read.op_digests import OpDigests


class RowMark(Enum):
    """What is said of a value or gradient; by the class that its row has in the page."""

    EQUAL = ""
    FIRST = "first"
    """It is the first difference."""
    FLOWS = "flows"
    """It differs, and is computed from the first difference."""
    BESIDE = "beside"
    """It differs, and is not computed from the first difference."""


@dataclass(frozen=True, slots=True)
class NodePair:
    """A node of each run, by its position there; None where a run has none.

    Args:
        a, b: the positions.
        parents: the rows of all its inputs, in either run.
        change: how the ops themselves differ: "only in a", "only in b", "another op", "other inputs"; else empty.
    """

    a: int | None
    b: int | None
    parents: frozenset[int]
    change: str

    @property
    def both(self) -> tuple[int | None, int | None]:
        """The positions."""
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two steps; `others` are the positions of its values that differ."""

    ops: OpDigests
    others: frozenset[int]


class Rows:
    """Two steps beside each other, in order of execution; `values` and `grads` are the marks of each row.

    Args:
        a, b: the digests of both.
        first: the first op that differs, as the comparison found it; None if there is none.

    >>> nodes = TapeNode("leaf", "float64", ()), TapeNode("exp", "float64", (), (0,))
    >>> a, b = (OpDigests(nodes, (b"w", value), (None, None)) for value in (b"x", b"y"))
    >>> [mark.name for mark in Rows(a, b, OpDifference("value", 1, nodes[1], 2)).values]
    ['EQUAL', 'FIRST']
    """

    def __init__(self, a: OpDigests, b: OpDigests, first: OpDifference | None) -> None:
        self.a, self.b = a, b
        self.rows = _rows(a.nodes, b.nodes)
        self._arrived = [any(pair) for pair in map(self.gradients, self.rows)]
        self.backward = [r for r in reversed(range(len(self.rows))) if self._arrived[r]]
        """The rows at which gradients arrived, in the order of the way back."""
        others = [bool(row.change) or _differ(*self.digests(row)) for row in self.rows]
        started = [_is(row, first) for row in self.rows]
        reached = self._reached(started)
        self.values = _marks(others, started, reached)
        differing = [row.both for row, differs in zip(self.rows, others, strict=True) if differs]
        self.sides = tuple(
            Side(ops, frozenset(i for both in differing if (i := both[k]) is not None)) for k, ops in enumerate((a, b))
        )
        others = [_differ(*self.gradients(row)) for row in self.rows]
        backward = first is not None and first.what == "grad"
        begins = next((r for r in self.backward if others[r]), None) if backward else None
        started = [r == begins for r in range(len(self.rows))]
        reached = self._reached_back(started, reached)
        self.grads = _marks(others, started, reached)

    def digests(self, row: NodePair) -> tuple[bytes | None, bytes | None]:
        """Those of both values."""
        return _of(self.a.values, row.a), _of(self.b.values, row.b)

    def gradients(self, row: NodePair) -> tuple[bytes | None, bytes | None]:
        """Those of both gradients; None where none arrived."""
        return _of(self.a.grads, row.a), _of(self.b.grads, row.b)

    def _reached(self, started: Sequence[bool]) -> list[bool]:
        """What is computed from a value of which something started, that value included."""
        reached = list(started)
        for r, row in enumerate(self.rows):
            reached[r] = reached[r] or any(reached[p] for p in row.parents)
        return reached

    def _reached_back(self, started: Sequence[bool], values: Sequence[bool]) -> list[bool]:
        """The same of gradients: the backward of an op reads what arrived at it, its inputs and its value.

        Of a value that is reached by an input ``values`` says so too.
        """
        reached = list(started)
        for r in self.backward:  # what takes a value stands behind it, and passes its gradient on before
            if reached[r] or values[r]:
                for p in self.rows[r].parents:
                    reached[p] = True
        return reached


def _rows(a: Sequence[TapeNode], b: Sequence[TapeNode]) -> list[NodePair]:
    pairs = list[tuple[int | None, int | None, str]]()
    for tag, i1, i2, j1, j2 in aligned(a, b):
        change = "" if tag == "equal" else "another op"
        pairs += [(i, j, change) for i, j in zip_longest(range(i1, i2), range(j1, j2))]
    of_a = {i: r for r, (i, _, _) in enumerate(pairs) if i is not None}
    of_b = {j: r for r, (_, j, _) in enumerate(pairs) if j is not None}
    return [_row(_inputs(a, i, of_a), _inputs(b, j, of_b), i, j, change) for i, j, change in pairs]


def _row(x: list[int], y: list[int], i: int | None, j: int | None, change: str) -> NodePair:
    if i is None or j is None:
        change = f"only in {'a' if j is None else 'b'}"
    return NodePair(i, j, frozenset(x + y), change or ("other inputs" if x != y else ""))


def _inputs(nodes: Sequence[TapeNode], position: int | None, rows: Mapping[int, int]) -> list[int]:
    return [] if position is None else [rows[p] for p in nodes[position].parents]


def _of(digests: Sequence[bytes | None], position: int | None) -> bytes | None:
    return None if position is None else digests[position]


def _differ(x: bytes | None, y: bytes | None) -> bool:
    return x != y


def _is(row: NodePair, first: OpDifference | None) -> bool:
    """Whether a row is the first value, or op, that differs."""
    if first is None or first.what == "grad":
        return False
    return first.index == (row.a if first.what == "removed" else row.b)


def _marks(differ: Sequence[bool], started: Sequence[bool], reached: Sequence[bool]) -> list[RowMark]:
    """What is to be said of each row."""
    found = list[RowMark]()
    for differs, begins, flows in zip(differ, started, reached, strict=True):
        other = RowMark.FIRST if begins else RowMark.FLOWS if flows else RowMark.BESIDE
        found.append(other if differs or begins else RowMark.EQUAL)
    return found
