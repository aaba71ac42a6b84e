"""Loops in graphs: a node ``scan`` whose body is a graph of its own, as text among its attributes.

Its inputs are those of the body: parts of the state (``carry 0``), arrays of whose rows it takes one in each step (``xs
0``), and what is the same in all (``around 0``). Its outputs are named by ``results``: a part of the last state, or of
all steps what an output of the body is (``y 0``, ``each 7``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...tape.values.spec import Spec
from .errors import IRError
from .graph import IRGraph, IRNode, Role

SCAN = "scan"
"""The op of such a node."""

ATTRIBUTES = ("body", "length", "reverse", "results")

BODIES_KEPT = 256


@lru_cache(BODIES_KEPT)
def _parsed(text: str) -> IRGraph:
    return IRGraph.parse(text)


def body_of(node: IRNode) -> IRGraph:
    """The graph of one step. Raises IRSyntaxError for a text that is none."""
    return _parsed(node.attrs["body"])


def inputs_of(body: IRGraph) -> list[tuple[str, int]]:
    """The inputs of a body in the order of a loop's: their kinds, and their ids."""
    named = {value.name: value.id for value in body.with_role(Role.INPUT)}
    kinds = ("carry", "xs", "around")
    found = [(kind, named.get(f"{kind} {i}")) for kind in kinds for i in range(len(named))]
    return [(kind, id) for kind, id in found if id is not None]


def places_of(node: IRNode) -> range:
    """The rows of its arrays in the order of the steps."""
    length: int = node.attrs["length"]
    return range(length - 1, -1, -1) if node.attrs["reverse"] else range(length)


def with_results(node: IRNode, live: Collection[int]) -> IRNode:
    """A loop without the outputs that no one reads."""
    kept = [(id, key) for id, key in zip(node.outputs, node.attrs["results"], strict=True) if id in live]
    results = tuple([key for _, key in kept])
    return replace(node, outputs=tuple([id for id, _ in kept]), attrs={**node.attrs, "results": results})


def step_outputs(node: IRNode) -> dict[str, int]:
    """The outputs of the body that the loop needs: the state after a step, and what it stacks."""
    outputs, stacked = body_of(node).outputs, set(node.attrs["results"])
    return {name: id for name, id in outputs.items() if name.startswith("carry ") or name in stacked}


def inferred(node: IRNode, specs: Sequence[Spec | None]) -> list[Spec]:
    """The shapes and element types of the outputs. Raises IRError for inputs that the body does not take."""
    body, length = body_of(node), node.attrs["length"]
    inputs = inputs_of(body)
    taken = [_stacked(body.values[id].spec, length) if kind == "xs" else body.values[id].spec for kind, id in inputs]
    if taken != list(specs):
        raise IRError(f"expected inputs {taken}, as its body says, got {list(specs)}")
    return [_result(body, key, length) for key in node.attrs["results"]]


def _result(body: IRGraph, key: str, length: int) -> Spec:
    if key not in body.outputs:
        raise IRError(f"expected results among {', '.join(body.outputs)}, got {key!r}")
    spec = body.values[body.outputs[key]].spec
    return spec if key.startswith("carry ") else _stacked(spec, length)


def _stacked(spec: Spec, length: int) -> Spec:
    return Spec((length, *spec.shape), spec.dtype)


def fault_of(attrs: Mapping[str, Any]) -> str | None:
    """What is wrong with the attributes of a loop; None if nothing is."""
    if tuple(attrs) != ATTRIBUTES:
        return f"expected the attributes {', '.join(ATTRIBUTES)} in this order, got {', '.join(attrs)}"
    kinds = {"body": str, "length": int, "reverse": bool, "results": tuple}
    wrong = [name for name, kind in kinds.items() if type(attrs[name]) is not kind]
    return f"attribute {wrong[0]!r}: expected {kinds[wrong[0]].__name__}, got {attrs[wrong[0]]!r}" if wrong else None
