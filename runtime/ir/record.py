"""Recording: a loss function and its backward pass, run once on a symbolic tape.

Forward and backward are the tape's own nodes: backward is recorded by the same sweep that computes it eagerly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Arrays
from ...tape import AnyVar, Context, Random
from ...tape.graph.backward import DenseGrads
from ...tape.record.op import OPS
from ...tape.transforms.symbolic_tape import SymbolicTape
from ...tape.values.dtypes import element_dtype, i64
from ...tape.values.spec import Spec
from ..step.accumulate import Accumulation
from ..step.batch import map_batch
from ..step.loss_call import LossFn, call_loss
from ..step.recipe import Recipe
from .step_tape import ForwardPass


@dataclass(frozen=True)
class Recorded:
    """A function that was run on a symbolic tape, and which node is what it was given."""

    tape: SymbolicTape
    params: dict[str, int]
    inputs: list[int]
    step: int | None
    """The count of the steps before, where the function has a context."""
    model_state: dict[str, int]


@dataclass(frozen=True)
class LossRecording(Recorded):
    """A recorded loss function."""

    results: list[dict[str, int]]
    """What the loss function gave for each micro-batch, as it called it: the loss, metrics, what the state becomes."""


@dataclass(frozen=True)
class Recording(LossRecording):
    """A recorded loss function and its backward pass."""

    loss: int
    gradients: dict[int, int]
    """Value id → id of its gradient, for every parameter that has one."""
    dense: dict[int, int]
    """The same for every forward node that depends on a parameter, before micro-batches are averaged."""
    new_state: dict[int, int]
    """Id of an entry of the model's state → what it becomes, for those that change."""
    metrics: list[dict[str, int]]
    """What the loss function gives to be shown, by name, of each micro-batch."""
    forward: int
    """How many nodes the forward pass of the first micro-batch has, with all that stands before it."""
    passes: list[ForwardPass]
    """The forward pass of each micro-batch; gradients are ids."""


def record(
    loss_fn: LossFn,
    params: Arrays,
    example: Any,
    recipe: Recipe,
    model_state: Arrays | None = None,
    seed: int = 0,
    *,
    unrolls: bool = False,
) -> Recording:
    """Run ``loss_fn`` and its backward pass on values that have only shapes; ``unrolls`` writes loops out.

    Raises GradientError if the loss is no scalar Var or depends on no parameter; what the model raises;
    TapeError if the model reads a value.
    """
    run = _Passes(loss_fn, params, example, model_state or {}, seed, recipe, unrolls=unrolls)
    sums, arrived = Accumulation[AnyVar](recipe.order, recipe.accumulate), list[dict[int, int]]()
    for micro in recipe.micro_batches(run.batch):
        loss, grads = run(micro)
        sums.put(loss, run.of_parameters(grads), run.changed)
        arrived.append({id: g.id for id, g in grads.reached().items()})
    loss, means, state = sums.means(run.p)
    loss = output(loss)
    gradients = {run.p[name].id: var.id for name, var in means.items()}
    dense = {id: g for grads in arrived for id, g in grads.items()}
    return Recording(
        **vars(run.recorded()),
        loss=loss.id,
        gradients=gradients,
        dense={**dense, **gradients},
        new_state=run.new_state(state),
        metrics=run.metrics,
        forward=run.forward_nodes,
        passes=run.listed(arrived),
    )


@dataclass(frozen=True)
class SharedRecording(LossRecording):
    """A loss function recorded for consecutive micro-batches of a step: ids of the sums that they make whole."""

    losses: list[int]
    gradients: dict[str, list[int]]
    state: dict[str, list[int]]
    """Of what entries of the model's state become, for those that change."""
    metrics: list[dict[str, int]]


def record_share(
    loss_fn: LossFn,
    params: Arrays,
    example: Any,
    recipe: Recipe,
    model_state: Arrays,
    seed: int,
    first: int,
    *,
    unrolls: bool = False,
) -> SharedRecording:
    """`record` for some of the micro-batches of a step, the tuple ``example``, from number ``first`` on."""
    run = _Passes(loss_fn, params, example, model_state, seed, recipe, first, unrolls)
    sums = Accumulation[AnyVar](recipe.order, recipe.accumulate, first)
    for micro in run.batch:
        loss, grads = run(micro)
        sums.put(output(loss), run.of_parameters(grads), run.changed)
    gradients, state = (
        {name: [var.id for var in each.partials] for name, each in every.items()} for every in (sums.grads, sums.state)
    )
    losses = [var.id for var in sums.losses.partials]
    return SharedRecording(**vars(run.recorded()), losses=losses, gradients=gradients, state=state, metrics=run.metrics)


