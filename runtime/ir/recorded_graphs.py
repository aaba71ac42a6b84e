"""Graphs of what was recorded: the whole step with the optimizer's primitives, or parts of it without an update."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from ...base.arrays import Array, Arrays
from ...tape.graph.node import Node
from ...tape.graph.symbol import Symbol
from ..step.recipe import Recipe
from .builder import Builder
from .graph import IRGraph, Role, Value, gradient_name
from .passes import add_early
from .record import LossRecording, Recorded, Recording, SharedRecording
from .step_tape import listed


def step_graph(recording: Recording, recipe: Recipe, state: Arrays) -> tuple[IRGraph, dict[int, Array]]:
    """The whole step and the data of its constants."""
    builder = begun(recording)
    if recipe.on_nonfinite == "stop":
        builder.require_finite([recording.loss, *recording.gradients.values(), *recording.new_state.values()])
    builder.assign(recording.new_state)
    known = {} if recording.step is None else {"step": recording.step}
    builder.update(recording.params, recording.gradients, recipe, state, known)
    clip = {} if builder.clip is None else {"clip": builder.clip}
    outputs = {"loss": recording.loss, **clip, **_gradients(builder.consumed), **_shown(recording.metrics)}
    return builder.graph("step", outputs), builder.constants


def _shown(metrics: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {metric_name(name, k): id for k, made in enumerate(metrics) for name, id in made.items()}


def metric_name(name: str, micro_batch: int) -> str:
    """The output that holds a metric."""
    return f"metric {name} {micro_batch}"


def gradients_graph(recording: Recording, *, dense: bool) -> tuple[IRGraph, dict[int, Array]]:
    """Loss and gradients without an update: of every value that depends on a parameter, or of parameters alone."""
    builder = begun(recording)
    wanted = recording.dense if dense else recording.gradients
    outputs = {"loss": recording.loss, **_gradients(wanted)}
    return builder.graph("dense gradients" if dense else "gradients", outputs), builder.constants


def tape_graph(recording: Recording) -> tuple[IRGraph, dict[int, Array]]:
    """Every value of the forward passes and its gradient, without an update; outputs as `value_name` calls them."""
    nodes = listed(recording.passes)
    ids = [node.id for node in nodes] + [node.grad for node in nodes if node.grad is not None]
    return values_graph(recording, ids)


def values_graph(recording: Recording, ids: Iterable[int]) -> tuple[IRGraph, dict[int, Array]]:
    """Some values of the step alone, without an update; outputs as `value_name` calls them."""
    builder = begun(recording)
    return builder.graph("tape", {"loss": recording.loss, **{value_name(id): id for id in ids}}), builder.constants


def value_name(id: int) -> str:
    """The output of `values_graph` that is a value."""
    return f"value %{id}"


def _gradients(ids: Mapping[int, int]) -> dict[str, int]:
    return {gradient_name(id): gradient for id, gradient in ids.items()}


def share_graph(recording: SharedRecording) -> tuple[IRGraph, dict[int, Array]]:
    """The sums of a share, without an update; outputs as `partial_name` and `metric_name` call them.

    Each sum is made as soon as its terms are there, so that it can be sent while others are computed.
    """
    builder = begun(recording)
    every = {"loss": recording.losses, **{f"gradient {n}": ids for n, ids in recording.gradients.items()}}
    every |= {f"state {n}": ids for n, ids in recording.state.items()}
    outputs = {partial_name(what, k): id for what, ids in every.items() for k, id in enumerate(ids)}
    return add_early(builder.graph("share", {**outputs, **_shown(recording.metrics)})), builder.constants


def partial_name(what: str, number: int) -> str:
    """The output that holds one of the sums."""
    return f"{what} partial {number}"


def loss_graph(recording: LossRecording, nodes: int) -> IRGraph:
    """The first nodes of a recording, up to the results of the first micro-batch: to compare with those of another."""
    return begun(recording, nodes).graph("loss", recording.results[0])


def begun(recording: Recorded, nodes: int | None = None) -> Builder:
    """A builder that holds the nodes of the tape, or so many of them."""
    builder = Builder(len(recording.tape))
    roles = {**dict.fromkeys(recording.params.values(), Role.PARAM), **dict.fromkeys(recording.inputs, Role.INPUT)}
    roles |= dict.fromkeys(recording.model_state.values(), Role.MODEL_STATE)
    if recording.step is not None:
        roles[recording.step] = Role.STATE
    held = recording.tape.held

    def leaf(node: Node) -> None:
        spec, role = node.value.spec, roles.get(node.id, Role.CONST)
        if node.id in held:
            content = builder.held(node.id, held[node.id])
        else:
            content = "" if isinstance(node.value, Symbol) else builder.constant(node.id, node.value.array)
        builder.declare(Value(node.id, spec, role, node.name or "", content))

    builder.nodes_of(islice(recording.tape, nodes), leaf)
    return builder
