"""Graphs of recorded steps: accepted whole, refused with any part broken, and worth as much when read back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, AdamW, gradients
from dgrr.runtime.ir import IRError, IRGraph, IRNode, Role, gradient_name, verify
from dgrr.runtime.ir.passes import eliminate_common_subexpressions, eliminate_dead_code
from dgrr.runtime.ir.record import record
from dgrr.runtime.ir.recorded_graphs import gradients_graph, step_graph
from dgrr.runtime.step.batch import batch_arrays
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import AnyTensor, nn, ops
from dgrr.tape.values.spec import Spec

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """A step to record."""

    loss_fn: Callable[[Any, Any], Any]
    params: Arrays
    batch: Any
    recipe: Recipe


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


MODEL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
LABELS = np.array([0, 1, 1, 0, 1])


def classified(p: Any, batch: Any) -> Any:
    return ops.cross_entropy(MODEL(p, batch[0]), batch[1])


def fitted(p: Any, batch: Any) -> Any:
    return ops.mse_loss(MODEL(p, batch["x"]), batch["t"])


def shared(p: Any, x: Any) -> Any:
    """A weight used twice, and an activation used three times: its gradient has four terms."""
    h = ops.tanh(ops.linear(x, p["t"]))
    y = ops.linear(h, p["t"], p["d_b"])
    return ops.reduce_sum(h * y + ops.cast(ops.cast(h, np.float64), np.float32))


def sliced(p: Any, x: Any) -> Any:
    indices: Any = np.array([0, 2])
    w = p["opt.m"]
    rows = w[1:, None, ::-1] * ops.take(w, indices)[:, None]
    return ops.reduce_mean(ops.power(rows, 2)) + ops.reduce_sum(x[..., 0] * 0.5)


CASES = {
    "classifier, Adam": Case(classified, MODEL.init(0), (normal(5, 3), LABELS), Recipe(Adam())),
    "regression, SGD": Case(fitted, MODEL.init(1), {"x": normal(5, 3), "t": normal(5, 2)}, Recipe(SGD(0.1))),
    "float64, momentum": Case(
        classified, MODEL.init(2, np.float64), (normal(5, 3, dtype=np.float64), LABELS), Recipe(SGD(0.1, momentum=0.9))
    ),
    "shared weight, clipped by norm": Case(
        shared, {"t": normal(3, 3), "d_b": normal(3)}, normal(5, 3), Recipe(AdamW(), clip_norm=1.0)
    ),
    "slices, clipped by value": Case(sliced, {"opt.m": normal(3, 4)}, normal(2, 2), Recipe(SGD(0.1), clip_value=0.1)),
    "two micro-batches": Case(
        classified, MODEL.init(3), ((normal(5, 3), LABELS), (normal(5, 3), LABELS)), Recipe(Adam(), accumulate=2)
    ),
}

by_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def graphs_of(case: Case) -> list[IRGraph]:
    """The step, its gradients and its dense gradients."""
    recording = record(case.loss_fn, case.params, case.batch, case.recipe)
    state = case.recipe.rule.init(dict(case.params))
    step, _ = step_graph(recording, case.recipe, state)
    return [step, *(gradients_graph(recording, dense=dense)[0] for dense in (False, True))]


def live_step(case: Case) -> IRGraph:
    """The step without what nothing depends on."""
    return eliminate_dead_code(graphs_of(case)[0])


def refused(graph: IRGraph) -> bool:
    try:
        verify(graph)
    except IRError:
        return True
    return False


@by_case
def test_what_is_recorded_is_accepted_before_and_after_each_pass(case: Case) -> None:
    for graph in graphs_of(case):
        verify(graph)
        live = eliminate_dead_code(graph)
        verify(live)
        verify(eliminate_common_subexpressions(live))


@by_case
def test_what_is_recorded_is_read_back(case: Case) -> None:
    for graph in graphs_of(case):
        assert by_text(graph) == by_json(graph) == graph


@by_case
def test_recording_twice_gives_one_digest(case: Case) -> None:
    assert [g.digest() for g in graphs_of(case)] == [g.digest() for g in graphs_of(case)]


def test_other_steps_have_other_digests() -> None:
    assert len({graph.digest() for case in CASES.values() for graph in graphs_of(case)}) == 3 * len(CASES)


def by_text(graph: IRGraph) -> IRGraph:
    return IRGraph.parse(str(graph))


def by_json(graph: IRGraph) -> IRGraph:
    return IRGraph.from_json(graph.to_json())


def computed(graph: IRGraph, given: Mapping[int, Array]) -> dict[str, bytes]:
    """The outputs of a graph of ops alone, computed node by node."""
    known = {id: AnyTensor(array) for id, array in given.items()}
    for node in graph.nodes:
        inputs = [None if id is None else known[id] for id in node.inputs]
        (result,) = node.outputs
        known[result] = ops.OPS[node.op].compute(inputs, node.attrs)
    return {name: known[id].numpy().tobytes() for name, id in graph.outputs.items()}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.recipe.accumulate == 1])
@pytest.mark.parametrize("read_back", [by_text, by_json])
def test_what_is_read_back_computes_the_bits_of_the_tape(name: str, read_back: Callable[[IRGraph], IRGraph]) -> None:
    case = CASES[name]
    recording = record(case.loss_fn, case.params, case.batch, case.recipe)
    graph, constants = gradients_graph(recording, dense=False)
    given = {**constants, **dict(zip(recording.inputs, batch_arrays(case.batch), strict=True))}
    given |= {id: case.params[name] for name, id in recording.params.items()}
    loss, grads = gradients(case.loss_fn, dict(case.params), case.batch)
    expected = {gradient_name(recording.params[name]): g.tobytes() for name, g in grads.items()}
    assert computed(read_back(graph), given) == {"loss": loss.tobytes(), **expected}


@by_case
def test_roles_follow_from_use_and_not_from_names(case: Case) -> None:
    graph = live_step(case)
    assert [v.name for v in graph.with_role(Role.PARAM)] == list(case.params)
    assert [v.name for v in graph.with_role(Role.STATE)] == list(case.recipe.rule.init(dict(case.params)))
    params = [v.id for v in graph.with_role(Role.PARAM)]
    assert set(params) <= set(graph.updates)


@by_case
def test_the_loss_is_in_the_graph(case: Case) -> None:
    graph = live_step(case)
    assert graph.values[graph.outputs["loss"]].shape == ()
    assert graph.outputs["loss"] in {id for node in graph.nodes for id in node.outputs}


# Any part broken.


@by_case
def test_no_node_can_be_left_out(case: Case) -> None:
    graph = live_step(case)
    for i, node in enumerate(graph.nodes):
        if node.outputs:
            assert refused(replace(graph, nodes=graph.nodes[:i] + graph.nodes[i + 1 :])), node


@by_case
def test_no_node_can_stand_twice(case: Case) -> None:
    graph = live_step(case)
    for i, node in enumerate(graph.nodes):
        if node.outputs:
            again = replace(node, id=1000)
            assert refused(replace(graph, nodes=(*graph.nodes[: i + 1], again, *graph.nodes[i + 1 :]))), node


@by_case
def test_no_node_can_stand_before_what_it_reads(case: Case) -> None:
    graph = live_step(case)
    declared = {id for id, value in graph.values.items() if value.role is not Role.STATIC}
    for i, node in enumerate(graph.nodes):
        if set(node.reads) - declared:
            assert refused(replace(graph, nodes=(node, *graph.nodes[:i], *graph.nodes[i + 1 :]))), node


@by_case
def test_no_node_can_have_an_attribute_less_or_more(case: Case) -> None:
    graph = live_step(case)

    def with_attrs(i: int, attrs: dict[str, Any]) -> IRGraph:
        changed = replace(graph.nodes[i], attrs=attrs)
        return replace(graph, nodes=(*graph.nodes[:i], changed, *graph.nodes[i + 1 :]))

    for i, node in enumerate(graph.nodes):
        assert refused(with_attrs(i, {**node.attrs, "lr": 1e-3})), node
        for name in node.attrs if node.op in ops.OPS else ():
            assert refused(with_attrs(i, {n: v for n, v in node.attrs.items() if n != name})), node


@by_case
def test_no_produced_value_can_have_another_shape_or_dtype(case: Case) -> None:
    graph = live_step(case)
    for value in graph.with_role(Role.STATIC):
        other = np.dtype(np.int64 if value.dtype != np.int64 else np.float32)
        for spec in (Spec((*value.shape, 1), value.dtype), Spec(value.shape, other)):
            change = replace(value, spec=spec)
            assert refused(replace(graph, values={**graph.values, value.id: change})), value


@by_case
def test_no_declared_value_can_be_left_out(case: Case) -> None:
    graph = live_step(case)
    read = {id for node in graph.nodes for id in node.reads}
    for id in graph.values.keys() & read:
        assert refused(replace(graph, values={i: v for i, v in graph.values.items() if i != id})), id


@by_case
def test_no_update_can_be_left_out_or_exchanged(case: Case) -> None:
    graph = live_step(case)
    for id in graph.updates:
        assert refused(replace(graph, updates={i: t for i, t in graph.updates.items() if i != id})), id
        assert refused(replace(graph, updates={**graph.updates, id: graph.outputs["loss"]})), id


@by_case
def test_nothing_can_read_what_the_step_replaces_after_it_did(case: Case) -> None:
    graph = live_step(case)
    for id in graph.updates:
        value = graph.values[id]
        late = IRNode(1000, "reshape", (id,), (2000,), {"shape": value.shape})
        values = {**graph.values, 2000: replace(value, id=2000, role=Role.STATIC)}
        assert refused(replace(graph, values=values, nodes=(*graph.nodes, late))), value
        assert not refused(replace(graph, values=values, nodes=(late, *graph.nodes))), value
