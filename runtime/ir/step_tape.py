"""What a step computes, listed in one order, whether it ran op by op or is recorded to run from a table."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import Array
from ...base.runs.completed_step import StepTape, TapeNode
from ...tape.graph.node import LEAF, Node
from ..step.evaluate import Evaluation, evaluations
from ..step.training_step import TrainingStep
from .attributes import canonical


@dataclass(frozen=True)
class ForwardPass:
    """The forward pass of one micro-batch on a tape, and the gradient that backward made of each of its values."""

    tape: Sequence[Node]
    inside: range
    """Ids of the nodes of this pass; what it takes from outside is a leaf to it."""
    params: Collection[int]
    grads: Mapping[int, Any]
    """By node id."""


class Listed(NamedTuple):
    """A node of a step: which pass it is of, and which node of that pass's tape."""

    of: ForwardPass
    id: int
    row: TapeNode

    @property
    def grad(self) -> Any:
        """Its gradient; None where none arrived, and for what a pass takes from outside, parameters excepted."""
        return None if self.row.op == LEAF and self.id not in self.of.params else self.of.grads.get(self.id)


@dataclass(frozen=True)
class Choice:
    """A value of a step that somebody wants: which node of its list, and whether its gradient is meant."""

    node: int
    gradient: bool = False


Chosen: TypeAlias = list[tuple[Choice, Array | None]]
"""Choices with their values; None for a gradient that did not arrive."""

Choose: TypeAlias = Callable[[Sequence[Listed]], Sequence[Choice]]
"""What somebody wants of a step, by its list of nodes; asked once for each recording of the step."""


def listed(passes: Sequence[ForwardPass]) -> list[Listed]:
    """The nodes of a step in the order of execution, a leaf before the first op that takes it."""
    found: list[Listed] = []
    for one in passes:
        position: dict[int, int] = {}
        for id, node in _in_order(one):
            position[id] = len(found)
            parents = () if id not in one.inside or node.op is None else tuple([position[p] for p in node.parents])
            found.append(Listed(one, id, _row(one, node, parents)))
    return found


def _in_order(one: ForwardPass) -> Iterator[tuple[int, Node]]:
    known: set[int] = set()
    for id in one.inside:
        node = one.tape[id]
        if node.op is None:
            continue
        for parent in dict.fromkeys(node.parents):
            if parent not in known:  # an op inside would be known
                known.add(parent)
                yield parent, one.tape[parent]
        known.add(id)
        yield id, node


def _row(one: ForwardPass, node: Node, parents: tuple[int, ...]) -> TapeNode:
    spec = node.value.spec
    dtype, shape = str(np.dtype(spec.dtype)), tuple(spec.shape)
    if node.op is None or node.id not in one.inside:
        return TapeNode(LEAF, dtype, shape, name=node.name or "" if node.id in one.params else "")
    attrs = ", ".join(f"{key}={canonical(value)!r}" for key, value in node.attrs.items())
    return TapeNode(node.op_name, dtype, shape, parents, attrs, node.name or "", node.scope, _place(node))


def _place(node: Node) -> str:
    """The user's line; the file as seen from the working directory, or by its name alone if it lies elsewhere."""
    at = node.location
    if at is None:
        return ""
    path, here = Path(at.file), Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path.name
    return f"{shown}:{at.line}: {at.text}"


def eager_tape(step: TrainingStep, batch: Any) -> StepTape:
    """Every value of a step on a batch and its gradient, computed op by op. Trains nothing.

    Raises what the loss function raises; infinite and NaN values are returned as they are.
    """
    return tape_of(_eager_passes(step, batch), step.params)


def _eager_passes(step: TrainingStep, batch: Any) -> list[Evaluation]:
    micros, recipe = step.recipe.micro_batches(batch), step.recipe
    return list(evaluations(step.loss_fn, step.params, micros, step.point, step.groups.frozen, recipe.order))


def eager_chosen(step: TrainingStep, batch: Any, choose: Choose) -> Chosen:
    """Some values of a step on a batch, computed op by op. Trains nothing."""
    return chosen_of(_eager_passes(step, batch), step.params, choose)


def chosen_of(passes: Sequence[Evaluation], params: Collection[str], choose: Choose) -> Chosen:
    """The same of the micro-batches of a step that were evaluated."""
    nodes = listed([_evaluated(made, params) for made in passes])

    def value(one: Choice) -> Array | None:
        node = nodes[one.node]
        if not one.gradient:
            return node.of.tape[node.id].value.array
        return None if node.grad is None else node.grad.array

    return [(one, value(one)) for one in choose(nodes)]


def tape_of(passes: Sequence[Evaluation], params: Collection[str]) -> StepTape:
    """The tapes of the micro-batches of a step as one list; ``params`` are the names of the parameters."""
    forward = [_evaluated(made, params) for made in passes]
    nodes = listed(forward)
    return StepTape(
        tuple([node.row for node in nodes]),
        [node.of.tape[node.id].value.array for node in nodes],
        [None if node.grad is None else node.grad.array for node in nodes],
    )


def _evaluated(made: Evaluation, params: Collection[str]) -> ForwardPass:
    nodes = list(made.tape)
    ids = {node.id for node in nodes if node.op is None and node.requires_grad and node.name in params}
    return ForwardPass(nodes, range(len(nodes)), ids, made.dense.reached())
