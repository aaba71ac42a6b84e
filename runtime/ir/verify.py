"""The verifier: what must hold of every graph, checked from the graph alone.

It shares nothing with what builds graphs but the types and the ops' own inference.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...tape.ops import OPS
from ...tape.values.spec import Spec
from ..optim.state_ops import STATE_OPS
from .attributes import is_attribute
from .bodies import ATTRIBUTES, bodies_of, fault_of, inferred
from .errors import IRError
from .graph import IRGraph, IRNode, Role

SWITCH = "DGRR_VERIFY_IR"
"""The environment variable that turns `checked` on: 1."""

KEPT = (Role.PARAM, Role.STATE, Role.MODEL_STATE)
"""Roles of values that a step may replace."""


def checked(graph: IRGraph) -> IRGraph:
    """The graph itself, verified if DGRR_VERIFY_IR is 1. Raises IRError as `verify` does."""
    if os.environ.get(SWITCH) == "1":
        verify(graph)
    return graph


def verify(graph: IRGraph) -> None:
    """Raise IRError for the first thing that is wrong, naming the node or value.

    Ids agree; every value is declared or produced exactly once, before its first use; every node has the
    inputs, attributes, shapes and dtypes of its op; every update replaces a parameter or state array by a
    value of its shape and dtype; nothing is used once an op has overwritten it.
    """
    for check in (_ids, _production, _nodes, _updates, _overwriting):
        for fault in check(graph):
            raise IRError(f"graph {graph.name!r}: {fault}")


def _ids(graph: IRGraph) -> Iterator[str]:
    for id, value in graph.values.items():
        if value.id != id:
            yield f"values[{id}] has the id {value.id}: file it under its own id"
        if value.role is Role.CONST and not value.content:
            yield f"value %{id}: a const must say its content: its number, or a digest of its elements"
    seen: set[int] = set()
    for node in graph.nodes:
        if node.id in seen:
            yield f"{_name(node)}: a node before it has the same id: renumber the nodes"
        seen.add(node.id)


def _production(graph: IRGraph) -> Iterator[str]:
    known = {id for id, value in graph.values.items() if value.role is not Role.STATIC}
    for node in graph.nodes:
        for id in node.reads:
            if id not in known:
                yield f"{_name(node)}: input %{id} {_unknown(graph, id)}"
        for id in node.outputs:
            if id not in graph.values:
                yield f"{_name(node)}: output %{id} is no value of the graph: describe it in values"
            if id in known:
                yield f"{_name(node)}: output %{id} is declared or produced already: give it an id of its own"
            known.add(id)
    for id in graph.values.keys() - known:
        yield f"value %{id} is static and no node produces it: declare it as input, param, state or const, or remove it"
    for name, id in graph.outputs.items():
        if id not in known:
            yield f"output {name!r}: %{id} {_unknown(graph, id)}"


def _unknown(graph: IRGraph, id: int) -> str:
    if any(id in node.outputs for node in graph.nodes):
        return "is used before the node that produces it: put that node first"
    return "is neither produced by a node nor declared: declare it as input, param, state or const"


def _nodes(graph: IRGraph) -> Iterator[str]:
    for node in graph.nodes:
        fault = _attributes(node) or _inputs(node) or _results(graph, node)
        if fault:
            yield f"{_name(node)}: {fault}"


def _attributes(node: IRNode) -> str | None:
    """The op is known, and its attributes are those that it takes, in canonical form."""
    for name, value in node.attrs.items():
        if not is_attribute(value):
            return f"attribute {name!r}: {value!r} is not in canonical form: record it through canonical()"
    given = tuple(node.attrs)
    if node.op in ATTRIBUTES:
        return fault_of(node)
    if node.op in OPS:
        expected = OPS[node.op].signature.attributes
        if given == expected:
            return None
        return f"expected the attributes {_list(expected)} in this order, got {_list(given)}"
    if node.op not in STATE_OPS:
        return "there is no op of this name: use one of the op tables"
    words: Any = node.attrs.get("attributes", ())
    if set(given) <= {"attributes"} and words.__class__ is tuple and all(word.__class__ is int for word in words):
        return None
    return f"expected no attributes but 'attributes', a tuple of ints, got {dict(node.attrs)}"


def _inputs(node: IRNode) -> str | None:
    """As many inputs as the op takes, and none omitted that it needs."""
    if node.op in ATTRIBUTES:
        return "no input of this op can be omitted" if None in node.inputs else None
    if node.op in OPS:
        signature = OPS[node.op].signature
        if len(node.inputs) != len(signature.inputs):
            return f"expected the inputs {_list(signature.inputs)}, got {len(node.inputs)} inputs"
        omitted = {name for name, id in zip(signature.inputs, node.inputs, strict=True) if id is None}
        needed = omitted - signature.optional
        return f"the input {_list(sorted(needed))} must not be omitted" if needed else None
    if None in node.inputs:
        return "no input of this op can be omitted"
    least = max(1, STATE_OPS[node.op].in_place)
    return None if len(node.inputs) >= least else f"expected at least {least} inputs, got {len(node.inputs)}"


def _results(graph: IRGraph, node: IRNode) -> str | None:
    """The outputs have the shapes and dtypes that the op gives."""
    given = [graph.values[id].spec for id in node.outputs]
    try:
        expected = _inferred(node, [None if id is None else graph.values[id].spec for id in node.inputs])
    except Exception as error:  # an op may refuse a wrong attribute in any way
        return f"the op refuses its inputs or attributes: {type(error).__name__}: {error}"
    if expected == given:
        return None
    return f"expected the outputs {_list(map(_shown, expected))}, got {_list(map(_shown, given))}: infer them again"


def _inferred(node: IRNode, specs: Sequence[Spec | None]) -> list[Spec]:
    if node.op in ATTRIBUTES:
        for body in bodies_of(node):
            verify(body)
        return inferred(node, specs)
    if node.op in OPS:
        return [OPS[node.op].infer_spec(specs, node.attrs)]
    return STATE_OPS[node.op].infer([spec for spec in specs if spec is not None])


def _updates(graph: IRGraph) -> Iterator[str]:
    produced = {id for node in graph.nodes for id in node.outputs}
    replaced: dict[int, int] = {}
    for id, target in graph.updates.items():
        if id not in graph.values or graph.values[id].role not in KEPT:
            yield f"update of %{id}: only a declared param, state or model_state can be updated"
        if target not in produced:
            yield f"update of %{id}: no node produces %{target}: update to what a node of the step produces"
        if replaced.setdefault(target, id) != id:
            yield f"update of %{id}: %{target} replaces %{replaced[target]} already: update each to its own value"
        old, new = graph.values[id].spec, graph.values[target].spec
        if old != new:
            yield f"update of %{id}: expected {_shown(old)}, got {_shown(new)} of %{target}"


def _overwriting(graph: IRGraph) -> Iterator[str]:
    overwritten: dict[int, IRNode] = {}
    wanted = {id: f"output {name!r}" for name, id in graph.outputs.items()}
    wanted |= {target: f"the update of %{id}" for id, target in graph.updates.items()}
    for node in graph.nodes:
        for id in node.reads:
            if id in overwritten:
                yield f"{_name(node)}: reads %{id}, which {_name(overwritten[id])} overwrites: put it before that node"
        state = STATE_OPS.get(node.op)
        for id, result in zip(node.reads[: state.in_place] if state else (), node.outputs, strict=False):
            fault = _not_free(graph, node, id, result) or (id in wanted and f"%{id} is {wanted[id]}")
            if fault:
                yield f"{_name(node)}: overwrites %{id}, but {fault}"
            overwritten[id] = node


def _not_free(graph: IRGraph, node: IRNode, id: int, result: int) -> str | None:
    """Why a node must not overwrite a value in place, if so."""
    role = graph.values[id].role
    if node.reads.count(id) > 1:
        return "it is two of its inputs"
    if role in (Role.INPUT, Role.CONST):
        return f"its role is {role}: copy it first"
    if role in KEPT and graph.updates.get(id) != result:
        return f"its update is not %{result}: update %{id} to the result"
    return None


def _name(node: IRNode) -> str:
    return f"node {node.id} ({node.op})"


def _shown(spec: Spec) -> str:
    return f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
