"""Recording: a loss function, run once on a symbolic tape, becomes the graph of a training step.

Forward and backward are the tape's own nodes - backward is recorded by the same sweep that computes it
eagerly - and the optimizer's primitives are put behind them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tape import GradientError, Var
from ...tape.backward import DenseGrads
from ...tape.dtypes import element_dtype
from ...tape.node import Node
from ...tape.primitive import Spec
from ...tape.symbolic import Symbol, SymbolicTape
from ...tape.table import OPS
from ...tape.tensor import Array
from ..batch import mapped
from ..evaluate import Arrays, LossFn
from ..recipe import Recipe
from .attributes import canonical
from .build import Builder
from .graph import IRGraph, IRNode, Role, Value, gradient_name


@dataclass(frozen=True)
class Recording:
    """A recorded loss function: its tape, and which node is what."""

    tape: SymbolicTape
    params: dict[str, int]
    inputs: list[int]
    loss: int
    gradients: dict[int, int]
    """Value id → id of its gradient, for every parameter that has one."""
    dense: dict[int, int]
    """The same for every forward node that depends on a parameter, before micro-batches are averaged."""


def record(loss_fn: LossFn, params: Arrays, example: Any, recipe: Recipe) -> Recording:
    """Run ``loss_fn`` and its backward pass on values that have only shapes.

    Raises GradientError if the loss is no scalar Var or depends on no parameter; what the model raises;
    TapeError if the model reads a value.
    """
    tape = SymbolicTape()
    p = {name: tape.symbol(Spec(a.shape, a.dtype), name, requires_grad=True) for name, a in params.items()}
    inputs: list[int] = []

    def symbol(where: str, leaf: Any) -> Any:
        array = np.asarray(leaf)
        var = tape.symbol(Spec(array.shape, element_dtype(where, array.dtype)), where)
        inputs.append(var.id)
        return var

    batch = mapped(example, symbol)
    passes = [_backward(tape, loss_fn, p, micro) for micro in recipe.micro_batches(batch)]
    gradients: dict[int, int] = {}
    for var in p.values():
        arrived = [g for g in (grads[var] for _, grads in passes) if g is not None]
        if arrived:
            gradients[var.id] = recipe.mean(arrived).id
    loss = recipe.mean([loss for loss, _ in passes])
    if loss.id in (var.id for var in p.values()):  # an output has a node of its own: the step overwrites parameters
        loss = OPS["reshape"](loss, ())
    dense = {id: g.id for _, grads in passes for id, g in grads.reached().items()}
    names = {name: var.id for name, var in p.items()}
    return Recording(tape, names, inputs, loss.id, gradients, {**dense, **gradients})


def _backward(tape: SymbolicTape, loss_fn: LossFn, p: Any, batch: Any) -> tuple[Any, DenseGrads[Any]]:
    loss = loss_fn(p, batch)
    if not isinstance(loss, Var):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GradientError(f"loss_fn: expected it to return a scalar Var, got {type(loss).__name__}")
    return loss, tape.backward_scalar(loss, create_graph=True)


def step_graph(recording: Recording, recipe: Recipe, state: Arrays) -> tuple[IRGraph, dict[int, Array]]:
    """The whole step and the data of its constants."""
    builder = _begun(recording)
    builder.update(recording.loss, recording.params, recording.gradients, recipe, state)
    clip = {} if builder.clip is None else {"clip": builder.clip}
    outputs = {"loss": recording.loss, **clip, **_gradients(builder.consumed)}
    return builder.graph("step", outputs), builder.constants


def gradients_graph(recording: Recording, dense: bool) -> tuple[IRGraph, dict[int, Array]]:
    """Loss and gradients without an update: of every value that depends on a parameter, or of parameters alone."""
    builder = _begun(recording)
    wanted = recording.dense if dense else recording.gradients
    outputs = {"loss": recording.loss, **_gradients(wanted)}
    return builder.graph("dense gradients" if dense else "gradients", outputs), builder.constants


def _gradients(ids: Mapping[int, int]) -> dict[str, int]:
    return {gradient_name(id): gradient for id, gradient in ids.items()}


def _begun(recording: Recording) -> Builder:
    """A builder that holds the nodes of the tape."""
    builder = Builder(len(recording.tape))
    roles = {**dict.fromkeys(recording.params.values(), Role.PARAM), **dict.fromkeys(recording.inputs, Role.INPUT)}
    for node in recording.tape:
        _add(builder, node, roles.get(node.id, Role.CONST))
    return builder


def _add(builder: Builder, node: Node, role: Role) -> None:
    spec, name = Spec(node.value.sizes, node.value.dtype), node.name or ""
    if node.op is None:
        content = "" if isinstance(node.value, Symbol) else builder.constant(node.id, node.value.array)
        builder.declare(Value(node.id, spec.shape, spec.dtype, role, name, content))
        return
    parents = iter(node.parents)
    inputs = tuple([None if x is None else next(parents) for x in node.inputs])
    builder.declare(Value(node.id, spec.shape, spec.dtype, Role.STATIC, name))
    attrs = {key: canonical(value) for key, value in node.attrs.items()}
    builder.nodes.append(IRNode(len(builder.nodes), node.op.name, inputs, (node.id,), attrs))
