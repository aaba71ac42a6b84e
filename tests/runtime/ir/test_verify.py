"""The verifier: each thing that can be wrong with a graph, wrong by itself, and what is said of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dgrr.runtime.ir import IRError, IRGraph, IRNode, Role, checked, verify

from .faults import edited, fault

pytestmark = pytest.mark.quick


def test_a_whole_step_is_accepted(step: IRGraph) -> None:
    verify(step)


def test_an_empty_graph_is_accepted() -> None:
    verify(IRGraph("nothing", {}, (), {}, {}))


# Ids.


def test_values_are_filed_under_their_ids(step: IRGraph) -> None:
    values = {**step.values, 30: step.values[9]}
    assert fault(replace(step, values=values)) == "values[30] has the id 9: file it under its own id"


def test_two_nodes_have_two_ids(step_text: str) -> None:
    graph = edited(step_text, ("#3 ", "#2 "))
    assert fault(graph) == "node 2 (broadcast_to): a node before it has the same id: renumber the nodes"


def test_a_const_says_what_it_is(step_text: str) -> None:
    graph = edited(step_text, (" const = 1.0", " const"))
    assert fault(graph) == ("value %4: a const must say its content: its number, or a digest of its elements")


# Single production, declared before use.

PRODUCTION = {
    "an input that nobody declares": (
        ("linear(%2, %0, %1)", "linear(%40, %0, %1)"),
        "node 0 (linear): input %40 is neither produced by a node nor declared: "
        "declare it as input, param, state or const",
    ),
    "an input that no node produces": (
        ("  %4: float32[] const = 1.0", "  %4: float32[] static"),
        "node 3 (broadcast_to): input %4 is neither produced by a node nor declared: "
        "declare it as input, param, state or const",
    ),
    "a use before the definition": (
        ("mul(%13, %12)", "mul(%13, %12)\n  #20 %50: float32[4, 5] = relu(%51)\n  #21 %51: float32[4, 5] = relu(%50)"),
        "node 20 (relu): input %51 is used before the node that produces it: put that node first",
    ),
    "a node that reads itself": (
        ("transpose2d(%14)", "transpose2d(%15)"),
        "node 5 (transpose2d): input %15 is used before the node that produces it: put that node first",
    ),
    "a value produced twice": (
        ("#4 %14: float32[4, 5]", "#4 %12"),
        "node 4 (mul): output %12 is declared or produced already: give it an id of its own",
    ),
    "a declared value that is produced": (
        ("#4 %14: float32[4, 5]", "#4 %3"),
        "node 4 (mul): output %3 is declared or produced already: give it an id of its own",
    ),
    "an output without a description": (
        ("#4 %14: float32[4, 5]", "#4 %14"),
        "node 4 (mul): output %14 is no value of the graph: describe it in values",
    ),
    "a static value that is left over": (
        ("  #0 ", "  %40: float32[3] static\n  #0 "),
        "value %40 is static and no node produces it: declare it as input, param, state or const, or remove it",
    ),
    "a result that nobody produces": (
        ('output "loss" = %11', 'output "loss" = %40'),
        "output 'loss': %40 is neither produced by a node nor declared: declare it as input, param, state or const",
    ),
}


@pytest.mark.parametrize(("edit", "text"), PRODUCTION.values(), ids=list(PRODUCTION))
def test_every_value_is_produced_or_declared_once_before_its_use(
    step_text: str, edit: tuple[str, str], text: str
) -> None:
    assert fault(edited(step_text, edit)) == text


def test_a_node_and_a_loss_that_read_one_value_without_a_producer() -> None:
    """A relu and a loss both read %4, which should have been the result of the linear op before each of them."""
    graph = IRGraph.parse("""graph "two layers"
      %0: float32[8, 8] param "0.weight"
      %1: float32[64, 8] input "x"
      %2: float32[64, 8] input "t"
      #0 %3: float32[64, 8] = linear(%1, %0, -)
      #1 %5: float32[64, 8] = relu(%4)
      #2 %9: float32[64, 8] = linear(%5, %0, -)
      #3 %10: float32[] = mse_loss(%4, %2)
      output "loss" = %10""")
    assert fault(graph).startswith("node 1 (relu): input %4 is neither produced by a node nor declared")


@pytest.mark.parametrize("role", [Role.INPUT, Role.PARAM, Role.STATE])
def test_names_play_no_part(step: IRGraph, role: Role) -> None:
    values = {id: replace(v, name=f"d_{role}.W" if v.role is role else v.name) for id, v in step.values.items()}
    verify(replace(step, values=values))


# Updates.

UPDATES = {
    "of an input": (
        ("update %0 <- %20", "update %3 <- %20"),
        "update of %3: only a declared param, state or model_state can be updated",
    ),
    "of a const": (
        ("update %0 <- %20", "update %4 <- %20"),
        "update of %4: only a declared param, state or model_state can be updated",
    ),
    "of a static value": (
        ("update %0 <- %20", "update %16 <- %20"),
        "update of %16: only a declared param, state or model_state can be updated",
    ),
    "of nothing": (
        ("update %0 <- %20", "update %40 <- %20"),
        "update of %40: only a declared param, state or model_state can be updated",
    ),
    "to a declared value": (
        ("update %0 <- %20", "update %0 <- %7"),
        "update of %0: no node produces %7: update to what a node of the step produces",
    ),
    "to nothing": (
        ("update %0 <- %20", "update %0 <- %40"),
        "update of %0: no node produces %40: update to what a node of the step produces",
    ),
    "to a value of another shape": (
        ("update %0 <- %20", "update %0 <- %14"),
        "update of %0: expected float32[5, 3], got float32[4, 5] of %14",
    ),
    "to a value of another dtype": (
        ("update %1 <- %23", "#13 %24: float64[5] = cast(%17) {dtype=dtype('float64')}\n  update %1 <- %24"),
        "update of %1: expected float32[5], got float64[5] of %24",
    ),
    "of two values to one": (
        ("update %7 <- %21", "update %7 <- %20"),
        "update of %7: %20 replaces %0 already: update each to its own value",
    ),
}


@pytest.mark.parametrize(("edit", "text"), UPDATES.values(), ids=list(UPDATES))
def test_updates(step_text: str, edit: tuple[str, str], text: str) -> None:
    assert fault(edited(step_text, edit)) == text


# Overwriting in place.

OVERWRITING = {
    "a reader after the optimizer": (
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, %17, %9)\n  #13 %24: float32[3, 5] = transpose2d(%0)"),
        "node 13 (transpose2d): reads %0, which node 11 (adam_step) overwrites: put it before that node",
    ),
    "an output": (
        ('output "grad %1" = %17', 'output "grad %1" = %17\n  output "old" = %1'),
        "node 12 (sgd_step): overwrites %1, but %1 is output 'old'",
    ),
    "the target of an update": (
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, %17, %9)\n  #13 %24: float32[5] = sgd_step(%23, %17, %9)"),
        "node 13 (sgd_step): overwrites %23, but %23 is the update of %1",
    ),
    "a state without an update": (
        ("\n  update %5 <- %18", ""),
        "node 9 (step_inc): overwrites %5, but its update is not %18: update %5 to the result",
    ),
    "a buffer without an update": (
        ("\n  update %8 <- %22", ""),
        "node 11 (adam_step): overwrites %8, but its update is not %22: update %8 to the result",
    ),
    "a param with another update": (
        ("update %0 <- %20", "update %0 <- %16"),
        "node 11 (adam_step): overwrites %0, but its update is not %20: update %0 to the result",
    ),
    "an input of the batch": (
        ('%5: int64[1] state "step"', '%5: int64[1] state "step"\n  %30: float32[5] input'),
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, %17, %9)\n  #13 %31: float32[5] = sgd_step(%30, %17, %9)"),
        "node 13 (sgd_step): overwrites %30, but its role is input: copy it first",
    ),
    "a const": (
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, %17, %9)\n  #13 %31: float32[] = sgd_step(%4, %11, %9)"),
        "node 13 (sgd_step): overwrites %4, but its role is const: copy it first",
    ),
    "a value twice": (
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, %1, %9)"),
        "node 12 (sgd_step): overwrites %1, but it is two of its inputs",
    ),
}


@pytest.mark.parametrize("case", OVERWRITING.values(), ids=list(OVERWRITING))
def test_nothing_is_used_once_it_is_overwritten(step_text: str, case: tuple[Any, ...]) -> None:
    *edits, text = case
    assert fault(edited(step_text, *edits)) == text


def test_a_static_value_may_be_overwritten(step_text: str) -> None:
    more = "sgd_step(%1, %17, %9)\n  #13 %24: float32[4, 5] = sgd_step(%10, %12, %9)"
    verify(edited(step_text, ("sgd_step(%1, %17, %9)", more)))


# The switch.


@pytest.mark.parametrize(("setting", "raises"), [("1", True), ("0", False), ("", False), (None, False)])
def test_the_switch(monkeypatch: pytest.MonkeyPatch, step: IRGraph, setting: str | None, raises: bool) -> None:
    monkeypatch.delenv("DGRR_VERIFY_IR", raising=False)
    if setting is not None:
        monkeypatch.setenv("DGRR_VERIFY_IR", setting)
    wrong = replace(step, nodes=step.nodes[1:])
    assert checked(step) is step
    if raises:
        with pytest.raises(IRError, match="node 1 \\(mse_loss\\): input %10 is neither"):
            checked(wrong)
    else:
        assert checked(wrong) is wrong


# A graph whose loss is left out, or whose backward pass is.


def without(step: IRGraph, unwanted: Callable[[IRNode], bool]) -> IRGraph:
    nodes = tuple([node for node in step.nodes if not unwanted(node)])
    gone = {id for node in step.nodes if unwanted(node) for id in node.outputs}
    return replace(step, nodes=nodes, values={id: v for id, v in step.values.items() if id not in gone})


def test_the_loss_must_be_in_the_graph(step: IRGraph) -> None:
    graph = without(step, lambda node: node.op in ("mse_loss", "finite"))
    assert fault(graph).startswith("output 'loss': %11 is neither produced by a node nor declared")


def test_the_backward_pass_must_be_in_the_graph(step: IRGraph) -> None:
    graph = without(step, lambda node: 2 <= node.id <= 7)
    assert fault(graph).startswith("node 11 (adam_step): input %16 is neither produced by a node nor declared")
