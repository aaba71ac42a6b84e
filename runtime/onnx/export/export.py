"""``export``: a model and its parameters as an ONNX file."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ....base.arrays import Arrays
from ....base.atomic_file import replacing
from ....base.system import FilePath
from ....tape.graph.node import Node
from ...ir.forward import ForwardRecording, record_forward
from ...step.batch import map_batch
from ...step.forward import model_forward
from ..package import OPSET, onnx
from .any_batch import for_every_batch, sized
from .graph import EXPORTERS, ExportError, Graph, OpCall

for _family in ("attention", "conv", "elementwise", "linear", "norm", "pooling", "reduce", "shape"):
    import_module(f".{_family}", __package__)


def export(
    model: Callable[..., Any],
    params: Arrays,
    x: Any,
    path: FilePath | None = None,
    *,
    state: Arrays | None = None,
    dynamic_batch: bool = False,
) -> Any:
    """The forward pass of a model as an ONNX model, as it is in evaluation: dropout leaves all, norms use their state.

    Parameters are initialisers under their names. Shapes are those of the example, its batch size too, unless
    ``dynamic_batch``. The bits that another runtime computes are its own.

    Args:
        model: ``model(p, x)`` or ``model(p, x, ctx)``.
        params: the parameters by name.
        x: an example of the input: an array, or a tuple, list or dict of arrays, whose names are ``x``, ``x[0]``, …
        path: where to write it too; the file is whole, or the one that stood there before.
        state: the model's state, where it has one.
        dynamic_batch: whether the first axis of every input may have any size, which is called ``batch``. The model is
            recorded for three sizes, and refused where anything but a shape depends on the size.

    Returns:
        The ``onnx.ModelProto``, checked by onnx; its outputs are named ``result``, ``result[0]``, …

    Raises:
        ExportError: the model uses an op that has no form there, or depends on the size of the batch.
        DomainError: ``dynamic_batch`` with inputs that have no first axis in common.
        ModuleNotFoundError: without the package onnx. What the model raises; TapeError if it reads a value.

    >>> import numpy as np
    >>> from dgrr.runtime.onnx import export
    >>> from dgrr.tape import nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    >>> made = export(model, model.init(seed=0), np.ones((2, 3), np.float32))
    >>> [node.op_type for node in made.graph.node]
    ['Gemm', 'Relu', 'Identity']
    """
    package = onnx("onnx.export")

    def recorded(example: Any) -> Any:
        recording = record_forward(model_forward(model), params, example, state or {}, seed=0, unrolls=True)
        graph = Graph(package)
        names = _written(graph, recording, {**params, **(state or {})})
        return _model(package, graph, recording, names)

    made = for_every_batch(package, [recorded(example) for example in sized(x)]) if dynamic_batch else recorded(x)
    package.checker.check_model(made, full_check=True)
    if path is not None:
        with replacing(path) as file:
            file.write(made.SerializeToString(deterministic=True))
    return made


def _written(graph: Graph, recording: ForwardRecording, arrays: Arrays) -> dict[int, str]:
    """The name in the graph of every value that the result needs."""
    names: dict[int, str] = {}
    known = {id: name for name, id in {**recording.params, **recording.model_state}.items()}
    for node in _needed(recording):
        if node.id in known:
            names[node.id] = graph.constant(np.asarray(arrays[known[node.id]]), known[node.id])
        elif node.id in recording.inputs:
            names[node.id] = f"x{(node.name or '').removeprefix('batch')}"
        elif node.op is None:
            names[node.id] = graph.constant(node.value.array)
        else:
            names[node.id] = _exported(graph, node, names)
    return names


def _needed(recording: ForwardRecording) -> list[Node]:
    """The nodes that the result depends on, in order, and all inputs."""
    nodes, wanted = list(recording.tape), set(recording.inputs)
    map_batch(lambda where, id: wanted.add(id), recording.result)
    for node in reversed(nodes):
        if node.id in wanted:
            wanted.update(node.parents)
    return [node for node in nodes if node.id in wanted]


def _exported(graph: Graph, node: Node, names: Mapping[int, str]) -> str:
    assert node.op is not None, "leaves are written before"
    if node.op.name not in EXPORTERS:
        raise _refused(node, "it has no form there")
    inputs = [None if source is None else names[source.id] for source in node.sources]
    specs = [None if source is None else source.value.spec for source in node.sources]
    try:
        return EXPORTERS[node.op.name](OpCall(graph, inputs, specs, node.attrs, node.value.spec))
    except ExportError as error:
        raise _refused(node, str(error)) from None


def _refused(node: Node, reason: str) -> ExportError:
    place = f", made at {node.location}" if node.location else ""
    return ExportError(
        f"onnx.export: op '{node.op_name}': expected an op that ONNX has, got {node.title}{place}: {reason}; compute "
        "it outside of the exported model, or of other ops"
    )


def _model(package: Any, graph: Graph, recording: ForwardRecording, names: Mapping[int, str]) -> Any:
    """The graph with its inputs and outputs, as a model."""
    helper, nodes = package.helper, list(recording.tape)

    def described(name: str, id: int) -> Any:
        spec = nodes[id].value.spec
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(spec.dtype), spec.shape)

    outputs: list[Any] = []

    def output(where: str, id: int) -> None:
        graph.nodes.append(helper.make_node("Identity", [names[id]], [where], name=where))
        outputs.append(described(where, id))

    map_batch(output, recording.result, "result")
    inputs = [described(names[id], id) for id in recording.inputs]
    made = helper.make_graph(graph.nodes, "dgrr", inputs, outputs, graph.constants)
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(made, opset_imports=opset, producer_name="dgrr", ir_version=10)
