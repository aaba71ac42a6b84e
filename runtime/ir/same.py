"""Whether two recordings do the same, seen node by node: of most no graph has to be made to be compared."""

from collections.abc import Mapping
from dataclasses import fields
from itertools import islice

from ...base.arrays import Array
from ...tape.graph.node import Node
from ...tape.graph.symbol import Symbol
from ...tape.ops import BUILT_IN
from ...tape.values.attributes import Attributes
from .record import LossRecording, Recorded, Recording

NODES = ("tape", "passes", "results")
"""Fields that hold nodes, and what is compared as far as both have it; all others say which nodes are what."""


def same_recording(first: Recorded, again: Recorded, nodes: int | None = None) -> bool:
    """Whether two recordings do the same beyond doubt; False leaves it to their graphs, as of all with bodies.

    With ``nodes`` the second is compared with so many nodes of the first, and in what it says of them.
    """
    said = [field.name for field in fields(again) if field.name not in NODES]
    if any(getattr(first, name) != getattr(again, name) for name in said) or not _same_results(first, again):
        return False
    count, held, held_again = len(first.tape) if nodes is None else nodes, first.tape.held, again.tape.held
    return len(again.tape) == count and all(
        _same_node(a, b) and (a.op is not None or _same_leaf(a, b, held, held_again))
        for a, b in zip(islice(first.tape, count), again.tape, strict=True)
    )


def follows_from_loss(recording: Recording) -> bool:
    """Whether what the loss function does says all: the derivatives of others' ops may read from Python too."""
    nodes = islice(recording.tape, recording.forward)
    return len(recording.passes) == 1 and all(
        node.op is None or (node.loop is None and node.op in BUILT_IN) for node in nodes
    )


def _same_results(first: Recorded, again: Recorded) -> bool:
    if isinstance(first, LossRecording) and isinstance(again, LossRecording):
        return first.results[: len(again.results)] == again.results
    return True


def _same_node(a: Node, b: Node) -> bool:
    """Whether two nodes in the same place of their tapes are made alike; a call of bodies is an op of its own."""
    if a.op is not b.op or (a.attrs is not b.attrs and not _same_attributes(a.attrs, b.attrs)):
        return False
    return [None if x is None else x.id for x in a.sources] == [None if x is None else x.id for x in b.sources]


def _same_attributes(a: object, b: object) -> bool:
    return isinstance(a, Attributes) and isinstance(b, Attributes) and a.key == b.key


def _same_leaf(a: Node, b: Node, held: Mapping[int, Array], held_again: Mapping[int, Array]) -> bool:
    """Whether two leaves are both unknown, one array that is read where it lies, or equal to the bit."""
    if a.value.spec is not b.value.spec:
        return False
    if isinstance(a.value, Symbol) or isinstance(b.value, Symbol):
        return a.value.__class__ is b.value.__class__
    if a.id in held or b.id in held_again:
        return held.get(a.id) is held_again.get(b.id)
    return a.value is b.value or a.value.array.tobytes() == b.value.array.tobytes()
