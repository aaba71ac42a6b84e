"""What if a value had been another one: what is changed in a past step, and the step that is done so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import Any

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.errors import DomainError
from ...runtime.step.eager import Clipped, EagerGradients, EagerStep, eager_gradients
from ...runtime.step.training_step import StateDict, TrainingStep
from ...tape import AnyTensor
from .execution import LossFn

Nodes = Mapping[tuple[int, int], Array]
"""Values of nodes by micro-batch and id."""


@dataclass(frozen=True)
class Edits:
    """Changes to the past step that a run continues from; arrays have the shapes of what they replace.

    Values are converted to the dtypes in place. A node's value is replaced as if its op had returned it: later values
    and derivatives follow from the new one. Gradients are replaced as the optimizer gets them, after clipping.
    """

    values: Arrays = field(default_factory=dict[str, Array])
    """Of parameters, of the optimizer's state and the model's state, before the step."""
    grads: Arrays = field(default_factory=dict[str, Array])
    """By parameter."""
    nodes: Nodes = field(default_factory=dict[tuple[int, int], Array])
    """By micro-batch, from 0, and id, as `PastStep.tapes` and `PastStep.table` have them; none of them a leaf."""

    @property
    def in_step(self) -> bool:
        """Whether the step itself changes, not only the state before it."""
        return bool(self.grads or self.nodes)

    @property
    def names(self) -> list[str]:
        """What is changed."""
        nodes = [f"node {id} of micro-batch {micro}" for micro, id in self.nodes]
        return [*self.values, *[f"grad({name})" for name in self.grads], *nodes]

    def state(self, before: StateDict) -> StateDict:
        """The state before the step, with these values. Raises DomainError for a name or shape that it has not."""
        known = {name: part for part, arrays in before.items() for name in arrays}
        made = {part: dict(arrays) for part, arrays in before.items()}
        for name, given in self.values.items():
            if name not in known:
                expected = f"expected a parameter or a state, such as {next(iter(known))!r}"
                raise DomainError(f"trace.continue_with: argument 'edits': {expected}, got {name!r}")
            made[known[name]][name] = like(name, given, before[known[name]][name])
        return made


UNEDITED = Edits()


def like(what: str, given: Any, old: Array) -> Array:
    """An array in the place of another, with its dtype. Raises DomainError for another shape."""
    array = np.asarray(given)
    if array.shape != old.shape:
        expected = f"expected shape {old.shape}, got {array.shape}"
        raise DomainError(f"trace.continue_with: argument 'edits': {what!r}: {expected}")
    with np.errstate(all="ignore"):
        return array.astype(old.dtype)


class EditedStep(EagerStep):
    """The step that is done with edits, op by op; made beside the one that goes on."""

    _edits: Edits
    _ops: Mapping[int, Mapping[int, AnyTensor]]

    @classmethod
    def of(cls, step: TrainingStep, edits: Edits, tapes: Any) -> "EditedStep":
        """A step on the arrays of another one; `tapes` are those of the past step. Raises DomainError."""
        made = cls.beside(step)
        made._edits, made._ops = edits, _by_op(edits.nodes, tapes)
        missing = next((name for name in edits.grads if name not in step.params), None)
        if missing is not None:
            raise DomainError(f"trace.continue_with: argument 'edits': grads: there is no parameter {missing!r}")
        return made

    def _gradients(self, batch: Any) -> EagerGradients:
        loss_fn = _replacing(self.loss_fn, self._ops)
        return eager_gradients(loss_fn, self.params, batch, self.recipe, self.point)

    def _clipped(self, grads: dict[str, Array]) -> Clipped:
        made = super()._clipped(grads)
        edited = {name: like(f"grad({name})", g, self.params[name]) for name, g in self._edits.grads.items()}
        return made._replace(grads={**made.grads, **edited})


def _by_op(nodes: Nodes, tapes: Any) -> dict[int, dict[int, AnyTensor]]:
    """New values by micro-batch and number of the op among those of its tape. Raises DomainError."""
    found: dict[int, dict[int, AnyTensor]] = {}
    for (micro, id), array in nodes.items():
        what = f"trace.continue_with: argument 'edits': node {id} of micro-batch {micro}"
        if not 0 <= micro < len(tapes) or not 0 <= id < len(tapes[micro]):
            raise DomainError(f"{what}: the step has no such node")
        node = tapes[micro].node(id)
        if node.op is None:
            raise DomainError(f"{what}: expected a node that an op makes, got a leaf; give parameters as values")
        number = sum(tapes[micro].node(i).op is not None for i in range(id))
        found.setdefault(micro, {})[number] = AnyTensor(like(node.title, array, node.value.array))
    return found


def _replacing(loss_fn: LossFn, ops: Mapping[int, Mapping[int, AnyTensor]]) -> LossFn:
    """The loss function, with other values of some ops; called for each micro-batch in turn."""
    calls = count()

    @wraps(loss_fn)  # with its signature, which says whether it takes a context
    def edited(p: Any, batch: Any, *context: Any) -> Any:
        tape = next(iter(p.values())).tape
        with tape.replacing(ops.get(next(calls), {})):
            return loss_fn(p, batch, *context)

    return edited
