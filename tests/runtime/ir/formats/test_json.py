"""The JSON of graphs: its form, that it is read back equal, its digest, and what is said of another JSON."""

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime.ir import IRError, IRGraph, IRSyntaxError

SMALL = IRGraph.parse("""graph "größe"
  %0: float32[2, 3] param "w"
  %3: float64[] const = 0.5
  #4 (%1: float32[2], %2: bool[]) = f(%0, -) {b=(1.0, slice(1, None, -1), ...), a=dtype('int64'), c=True}
  output "loss" = %2
  update %0 <- %1""")

WRITTEN = (
    r'{"name":"gr\u00f6\u00dfe",'
    r'"nodes":[{"attrs":[["b",[{"float":"1.0"},{"slice":[1,null,-1]},{"ellipsis":null}]],["a",{"dtype":"int64"}],["c",true]],'
    r'"id":4,"inputs":[0,null],"op":"f","outputs":[1,2]}],'
    r'"outputs":{"loss":2},"schema":"dgrr-ir@1","updates":[[0,1]],'
    r'"values":[{"content":"","dtype":"float32","id":0,"name":"w","role":"param","shape":[2,3]},'
    r'{"content":"","dtype":"float32","id":1,"name":"","role":"static","shape":[2]},'
    r'{"content":"","dtype":"bool","id":2,"name":"","role":"static","shape":[]},'
    r'{"content":"0.5","dtype":"float64","id":3,"name":"","role":"const","shape":[]}]}'
)


def test_the_form() -> None:
    assert SMALL.to_json() == WRITTEN
    assert SMALL.digest() == sha256(WRITTEN.encode("ascii")).hexdigest()
    assert IRGraph.from_json(WRITTEN) == SMALL


def test_a_step_is_read_back(step: IRGraph) -> None:
    assert IRGraph.from_json(step.to_json()) == step
    assert str(IRGraph.from_json(step.to_json())) == str(step)


@given(st.data())
@settings(max_examples=300)
def test_every_graph_is_read_back(graphs: st.SearchStrategy[IRGraph], data: st.DataObject) -> None:
    graph = data.draw(graphs)
    text = graph.to_json()
    again = IRGraph.from_json(text)
    assert again == graph
    assert (again.to_json(), again.digest()) == (text, graph.digest())


