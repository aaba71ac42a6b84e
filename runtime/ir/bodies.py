"""Nodes that run bodies: each is a graph of its own, as text among the attributes of its node.

The inputs of a body are parts of a state (``carry 0``), rows of arrays (``xs 0``), and what is given as it is (``around
0``). The node's outputs are named by ``results``: a part of the last state, or what an output of the body is, of a loop
in all steps (``y 0``, ``each 7``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ...tape.values.dtypes import boolean
from ...tape.values.spec import Spec
from .errors import IRError
from .graph import IRGraph, IRNode, Role

TRUTH = Spec((), boolean.dtype)

LOOP = {"length": int, "reverse": bool}

ATTRIBUTES: Mapping[str, Mapping[str, type]] = {
    "scan": {"body": str, **LOOP, "results": tuple},
    "while_loop": {"body": str, "results": tuple},
    "cond": {"on_true": str, "on_false": str, "results": tuple},
    "checkpoint": {"body": str, "results": tuple},
}
"""The attributes of each op that runs bodies: those that are text are the bodies.

A `scan` has inputs as its body. So has a `while_loop`: the first part of its state says whether there is another step,
and its body gives that for the step after. A `cond` has a truth in front of what its sides take, and a `checkpoint`
runs its body once.
"""

BODIES_KEPT = 256


@lru_cache(BODIES_KEPT)
def _parsed(text: str) -> IRGraph:
    return IRGraph.parse(text)


def bodies_of(node: IRNode) -> list[IRGraph]:
    """The graphs that a node runs. Raises IRSyntaxError for a text that is none."""
    return [_parsed(node.attrs[name]) for name, kind in ATTRIBUTES[node.op].items() if kind is str]


def inputs_of(body: IRGraph) -> list[tuple[str, int]]:
    """The inputs of a body in the order of a node's: their kinds, and their ids."""
    named = {value.name: value.id for value in body.with_role(Role.INPUT)}
    kinds = ("carry", "xs", "around")
    found = [(kind, named.get(f"{kind} {i}")) for kind in kinds for i in range(len(named))]
    return [(kind, id) for kind, id in found if id is not None]


def places_of(node: IRNode) -> range:
    """The rows of its arrays in the order of the steps; of a loop without an end so many that none comes to it."""
    if node.op == "while_loop":
        return range(1 << 62)
    length: int = node.attrs.get("length", 1)
    return range(length - 1, -1, -1) if node.attrs.get("reverse") else range(length)


def with_results(node: IRNode, live: Collection[int]) -> IRNode:
    """A node without the outputs that no one reads."""
    kept = [(id, key) for id, key in zip(node.outputs, node.attrs["results"], strict=True) if id in live]
    results = tuple([key for _, key in kept])
    return replace(node, outputs=tuple([id for id, _ in kept]), attrs={**node.attrs, "results": results})


def step_outputs(node: IRNode, body: IRGraph) -> dict[str, int]:
    """The outputs of a body that its node needs: the state after a step, and its results."""
    outputs, wanted = body.outputs, set(node.attrs["results"])
    return {name: id for name, id in outputs.items() if name.startswith("carry ") or name in wanted}


def inferred(node: IRNode, specs: Sequence[Spec | None]) -> list[Spec]:
    """The shapes and element types of the outputs. Raises IRError for inputs that the bodies do not take."""
    made: list[list[Spec]] = []
    for body in bodies_of(node):
        inputs = inputs_of(body)
        taken = [TRUTH] if node.op == "cond" else []
        taken += [_cut(node, kind, body.values[id].spec) for kind, id in inputs]
        if taken != list(specs):
            raise IRError(f"expected inputs {taken}, as its body says, got {list(specs)}")
        if node.op == "while_loop" and specs[0] != TRUTH:
            raise IRError(f"expected a truth as the first part of the state, got {specs[0]}")
        made.append([_result(node, body, key) for key in node.attrs["results"]])
    if made[0] != made[-1]:
        raise IRError(f"expected sides that give the same, got {made[0]} and {made[-1]}")
    return made[0]


def _cut(node: IRNode, kind: str, spec: Spec) -> Spec:
    return Spec((len(places_of(node)), *spec.shape), spec.dtype) if kind == "xs" else spec


def _result(node: IRNode, body: IRGraph, key: str) -> Spec:
    if key not in body.outputs:
        raise IRError(f"expected results among {', '.join(body.outputs)}, got {key!r}")
    spec = body.values[body.outputs[key]].spec
    return spec if key.startswith("carry ") or node.op != "scan" else _cut(node, "xs", spec)


def fault_of(node: IRNode) -> str | None:
    """What is wrong with the attributes of a node; None if nothing is."""
    kinds, attrs = ATTRIBUTES[node.op], node.attrs
    if tuple(attrs) != tuple(kinds):
        return f"expected the attributes {', '.join(kinds)} in this order, got {', '.join(attrs)}"
    wrong = [name for name, kind in kinds.items() if type(attrs[name]) is not kind]
    return f"attribute {wrong[0]!r}: expected {kinds[wrong[0]].__name__}, got {attrs[wrong[0]]!r}" if wrong else None
