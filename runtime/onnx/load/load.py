"""``load``: an ONNX file as a layer with its parameters."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, cast

from ....base.arrays import Array
from ....base.system import FilePath
from ....tape import AnyVar, Context, DgrrError, Tape, Var, nn
from ....tape.values.dtypes import FLOATS
from ...step.batch import batch_arrays
from ..package import onnx
from .operator import CONSTANTS, IMPORTERS, ImportedModelError, Operator

for _family in (
    "attention",
    "elementwise",
    "indices",
    "layers",
    "losses",
    "norms",
    "planes",
    "recurrent",
    "reduce",
    "shape",
):
    import_module(f".{_family}", __package__)

STATISTICS = {"BatchNormalization": (3, 4)}
"""Inputs that are no parameters: what batch normalisation has counted."""


@dataclass(frozen=True, eq=False)
class OnnxModel(nn.Layer):
    """A graph of ONNX as a layer: ``model(p, x)``, of its one input or a tuple of several; what it gives likewise."""

    graph: Any = field(repr=False)
    opset: int

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The initialisers by name."""
        numpy_helper = onnx("onnx.load").numpy_helper
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in self.graph.initializer}

    @cached_property
    def inputs(self) -> list[str]:
        """The names of what the model is called with."""
        return [given.name for given in self.graph.input if given.name not in self.arrays]

    @cached_property
    def _counted(self) -> set[str]:
        return self._inputs_at(STATISTICS)

    def _inputs_at(self, places: Mapping[str, tuple[int, ...]]) -> set[str]:
        """The names of what stands in some places of operators."""
        return {
            name
            for node in self.graph.node
            for place, name in enumerate(node.input)
            if place in places.get(node.op_type, ())
        }

    def own_parameters(self) -> dict[str, nn.Parameter]:
        """The initialisers that are arrays of floats; numbers are constants, and so are scales, bounds and values."""
        others = self._counted | self._inputs_at(CONSTANTS)
        return {name: _started(a) for name, a in self.arrays.items() if _is_parameter(a) and name not in others}

    def own_state(self) -> dict[str, nn.Parameter]:
        """What batch normalisation has counted: it is used and never changed."""
        return {name: _started(self.arrays[name]) for name in self.arrays if name in self._counted}

    def __call__(self, p: Any, x: Any, ctx: Context | None = None) -> Any:
        """What the graph gives for one input, or for a tuple of as many as it has."""
        several: Any = cast(Any, x) if isinstance(x, tuple | list) else (x,)
        given: list[Any] = list(several)
        if len(given) != len(self.inputs):
            raise ImportedModelError(
                f"onnx model: argument 'x': expected {len(self.inputs)} inputs, {', '.join(self.inputs)}, "
                f"got {len(given)}"
            )
        tape = next((value.tape for value in batch_arrays([*given, dict(p)]) if isinstance(value, Var)), Tape())
        known: dict[str, Any] = {"": None, **self._constants(p, ctx)}
        known.update({name: _as_var(value, tape) for name, value in zip(self.inputs, given, strict=True)})
        for node in self.graph.node:
            known.update(_computed(node, known, tape, self.opset))
        results = [_as_var(known[out.name], tape) for out in self.graph.output]
        return results[0] if len(results) == 1 else tuple(results)

    def _constants(self, p: Any, ctx: Context | None) -> dict[str, Any]:
        state: Mapping[str, Any] = {} if ctx is None else ctx.state
        return {name: p[name] if name in p else state.get(name, a) for name, a in self.arrays.items()}


def load(source: FilePath | bytes) -> tuple[OnnxModel, dict[str, Array], dict[str, Array]]:
    """``(model, params, state)`` of an ONNX file, to be evaluated, trained further, recorded and proven.

    Initialisers that are arrays of floats are its parameters; what batch normalisation has counted is its state, used
    and never changed. What the graph computes of constants alone, onnx's reference evaluates.

    Args:
        source: a path, or the bytes of a file.

    Raises:
        ImportedModelError: a file that is damaged, or an operator that no op stands for.
        ModuleNotFoundError: without the package onnx; OSError if the file cannot be read.

    >>> import numpy as np
    >>> from dgrr.runtime.onnx import export, load
    >>> from dgrr.tape import nn
    >>> first = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    >>> x = np.ones((2, 3), np.float32)
    >>> model, params, state = load(export(first, first.init(seed=0), x).SerializeToString())
    >>> sorted(params)
    ['0.bias', '0.weight']
    >>> bool((model(params, x) == first(first.init(seed=0), x)).all())
    True
    """
    package = onnx("onnx.load")
    try:
        made = package.load_from_string(source) if isinstance(source, bytes) else package.load(os.fspath(source))
        package.checker.check_model(made)
    except OSError:
        raise
    except Exception as error:  # protobuf's and the checker's have no base of their own
        raise ImportedModelError(f"onnx.load: argument 'source': expected an ONNX model, got {_first(error)}") from None
    opset = next((given.version for given in made.opset_import if given.domain in ("", "ai.onnx")), 1)
    unknown = sorted({node.op_type for node in made.graph.node} - IMPORTERS.keys() - {"Constant"})
    if unknown:
        raise ImportedModelError(f"onnx.load: expected operators that dgrr has ops for, got {', '.join(unknown)}")
    model = OnnxModel(made.graph, opset)
    params, state = (
        {name: model.arrays[name].copy() for name in names} for names in (model.parameters(), model.states())
    )
    return model, params, state


def _first(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _is_parameter(array: Array) -> bool:
    return array.dtype in FLOATS and array.ndim > 0


def _started(array: Array) -> nn.Parameter:
    """A parameter that starts with what the file holds."""
    return nn.Parameter(array.shape, lambda shape, dtype, seed, ordinal: array.astype(dtype))


def _as_var(value: Any, tape: Tape[Any]) -> AnyVar:
    made: Any = cast(Any, value) if isinstance(value, Var) else tape.const(value)
    return made  # type: ignore[no-any-return]


def _computed(node: Any, known: Mapping[str, Any], tape: Tape[Any], opset: int) -> dict[str, Any]:
    """The outputs of a node by name."""
    inputs = [known[name] for name in node.input]
    if not any(isinstance(value, Var) for value in inputs):
        reference = import_module("onnx.reference").ReferenceEvaluator(node, opsets={"": opset})
        outputs = reference.run(None, {name: value for name, value in zip(node.input, inputs, strict=True) if name})
        return dict(zip(node.output, outputs, strict=True))
    helper = import_module("onnx.helper")
    attributes = {each.name: _plain(helper.get_attribute_value(each)) for each in node.attribute}
    operator = Operator(node.op_type, node.name or node.output[0], inputs, attributes, tape, opset, len(node.output))
    try:
        made = IMPORTERS[node.op_type](operator)
    except ImportedModelError:
        raise
    except (DgrrError, ValueError) as error:  # numpy's, of shapes that do not fit, is the latter
        raise operator.error(str(error)) from None
    several: Any = cast(Any, made) if isinstance(made, tuple) else (made,)
    if len(several) < sum(1 for name in node.output if name):
        raise operator.error(f"expected {len(several)} outputs to be asked for, got {len(node.output)}")
    return {name: value for name, value in zip(node.output, several, strict=False) if name}


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
