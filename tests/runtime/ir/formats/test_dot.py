"""The drawing of graphs: a small graph drawn by hand, and every graph as valid DOT."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime.ir import IRGraph

pytestmark = pytest.mark.quick

GRAPH = r"""graph "a \"step\""
  %0: float32[2, 3] param "w"
  %1: float32[2] input "back\\slash"
  %2: float64[5] const "hyper" = sha256:0a
  %3: float32[2, 3] state "m"
  #0 %4: float32[] "loss" = f(%0, %0, -) {name='"two\nlines"'}
  #1 (%5: float32[2, 3], %6: float32[2, 3]) = g(%0, %3, %2)
  #2 () = h(%6)
  output "loss" = %4
  output "kept" = %1
  update %0 <- %5
  update %3 <- %6"""

DRAWN = r"""digraph "a \"step\"" {
  node [shape=ellipse];
  v0 [label="%0 param\nw\nfloat32[2, 3]", shape=box, style=filled, fillcolor="lightblue"];
  v1 [label="%1 input\nback\\slash\nfloat32[2]", shape=box, style=filled, fillcolor="palegreen"];
  v2 [label="%2 const\nhyper\nfloat64[5]\nsha256:0a", shape=box, style=filled, fillcolor="lightgrey"];
  v3 [label="%3 state\nm\nfloat32[2, 3]", shape=box, style=filled, fillcolor="khaki"];
  n0 [label="#0 f {name='\"two\\nlines\"'}"];
  v0 -> n0;
  v0 -> n0;
  n1 [label="#1 g"];
  v0 -> n1;
  v3 -> n1;
  v2 -> n1;
  n2 [label="#2 h"];
  n1 -> n2 [label="%6"];
  o0 [label="kept", shape=plaintext];
  v1 -> o0;
  o1 [label="loss", shape=plaintext];
  n0 -> o1;
  n1 -> v0 [label="%5", style=dashed, constraint=false];
  n1 -> v3 [label="%6", style=dashed, constraint=false];
}"""


def test_a_small_graph() -> None:
    assert IRGraph.parse(GRAPH).to_dot() == DRAWN


STRING = r'"(?:[^"\\]|\\["\\n])*"'
ID = r"[a-z]\d+"
ATTRIBUTES = rf"(?: \[\w+=(?:\w+|{STRING})(?:, \w+=(?:\w+|{STRING}))*\])?"
DOT = re.compile(
    rf"digraph {STRING} \{{\n"
    rf"(?:  (?:node|{ID}(?: -> {ID})?){ATTRIBUTES};\n)*"
    r"\}"
)
"""The part of the DOT language that drawings use; in its strings only quotes, backslashes and n may be escaped."""


@given(st.data())
@settings(max_examples=200)
@pytest.mark.long
def test_every_drawing_is_dot(graphs: st.SearchStrategy[IRGraph], data: st.DataObject) -> None:
    graph = data.draw(graphs)
    drawing = graph.to_dot()
    assert DOT.fullmatch(drawing), drawing
    assert len(re.findall(r"(?m)^  n\d+ \[label=", drawing)) == len(graph.nodes)
    reads = sum(len(node.reads) for node in graph.nodes)
    edges = re.findall(rf"(?m)^  {ID} -> {ID}", drawing)
    assert len(edges) == reads + len(graph.outputs) + len(graph.updates)
