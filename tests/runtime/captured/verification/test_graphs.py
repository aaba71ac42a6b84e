"""Graphs: a value without a producer, a pass that breaks a graph, a gradient that is not linked to the loss."""

from dataclasses import replace
from typing import Any

import pytest

from dgrr.runtime.captured.verification.checks.graphs import check_graph_links
from dgrr.runtime.captured.verification.report import CheckError
from dgrr.runtime.ir import IRGraph, Role, Value, gradient_name
from dgrr.runtime.lower.compile import GRAPH_PASSES
from dgrr.tape.values.spec import Spec


def node_of(graph: IRGraph, op: str) -> Any:
    return next(node for node in graph.nodes if node.op == op)


def rewired(graph: IRGraph, op: str, position: int, id: int) -> IRGraph:
    """The graph with one input of the first node of an op replaced."""
    wrong = node_of(graph, op)
    inputs = list(wrong.inputs)
    inputs[position] = id
    nodes = tuple(replace(node, inputs=tuple(inputs)) if node is wrong else node for node in graph.nodes)
    return replace(graph, nodes=nodes)


def test_a_value_that_no_node_produces(patient: Any) -> None:
    graph = patient.program.graph
    values = {**graph.values, 999: replace(graph.values[node_of(graph, "relu").inputs[0]], id=999)}
    relu = node_of(graph, "relu")
    patient.regraph(replace(rewired(graph, "relu", 0, 999), values=values))
    expected = f"as lowered: graph 'step': node {relu.id} (relu): input %999 is neither produced by a node nor declared"
    assert patient.check("graphs").startswith(expected)


def test_a_shape_that_no_op_gives(patient: Any) -> None:
    graph = patient.program.graph
    out = node_of(graph, "relu").outputs[0]
    patient.regraph(
        replace(
            graph, values={**graph.values, out: replace(graph.values[out], spec=Spec((5, 6), graph.values[out].dtype))}
        )
    )
    assert "(relu): expected the outputs float32[6, 5], got float32[5, 6]" in patient.check("graphs")


def test_a_pass_that_drops_a_node(patient: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(graph: IRGraph) -> IRGraph:
        return replace(graph, nodes=tuple(node for node in graph.nodes if node.op != "relu"))

    assert patient.step.verify(1).ok  # so that all plans are there
    monkeypatch.setitem(GRAPH_PASSES, "dead-code", drop)
    assert patient.check("graphs").startswith("after dead-code: graph 'step': node ")


def test_every_link_is_counted(patient: Any) -> None:
    assert check_graph_links(patient.step.graph, patient.plans.recording.params) > 10


@pytest.mark.parametrize(("op", "position", "vjp"), [("where_positive", 1, "relu"), ("sub", 0, "mse_loss")])
def test_a_backward_node_that_reads_another_value(patient: Any, op: str, position: int, vjp: str) -> None:
    """The mask of a relu, or the prediction of the loss, taken from a stranger of the same shape."""
    graph = patient.step.graph
    wrong = node_of(graph, op)
    right = wrong.inputs[position]
    stranger = Value(999, graph.values[right].spec, Role.INPUT, "stranger")
    broken = replace(rewired(graph, op, position, 999), values={**graph.values, 999: stranger})
    with pytest.raises(
        CheckError, match=rf"step: the gradient of %\d: %\d+ is not linked to %{right}, .*\({vjp}\) needs"
    ):
        check_graph_links(broken, patient.plans.recording.params)


def test_a_gradient_that_does_not_come_from_the_loss(patient: Any) -> None:
    recording = patient.plans.recording
    bias = recording.params["0.bias"]
    recording.gradients[bias] = bias
    expected = f"step: the gradient of %{bias}: %{bias} does not come from the loss: it is constant or disconnected"
    assert patient.check("backward links") == expected


def test_a_parameter_without_gradient(patient: Any) -> None:
    recording = patient.plans.recording
    bias = recording.params["2.bias"]
    del recording.gradients[bias]
    expected = f"step: the loss depends on parameter '2.bias' (%{bias}), which has no gradient"
    assert patient.check("backward links") == expected


def test_a_gradient_of_a_value_that_the_loss_does_not_depend_on(patient: Any) -> None:
    graph, params = patient.step.graph, patient.plans.recording.params
    values = {**graph.values, 999: replace(graph.values[params["0.bias"]], id=999)}
    outputs = {**graph.outputs, gradient_name(999): graph.outputs[gradient_name(params["0.bias"])]}
    with pytest.raises(CheckError, match="step: the gradient of %999: %999 has no way to the loss"):
        check_graph_links(replace(graph, values=values, outputs=outputs), params)
