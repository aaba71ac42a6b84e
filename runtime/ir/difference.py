"""Where two recordings of one loss function differ: the first op that is another one, or takes something else."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from .formats.text import attributes
from .graph import IRGraph, IRNode, Role, Value

NOTHING = "nothing more"
"""What stands for the node of a recording that has ended."""


@dataclass(frozen=True)
class ChangedNode:
    """The first node that is another one: the id of its value, and how each recording has it."""

    value: int
    first: str
    second: str


def first_difference(first: IRGraph, second: IRGraph) -> ChangedNode | None:
    """Where ``second`` ceases to be ``first``, in the order of execution; None if they do the same.

    A constant counts where an op takes it: one that no op takes changes nothing.

    >>> text = '''graph "g"
    ...   %0: float32[] input "x"
    ...   %1: float32[] const = 3.0
    ...   #0 %2: float32[] = mul(%0, %1)
    ...   output "loss" = %2'''
    >>> first_difference(IRGraph.parse(text), IRGraph.parse(text.replace("3.0", "4.0")))
    ChangedNode(value=2, first='float32[] mul(%0, float32[] 3.0)', second='float32[] mul(%0, float32[] 4.0)')
    """
    for one, other in zip_longest(_described(first), _described(second), fillvalue=(0, NOTHING)):
        if one[1] != other[1]:
            return ChangedNode(max(one[0], other[0]), one[1], other[1])
    return None


def _described(graph: IRGraph) -> Iterator[tuple[int, str]]:
    """Each node by the id of its value, and all that it says; then what is returned and updated."""
    for node in graph.nodes:
        yield (node.outputs or node.reads)[0], _node(graph, node)
    for name, id in sorted(graph.outputs.items()):
        yield id, f"output {name!r} = {_input(graph.values[id])}"
    for id, target in sorted(graph.updates.items()):
        yield target, f"update {_input(graph.values[id])} <- {_input(graph.values[target])}"


def _node(graph: IRGraph, node: IRNode) -> str:
    results = ", ".join(_spec(graph.values[id]) for id in node.outputs)
    inputs = ", ".join("-" if id is None else _input(graph.values[id]) for id in node.inputs)
    return f"{results} {node.op}({inputs}){attributes(node)}"


def _input(value: Value) -> str:
    return f"{_spec(value)} {value.content}" if value.role is Role.CONST else f"%{value.id}"


def _spec(value: Value) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
