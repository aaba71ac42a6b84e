"""What a loop, a choice or a checkpoint runs: nodes that are recorded once and applied again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..graph.node import Node
from ..var.var import AnyVar
from .body_tape import BodyTape


@dataclass(frozen=True, eq=False)
class Body:
    """Nodes in their order, and which of them are what: ids.

    ``carry``, ``xs`` and ``closed`` are leaves: the state before a step, its rows, and what the function takes from
    around, which is ``around`` on the tape of the loop. ``after`` is the state after a step, ``ys`` what it gives.
    """

    tape: BodyTape
    closed: Sequence[int]
    around: Sequence[AnyVar]
    ys: Sequence[int]
    size: int
    """How many nodes there were when it was recorded; loops in it may get more results."""
    carry: Sequence[int] = ()
    xs: Sequence[int] = ()
    after: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        tape: BodyTape,
        ys: Sequence[AnyVar],
        carry: Sequence[AnyVar] = (),
        xs: Sequence[AnyVar] = (),
        after: Sequence[AnyVar] = (),
    ) -> "Body":
        """What was recorded on a tape, by the Vars that were its leaves and that it gave."""
        around = list(tape.closed.values())
        ids = [[x.id for x in vars] for vars in ([leaf for _, leaf in around], ys, carry, xs, after)]
        return cls(tape, ids[0], [x for x, _ in around], ids[1], len(tape), *ids[2:])

    @property
    def nodes(self) -> Sequence[Node]:
        """All of them, by id."""
        return list(self.tape)

    @property
    def inputs(self) -> Sequence[int]:
        """Its leaves, in the order of a loop's inputs."""
        return [*self.carry, *self.xs, *self.closed]

    def invariant(self) -> set[int]:
        """What is the same in every step, as it depends on nothing but what is taken from around."""
        found = set(self.closed)
        for node in self.nodes:
            if node.op is not None and found.issuperset(node.parents):
                found.add(node.id)
        return found

    def requiring(self, inputs: Collection[int], steps: int) -> set[int]:
        """What depends on inputs that require gradients, in any of so many steps."""
        known = set(inputs)
        for _ in range(min(steps, len(self.carry) + 1)):
            for node in self.nodes:
                if any(need and parent in known for need, parent in zip(node.needs, node.parents, strict=True)):
                    known.add(node.id)
            handed = {id for id, after in zip(self.carry, self.after, strict=True) if after in known}
            if handed <= known:
                break
            known |= handed
        return known


def sharing(sides: Mapping[str, tuple[BodyTape, Sequence[AnyVar]]]) -> tuple[dict[str, Body], list[AnyVar]]:
    """The bodies recorded on these tapes, which gave these Vars, and what they take: each is given what any takes."""
    around = {id: x for inner, _ in sides.values() for id, (x, _) in inner.closed.items()}
    for inner, _ in sides.values():
        for x in around.values():
            inner.held(x)
        inner.closed = {id: inner.closed[id] for id in around}
    return {name: Body.of(inner, ys) for name, (inner, ys) in sides.items()}, list(around.values())