@given(st.data())
@settings(max_examples=100)
def test_every_reader_of_json_can_read_it(graphs: st.SearchStrategy[IRGraph], data: st.DataObject) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    def ascending(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        assert keys == sorted(set(keys))
        return dict(pairs)

    text = data.draw(graphs).to_json()
    assert text.isascii()
    json.loads(text, parse_constant=refuse, parse_float=refuse, object_pairs_hook=ascending)


def test_blanks_and_the_order_of_keys_do_not_matter() -> None:
    data = json.loads(WRITTEN)
    assert IRGraph.from_json(json.dumps(dict(reversed(data.items())), indent=2)) == SMALL


def test_an_attribute_that_no_graph_can_hold() -> None:
    node = replace(SMALL.nodes[0], attrs={"axis": (1, [2])})
    with pytest.raises(IRError) as caught:
        replace(SMALL, nodes=(node,)).to_json()
    assert str(caught.value) == (
        "IRGraph.to_json: node 4 (f): attribute 'axis': expected an attribute in canonical form, got (1, [2]); "
        "record it through canonical()"
    )


KEYS = "name, nodes, outputs, schema, updates, values"
NODE_KEYS = "attrs, id, inputs, op, outputs"
VALUE_KEYS = "content, dtype, id, name, role, shape"
WRONG: dict[str, tuple[str, str, str]] = {
    "no JSON": ('{"name"', '{"name', "line 1: expected JSON (Unterminated string starting at), got "),
    "another schema": ("dgrr-ir@1", "dgrr-ir@2", "schema: expected 'dgrr-ir@1', got 'dgrr-ir@2'"),
    "a key missing": ('"updates":[[0,1]],', "", f"the graph: expected an object of {KEYS}, got "),
    "a key too many": ('"updates"', '"more":1,"updates"', f"the graph: expected an object of {KEYS}, got "),
    "a key twice": ('"op":"f"', '"op":"f","op":"g"', "an object: expected each key once, got 'op'"),
    "a name that is none": (r'"gr\u00f6\u00dfe"', "1", "the graph.name: expected a JSON str, got 1"),
    "nodes that are none": ('"outputs":{"loss":2}', '"outputs":[]', "the graph.outputs: expected a JSON dict, got []"),
    "an output that is none": ('"loss":2', '"loss":"%2"', "outputs['loss']: expected a whole number, got '%2'"),
    "an output that is true": ('"loss":2', '"loss":true', "outputs['loss']: expected a whole number, got True"),
    "an update that is none": ("[[0,1]]", "[[0,1,2]]", "updates[0]: expected a pair of ids, got [0, 1, 2]"),
    "an update of nothing": ("[[0,1]]", "[[0,null]]", "updates[0][1]: expected a whole number, got None"),
    "an update twice": ("[[0,1]]", "[[0,1],[0,2]]", "updates: expected each key once, got 0"),
    "a value twice": ('"id":3', '"id":2', "values: expected each key once, got 2"),
    "a value without a role": ('"role":"param",', "", f"values[0]: expected an object of {VALUE_KEYS}, got "),
    "an unknown role": (
        '"param"',
        '"parm"',
        "values[0].role: expected one of input, param, state, model_state, const, static, got 'parm'",
    ),
    "an unknown dtype": (
        '"float64"', '"object"', "values[3].dtype: expected an element type such as 'float32', got 'object'"
    ),
    "a size that is none": ("[2,3]", '[2,"N"]', "values[0].shape[1]: expected a whole number, got 'N'"),
    "an id that is none": ('"id":0', '"id":0.0', "values[0].id: expected a JSON int, got 0.0"),
    "a node without an op": ('"op":"f",', "", f"nodes[0]: expected an object of {NODE_KEYS}, got "),
    "an input that is none": ("[0,null]", "[0,[]]", "nodes[0].inputs[1]: expected a whole number, got []"),
    "an output of a node that is none": ("[1,2]", "[1,null]", "nodes[0].outputs[1]: expected a whole number, got None"),
    "an attribute without a name": ('["c",true]', "[true]", "nodes[0].attrs[2]: expected a name and an attribute"),
    "an attribute twice": ('["c",true]', '["b",true]', "nodes[0].attrs: expected each key once, got 'b'"),
    "a bare float": ('["c",true]', '["c",1.5]', "nodes[0].attrs[2] (c): expected an attribute, got 1.5"),
    "a NaN": ('["c",true]', '["c",NaN]', "nodes[0].attrs[2] (c): expected an attribute, got nan"),
    "an unknown tag": ('{"ellipsis":null}', '{"list":[]}', "nodes[0].attrs[0] (b): expected an attribute, got "),
    "two tags": (
        '{"ellipsis":null}', '{"ellipsis":null,"float":"1.0"}', "nodes[0].attrs[0] (b): expected an attribute, got "
    ),
    "a slice and more": ("[1,null,-1]", '[1,null,-1],"more":1', "nodes[0].attrs[0] (b): expected an attribute, got "),
    "a float written in another way": ('"1.0"', '"1.00"', "nodes[0].attrs[0] (b): expected an attribute, got "),
    "a float that is none": ('"1.0"', '"one"', "nodes[0].attrs[0] (b): expected an attribute, got "),
    "a dtype by another name": ('"int64"', '"i8"', "nodes[0].attrs[1] (a): expected an attribute, got {'dtype': 'i8'}"),
    "a slice of two": ("[1,null,-1]", "[1,null]", "nodes[0].attrs[0] (b): expected an attribute, got "),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), WRONG.values(), ids=list(WRONG))
def test_a_json_that_is_no_graph(old: str, new: str, expected: str) -> None:
    assert WRITTEN.count(old) == 1
    text = WRITTEN.replace(old, new) if old != '{"name"' else new
    with pytest.raises(IRSyntaxError) as caught:
        IRGraph.from_json(text)
    assert str(caught.value).startswith(f"IRGraph.from_json: {expected}")


@pytest.mark.parametrize("text", ["null", "[]", "1", '"graph"'])
def test_another_json(text: str) -> None:
    with pytest.raises(IRSyntaxError) as caught:
        IRGraph.from_json(text)
    expected = f"IRGraph.from_json: the graph: expected an object of {KEYS}, got {json.loads(text)!r}"
    assert str(caught.value) == expected
