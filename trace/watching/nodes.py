"""Which nodes of a step the names of a condition stand for: variables of the user's program, layers, ops."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby

from ...base.runs.completed_step import TapeNode
from ...base.suggest import listing
from ...runtime.ir.step_tape import Choice, Listed
from ...tape.graph.node import LEAF
from ...tape.location import CodePosition, assigned
from ..json_value import Plain
from .expression import ConditionError, Reference


@dataclass(frozen=True)
class WatchedNode(Plain):
    """A node of a step that a condition was tried with."""

    op: str
    name: str
    """The variable of the user's program that took it; else empty."""
    layer: str
    """The path of the layer that made it, such as ``encoder.0``; else empty."""
    shape: tuple[int, ...]
    line: str
    """The user's line, such as ``train.py:12: h = ops.relu(x)``; empty where it is not known."""
    micro_batch: int

    def __str__(self) -> str:
        layer = f" of layer {self.layer}" if self.layer else ""
        micro = f", micro-batch {self.micro_batch}" if self.micro_batch else ""
        return f"{self.op}{f' {self.name!r}' if self.name else ''}{layer}, shape {self.shape}{micro}"


@dataclass(frozen=True, kw_only=True)
class Trial(Choice):
    """A value that is wanted of a step: for which reference, and in which of the trials of the condition."""

    reference: Reference
    trial: int
    about: WatchedNode


class NodesOf:
    """Chooses the nodes of a condition among those of a step.

    Args:
        error: what is wrong with a name, with its place.
        references: names of nodes.
        known: other names that there are, for errors.
    """

    def __init__(
        self,
        error: Callable[[Reference, str], ConditionError],
        references: Sequence[Reference],
        known: Sequence[str],
    ) -> None:
        self._error, self._references, self._known = error, references, known
        self._asked = False

    def __call__(self, nodes: Sequence[Listed]) -> list[Trial]:
        """Every node that is looked at, by trial; none where a later step has no such node."""
        passes = [list(one) for _, one in groupby(range(len(nodes)), lambda i: id(nodes[i].of))]
        found, trials = list[Trial](), 0
        for number, places in enumerate(passes):
            one = _Pass([nodes[i] for i in places], places[0], number)
            by_reference = {reference: self._found(one, reference) for reference in self._references}
            count = self._count(by_reference)
            for reference, ids in by_reference.items():
                for k in range(count):
                    i = ids[k % len(ids)]
                    gradient, about = reference.what == "grad", one.about(i)
                    found.append(Trial(places[i], gradient, reference=reference, trial=trials + k, about=about))
            trials += count
        self._asked = True
        return found

    def _found(self, one: "_Pass", reference: Reference) -> list[int]:
        ids = one.matching(reference.name) if reference.pattern else one.named(reference.name)
        if not ids and not self._asked:
            there = listing(reference.name, [*one.names, *self._known])
            raise self._error(reference, f"a step has no {reference.name!r}: it has {there}")
        return ids

    def _count(self, by_reference: Mapping[Reference, Sequence[int]]) -> int:
        """How many trials a micro-batch takes: what stands for several nodes is taken node by node, in their order."""
        counts = {reference: len(ids) for reference, ids in by_reference.items()}
        several = {n for n in counts.values() if n > 1}
        if min(counts.values()) == 0:
            return 0
        if len(several) > 1:
            said = ", ".join(f"{reference} is {n} nodes" for reference, n in counts.items() if n > 1)
            last = [reference for reference, n in counts.items() if n > 1][-1]
            raise self._error(last, f"expected as many nodes for each name, got: {said}")
        return max(several, default=1)


_assigned = lru_cache(assigned)


class _Pass:
    """The nodes of one micro-batch, with the names that they have.

    A line such as ``h = model(p, x)`` makes many nodes in a row, and so does a layer; its value are those among them
    that others take, or, where none is, the last.
    """

    def __init__(self, nodes: Sequence[Listed], start: int, micro_batch: int) -> None:
        self._nodes, self._micro_batch = nodes, micro_batch
        rows = [node.row for node in nodes]
        self._rows: list[TapeNode] = rows
        self._takers = [set[int]() for _ in nodes]
        for i, row in enumerate(rows):
            for parent in row.parents:
                self._takers[parent - start].add(i)
        self._variables = self._taken(
            [None if row.op == LEAF else node.of.tape[node.id].place for node, row in zip(nodes, rows, strict=True)]
        )
        self.names = [*dict.fromkeys([*self._variables.values(), *filter(None, self._layers())])]

    def _taken(self, places: Sequence[CodePosition | None]) -> dict[int, str]:
        """The variables that nodes are put into."""
        found = dict[int, str]()
        for place in dict.fromkeys(places):
            variable = None if place is None else _assigned(place)
            if variable is not None:
                given = self._given({i for i, other in enumerate(places) if other == place})
                found |= dict.fromkeys(given, variable)
        return dict(sorted(found.items()))

    def _layers(self) -> Iterator[str]:
        for row in self._rows:
            parts = row.scope.split(".")
            yield from (".".join(parts[: n + 1]) for n in range(len(parts)))

    def named(self, name: str) -> list[int]:
        """The nodes that a variable took; else those that a layer gave."""
        ids = [i for i, variable in self._variables.items() if variable == name]
        return ids or self._given({i for i, row in enumerate(self._rows) if f"{row.scope}.".startswith(f"{name}.")})

    def _given(self, inside: Set[int]) -> list[int]:
        """What comes out of some nodes: those that others take; else the last."""
        ids = [i for i in sorted(inside) if self._rows[i].op != LEAF]
        return [i for i in ids if self._takers[i] - inside] or ids[-1:]

    def matching(self, pattern: str) -> list[int]:
        """The nodes whose op, layer or variable a pattern matches."""
        return [
            i
            for i, row in enumerate(self._rows)
            if row.op != LEAF
            and any(fnmatchcase(text, pattern) for text in (row.op, row.scope, self._variables.get(i, "")) if text)
        ]

    def about(self, i: int) -> WatchedNode:
        """What is said of a node."""
        row = self._rows[i]
        return WatchedNode(row.op, self._variables.get(i, ""), row.scope, row.shape, row.place, self._micro_batch)
