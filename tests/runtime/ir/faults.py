"""Graphs with a fault put into them, and what the verifier says of it."""

import pytest

from dgrr.runtime.ir import IRError, IRGraph, verify


def fault(graph: IRGraph) -> str:
    """What the verifier says, without the name of the graph."""
    with pytest.raises(IRError) as caught:
        verify(graph)
    head = f"graph {graph.name!r}: "
    assert str(caught.value).startswith(head)
    return str(caught.value)[len(head) :]


def edited(text: str, *edits: tuple[str, str]) -> IRGraph:
    """The graph of a text in which each of some parts, which stand there once, is another."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return IRGraph.parse(text)
