"""The text of graphs: how it looks, that it is read back equal, and what is said of a text that is none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime.ir import IRGraph, IRNode, IRSyntaxError, Role, Value
from dgrr.tape import DgrrError
from dgrr.tape.values.spec import Spec


def test_a_step_prints_as_it_is_written(step: IRGraph, step_text: str) -> None:
    assert str(step) == step_text
    assert f"{step}" == step_text


def test_what_the_reader_makes_of_it(step: IRGraph) -> None:
    assert step.name == "step"
    assert list(step.values) == list(range(24))
    assert step.values[0] == Value(0, Spec((5, 3), np.dtype(np.float32)), Role.PARAM, "0.weight")
    assert step.values[21] == Value(21, Spec((5, 3), np.dtype(np.float32)), Role.STATIC)
    assert step.values[9].content == "sha256:5f2c"
    assert step.values[11].name == "loss"
    assert step.nodes[8] == IRNode(8, "finite", (11,), ())
    assert step.nodes[11] == IRNode(11, "adam_step", (0, 7, 8, 16, 19, 9), (20, 21, 22), {"attributes": (0,)})
    assert step.outputs == {"loss": 11, "grad %0": 16, "grad %1": 17}
    assert step.updates == {0: 20, 1: 23, 5: 18, 6: 19, 7: 21, 8: 22}


@given(st.data())
@settings(max_examples=300)
def test_every_graph_is_read_back(graphs: st.SearchStrategy[IRGraph], data: st.DataObject) -> None:
    graph = data.draw(graphs)
    text = str(graph)
    assert IRGraph.parse(text) == graph
    assert str(IRGraph.parse(text)) == text


@given(st.data())
@settings(max_examples=50)
def test_there_is_one_line_for_each_thing(graphs: st.SearchStrategy[IRGraph], data: st.DataObject) -> None:
    graph = data.draw(graphs)
    _, *lines = str(graph).split("\n")
    starts = [line.split()[0] for line in lines]
    assert [s[1:] for s in starts if s.startswith("#")] == [str(node.id) for node in graph.nodes]
    assert starts.count("output") == len(graph.outputs)
    assert starts.count("update") == len(graph.updates)
    assert all(line.isprintable() for line in lines)


def test_blanks_and_the_order_of_descriptions_do_not_matter(step: IRGraph, step_text: str) -> None:
    head, *lines = step_text.split("\n")
    nodes = [line for line in lines if "#" in line]
    others = [line for line in lines if "#" not in line]
    spread = [line.replace("(", " ( ").replace(",", " , ") for line in nodes]
    assert IRGraph.parse("\n\n".join([head, *reversed(others), *spread, ""])) == step


def test_odd_names_and_contents_stay_on_one_line() -> None:
    value = Value(3, Spec((), np.dtype(np.float32)), Role.CONST, 'a "b"\n\\', "x y")
    graph = replace(IRGraph.parse(SMALL), name="größe\u2028", values={3: value}, outputs={"\x00": 3})
    assert str(graph).split("\n") == [
        'graph "gr\\u00f6\\u00dfe\\u2028"',
        '  %3: float32[] const "a \\"b\\"\\n\\\\" = "x y"',
        '  output "\\u0000" = %3',
    ]
    assert IRGraph.parse(str(graph)) == graph


def of_text(text: str) -> IRGraph:
    """A graph with a node that has a text among its attributes."""
    return IRGraph("g", {}, (IRNode(0, "f", (), (), {"a": 1, "body": text, "b": (2,)}),), {}, {})


def test_a_text_of_several_lines_stands_below_its_node() -> None:
    inner = str(of_text("x\n  y"))
    graph = of_text(inner)
    assert str(graph).split("\n") == [
        'graph "g"',
        "  #0 () = f() {a=1, body=below, b=(2,)}",
        "    body:",
        '      graph "g"',
        "        #0 () = f() {a=1, body=below, b=(2,)}",
        "          body:",
        "            x",
        "              y",
    ]
    assert IRGraph.parse(str(graph)) == graph
    assert list(IRGraph.parse(str(graph)).nodes[0].attrs) == ["a", "body", "b"]


@pytest.mark.parametrize("text", ["one line", "a\n\nb", "a\n ", "a\r\nb", "a\n\tb", "", "\n", "a\n\u2028b"])
def test_a_text_that_has_no_such_lines_stays_on_its_line(text: str) -> None:
    assert str(of_text(text)).count("\n") == 1
    assert IRGraph.parse(str(of_text(text))) == of_text(text)


@given(st.text('ab :#%\n\\"', max_size=12))
def test_every_text_is_read_back(text: str) -> None:
    assert IRGraph.parse(str(of_text(text))) == of_text(text)


def test_a_text_that_is_missing_is_told() -> None:
    expected = "expected the attribute 'body' of the node before: '    body:', and below its text, got"
    text = str(of_text("x\ny"))
    assert refusal(text.removesuffix("\n    body:\n      x\n      y")) == (
        f"IRGraph.parse: line 2: {expected} 'the end of the line'"
    )
    assert refusal(text.replace("body:", "bodies:")) == f"IRGraph.parse: line 3: {expected} 'bodies:'"
    assert refusal(text + "\n    body:").startswith("IRGraph.parse: line 6: expected a value (%)")


SMALL = """graph "small"
  %0: float32[] input"""


def test_a_wrong_graph_prints_too() -> None:
    graph = IRGraph.parse(SMALL)
    node = IRNode(4, "add", (7, None), (0, 9, 9), {"x": object})
    values = {**graph.values, 9: replace(graph.values[0], id=9, role=Role.STATIC)}
    text = str(replace(graph, values=values, nodes=(node,), outputs={"loss": 8}, updates={5: 6}))
    assert text.split("\n")[2:] == [
        "  #4 (%0, %9: float32[], %9) = add(%7, -) {x=<class 'object'>}",
        '  output "loss" = %8',
        "  update %5 <- %6",
    ]


WRONG = {
    "nothing": ("", "line 1: expected 'graph' and a name, got 'the end of the line'"),
    "no head": ("%0: float32[] input", "line 1: expected 'graph' and a name, got '%0: float32[] input'"),
    "no name": ("graph step", "line 1: expected a name in double quotes, got 'step'"),
    "a name cut short": ('graph "step', "line 1: expected a name in double quotes, got '\"step'"),
    "an unknown escape": ('graph "\\q"', "line 1: expected a string with JSON's escapes, got '\"\\\\q\"'"),
    "more after the name": ('graph "g" %1', "line 1: expected the end of the line, got '%1'"),
}

WRONG_LINES = {
    "something else": ("return %0", "a value (%), a node (#), 'output' or 'update', got 'return %0'"),
    "no id": ("%x: float32[] input", "a value such as %3, got '%x: float32[] input'"),
    "no colon": ("%1 float32[] input", "':', got 'float32[] input'"),
    "no dtype": ("%1:", "an element type, got 'the end of the line'"),
    "an unknown dtype": ("%1: float31[] input", "an element type such as float32, got 'float31'"),
    "a dtype by another name": ("%1: f4[] input", "an element type such as float32, got 'f4'"),
    "a dtype of objects": ("%1: object[] input", "an element type such as float32, got 'object'"),
    "no shape": ("%1: float32 input", "'[', got 'input'"),
    "a size that is none": ("%1: float32[N] input", "a size, got 'N] input'"),
    "a shape cut short": ("%1: float32[2", "',' or ']', got 'the end of the line'"),
    "sizes without a comma": ("%1: float32[2 3] input", "',' or ']', got '3] input'"),
    "no role": ("%1: float32[]", "one of input, param, state, model_state, const, static, got 'the end of the line'"),
    "an unknown role": ("%1: float32[] parm", "one of input, param, state, model_state, const, static, got 'parm'"),
    "more after a value": ("%1: float32[] input input", "the end of the line, got 'input'"),
    "no content": ("%1: float32[] const =", "what the constant is, got 'the end of the line'"),
    "a value twice": ("%0: float32[] input", "one description of %0, got 'a second one'"),
    "a value produced and described": ("#0 %0: float32[] = f()", "one description of %0, got 'a second one'"),
    "a node without an id": ("# %1 = f()", "a node such as #3, got '# %1 = f()'"),
    "a node without results": ("#0 = f()", "a value such as %3, got '= f()'"),
    "a node without an op": ("#0 %1 = (%0)", "the name of an op, got '(%0)'"),
    "a node without inputs": ("#0 %1 = f", "'(', got 'the end of the line'"),
    "inputs cut short": ("#0 %1 = f(%0", "',' or ')', got 'the end of the line'"),
    "an input that is none": ("#0 %1 = f(0)", "a value such as %3, got '0)'"),
    "attributes without braces": ("#0 %1 = f() axis=0", "attributes such as {axis=0}, got 'axis=0'"),
    "attributes cut short": ("#0 %1 = f() {axis=0", "attributes such as {axis=0}, got '{axis=0'"),
    "an attribute without a value": ("#0 %1 = f() {axis=}", "attributes such as {axis=0}, got '{axis=}'"),
    "an attribute without a name": ("#0 %1 = f() {0}", "attributes such as {axis=0}, got '{0}'"),
    "a number unpacked": ("#0 %1 = f() {**nan}", "attributes such as {axis=0}, got '{**nan}'"),
    "attributes unpacked": ("#0 %1 = f() {**{}}", "attributes such as {axis=0}, got '{**{}}'"),
    "an attribute twice": ("#0 %1 = f() {a=0, a=1}", "one attribute 'a', got 'a second one'"),
    "an expression": ("#0 %1 = f() {a=1 + 1}", "attributes such as {axis=0}, got '{a=1 + 1}'"),
    "another call": ("#0 %1 = f() {a=print(1)}", "attributes such as {axis=0}, got '{a=print(1)}'"),
    "another expression": ("#0 %1 = f() {a=0) + (1}", "attributes such as {axis=0}, got '{a=0) + (1}'"),
    "a name": ("#0 %1 = f() {a=b}", "attributes such as {axis=0}, got '{a=b}'"),
    "a list": ("#0 %1 = f() {a=[1]}", "attributes such as {axis=0}, got '{a=[1]}'"),
    "bytes": ("#0 %1 = f() {a=b'x'}", "attributes such as {axis=0}, got \"{a=b'x'}\""),
    "a complex number": ("#0 %1 = f() {a=1j}", "attributes such as {axis=0}, got '{a=1j}'"),
    "minus a bool": ("#0 %1 = f() {a=-True}", "attributes such as {axis=0}, got '{a=-True}'"),
    "an unknown dtype in it": ("#0 %1 = f() {a=dtype('f4')}", "attributes such as {axis=0}, got \"{a=dtype('f4')}\""),
    "an output without a name": ("output %0", "a name in double quotes, got '%0'"),
    "an output without a value": ('output "loss" =', "a value such as %3, got 'the end of the line'"),
    "an output without its sign": ('output "loss" %0', "'=', got '%0'"),
    "an update the wrong way": ("update %0 -> %1", "'<-', got '-> %1'"),
}


def refusal(text: str) -> str:
    with pytest.raises(IRSyntaxError) as caught:
        IRGraph.parse(text)
    assert isinstance(caught.value, DgrrError)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=list(WRONG))
def test_a_text_that_is_no_graph(text: str, expected: str) -> None:
    assert refusal(text) == f"IRGraph.parse: {expected}"


@pytest.mark.parametrize(("line", "expected"), WRONG_LINES.values(), ids=list(WRONG_LINES))
def test_a_line_that_is_none(line: str, expected: str) -> None:
    assert refusal(f"{SMALL}\n\n  {line}\n") == f"IRGraph.parse: line 4: expected {expected}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [('output "loss" = %0', "one output 'loss'"), ("update %0 <- %1", "one update of %0")],
)
def test_a_line_twice(line: str, expected: str) -> None:
    assert refusal("\n".join([SMALL, line, line])) == f"IRGraph.parse: line 4: expected {expected}, got 'a second one'"


@given(st.data())
@settings(max_examples=200)
def test_a_damaged_text_is_read_or_refused(graphs: st.SearchStrategy[IRGraph], data: st.DataObject) -> None:
    text = str(data.draw(graphs))
    start, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 5))
    damaged = (
        text[:start] + data.draw(st.sampled_from(["", "(", '"', ",", "\n", "%", "\\", "{"])) + text[start + length :]
    )
    try:
        made = IRGraph.parse(damaged)
    except IRSyntaxError:
        return
    assert IRGraph.parse(str(made)) == made