def record_loss(
    loss_fn: LossFn,
    params: Arrays,
    example: Any,
    recipe: Recipe,
    model_state: Arrays,
    seed: int,
    *,
    unrolls: bool = False,
) -> LossRecording:
    """`record` up to the loss of the first micro-batch, in a fifth of the time."""
    run = _Passes(loss_fn, params, example, model_state, seed, recipe, unrolls=unrolls)
    run.forward(recipe.micro_batches(run.batch)[0])
    return run.recorded()


def symbols(tape: SymbolicTape, example: Any) -> tuple[Any, list[int]]:
    """A batch like the example whose values are not known yet, and the ids of its arrays."""
    inputs: list[int] = []

    def symbol(where: str, leaf: Any) -> Any:
        array = np.asarray(leaf)
        var = tape.symbol(Spec(array.shape, element_dtype(where, array.dtype)), where)
        inputs.append(var.id)
        return var

    return map_batch(symbol, example), inputs


def output(var: AnyVar) -> AnyVar:
    """The Var itself, or a node of its own for what the step may overwrite."""
    made: AnyVar = OPS["reshape"](var, ()) if var.tape.node(var).op is None else var
    return made


class _Passes:
    """The forward and backward passes of a step, micro-batch by micro-batch, each after the state of the last.

    In a tree each is after the state before the step. ``first`` is the number of the first of them in its step.
    """

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        example: Any,
        model_state: Arrays,
        seed: int,
        recipe: Recipe,
        first: int = 0,
        unrolls: bool = False,
    ) -> None:
        frozen = recipe.frozen_of(params)
        self._hands_on = recipe.order == "chain"
        self._tape = tape = SymbolicTape(unrolls=unrolls)
        self.p = {
            name: tape.symbol(Spec(a.shape, a.dtype), name, requires_grad=name not in frozen)
            for name, a in params.items()
        }
        self.batch, self._inputs = symbols(tape, example)
        self._loss_fn, self._seed, self.forward_nodes = loss_fn, seed, 0
        self._inside: list[range] = []
        self._step: AnyVar | None = None
        self._before = {name: tape.symbol(Spec(a.shape, a.dtype), name) for name, a in model_state.items()}
        self._now: dict[str, AnyVar] = dict(self._before)
        self.changed: dict[str, AnyVar] = {}
        self._next = first
        self.metrics, self._results = list[dict[str, int]](), list[dict[str, int]]()

    def __call__(self, batch: Any) -> tuple[AnyVar, DenseGrads[Any]]:
        loss = self.forward(batch)
        return loss, self._tape.backward_scalar(loss, create_graph=True)

    def forward(self, batch: Any) -> AnyVar:
        """The loss of a micro-batch."""
        start = len(self._tape)
        loss, state, metrics = call_loss(self._loss_fn, self.p, batch, self._context)
        self._inside.append(range(start, len(self._tape)))
        self.metrics.append({name: output(var).id for name, var in metrics.items()})
        self.changed = {name: var for name, var in state.items() if var.id != self._now[name].id}
        shown = {f"metric {name}": id for name, id in self.metrics[-1].items()}
        self._results.append({"loss": loss.id, **shown, **{f"state {name}": v.id for name, v in self.changed.items()}})
        if self._hands_on:
            self._now.update(self.changed)
        self._next += 1
        self.forward_nodes = self.forward_nodes or len(self._tape)
        return loss

    def _context(self) -> Context:
        step: AnyVar = self._tape.symbol(Spec((), i64.dtype), "step") if self._step is None else self._step
        self._step = step
        return Context(True, Random(step, self._seed, self._next), self._now, step)

    def listed(self, gradients: Sequence[Mapping[int, int]]) -> list[ForwardPass]:
        """The passes with the ids of the gradients that each gave."""
        nodes: Any = list(self._tape)
        params = {var.id for var in self.p.values() if nodes[var.id].requires_grad}
        return [
            ForwardPass(nodes, inside, params, grads) for inside, grads in zip(self._inside, gradients, strict=True)
        ]

    def recorded(self) -> LossRecording:
        """The tape, and which node is what the loss function was given."""
        names, before = ({name: var.id for name, var in vars.items()} for vars in (self.p, self._before))
        step = None if self._step is None else self._step.id
        return LossRecording(self._tape, names, self._inputs, step, before, self._results)

    def of_parameters(self, grads: DenseGrads[Any]) -> dict[str, AnyVar]:
        """The gradient of every parameter that has one, by name."""
        return {name: g for name, var in self.p.items() if (g := grads[var]) is not None}

    def new_state(self, after: Mapping[str, AnyVar]) -> dict[int, int]:
        """Ids of entries of the model's state, and of what they become, for those that change."""
        changed = {name: var for name, var in after.items() if var.id != self._before[name].id}
        return {self._before[name].id: var.id for name, var in changed.items()}
