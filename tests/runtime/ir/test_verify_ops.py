"""The verifier at one node: its op, its attributes and inputs, the shapes and dtypes of its outputs."""

from dataclasses import replace
from typing import Any

import pytest

from dgrr.runtime.ir import IRGraph, verify

from .faults import edited, fault

# Ops, their attributes and inputs.

OPS_AND_ATTRIBUTES = {
    "an unknown op": (
        ("= mul(", "= Backward("),
        "node 4 (Backward): there is no op of this name: use one of the op tables",
    ),
    "a missing attribute": (
        ("{axis=0, keepdims=False}", "{axis=0}"),
        "node 7 (reduce_sum): expected the attributes axis, keepdims in this order, got axis",
    ),
    "an unknown attribute": (
        ("transpose2d(%14)", "transpose2d(%14) {lr=0.001}"),
        "node 5 (transpose2d): expected the attributes none in this order, got lr",
    ),
    "attributes in another order": (
        ("{axis=0, keepdims=False}", "{keepdims=False, axis=0}"),
        "node 7 (reduce_sum): expected the attributes axis, keepdims in this order, got keepdims, axis",
    ),
    "an attribute by name in a primitive of the optimizer": (
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, %17, %9) {lr=0.001}"),
        "node 12 (sgd_step): expected no attributes but 'attributes', a tuple of ints, got {'lr': 0.001}",
    ),
    "a primitive's words that are no ints": (
        ("{attributes=(0,)}", "{attributes=(0.5,)}"),
        "node 11 (adam_step): expected no attributes but 'attributes', a tuple of ints, got {'attributes': (0.5,)}",
    ),
    "a primitive's words that are no tuple": (
        ("{attributes=(0,)}", "{attributes=0}"),
        "node 11 (adam_step): expected no attributes but 'attributes', a tuple of ints, got {'attributes': 0}",
    ),
    "an input too few": (
        ("mul(%13, %12)", "mul(%13)"),
        "node 4 (mul): expected the inputs a, b, got 1 inputs",
    ),
    "an input too many": (
        ("transpose2d(%14)", "transpose2d(%14, %13)"),
        "node 5 (transpose2d): expected the inputs x, got 2 inputs",
    ),
    "an input omitted that is needed": (
        ("mul(%13, %12)", "mul(-, %12)"),
        "node 4 (mul): the input a must not be omitted",
    ),
    "an input of the optimizer omitted": (
        ("sgd_step(%1, %17, %9)", "sgd_step(%1, -, %9)"),
        "node 12 (sgd_step): no input of this op can be omitted",
    ),
    "too few inputs to overwrite": (
        ("adam_step(%0, %7, %8, %16, %19, %9)", "adam_step(%0, %7)"),
        "node 11 (adam_step): expected at least 3 inputs, got 2",
    ),
    "a check of nothing": (
        ("finite(%11)", "finite()"),
        "node 8 (finite): expected at least 1 inputs, got 0",
    ),
}


@pytest.mark.parametrize(("edit", "text"), OPS_AND_ATTRIBUTES.values(), ids=list(OPS_AND_ATTRIBUTES))
def test_ops_attributes_and_inputs(step_text: str, edit: tuple[str, str], text: str) -> None:
    assert fault(edited(step_text, edit)) == text


def test_an_optional_input_may_be_omitted(step_text: str) -> None:
    verify(edited(step_text, ("linear(%2, %0, %1)", "linear(%2, %0, -)")))


@pytest.mark.parametrize("value", [[0], {0}, object, 1j, b"0"])
def test_an_attribute_that_no_graph_can_hold(step: IRGraph, value: Any) -> None:
    nodes = tuple([replace(n, attrs={"axis": value, "keepdims": False}) if n.attrs else n for n in step.nodes])
    assert fault(replace(step, nodes=nodes)) == (
        f"node 3 (broadcast_to): attribute 'axis': {value!r} is not in canonical form: record it through canonical()"
    )


# Shapes and dtypes.

SHAPES = {
    "an op that refuses its inputs": (
        ("linear(%2, %0, %1)", "linear(%3, %0, %1)"),
        "node 0 (linear): the op refuses its inputs or attributes: "
        "ShapeError: linear: argument 'w': expected shape (N, 5), got (5, 3); "
        "the last axis of x is 5, and w takes 3",
    ),
    "a dtype that the op refuses": (
        ("mul(%13, %12)", "mul(%13, %9)"),
        "node 4 (mul): the op refuses its inputs or attributes: "
        "DTypeError: mul: argument 'b': expected float32, got float64; convert with ops.cast, "
        "data that numpy made float64 with x.astype(np.float32)",
    ),
    "an attribute that the op refuses": (
        ("{axis=0, keepdims=False}", "{axis=2, keepdims=False}"),
        "node 7 (reduce_sum): the op refuses its inputs or attributes: "
        "ShapeError: reduce_sum: argument 'axis': expected an axis from -2 to 1, got 2",
    ),
    "a wrong shape": (
        ("%16: float32[5, 3]", "%16: float32[3, 5]"),
        "node 6 (matmul): expected the outputs float32[5, 3], got float32[3, 5]: infer them again",
    ),
    "a wrong dtype": (
        ("%11: float32[]", "%11: float64[]"),
        "node 1 (mse_loss): expected the outputs float32[], got float64[]: infer them again",
    ),
    "a wrong shape of the optimizer's": (
        ("%22: float32[5, 3]", "%22: float32[5]"),
        "node 11 (adam_step): expected the outputs float32[5, 3], float32[5, 3], float32[5, 3], "
        "got float32[5, 3], float32[5, 3], float32[5]: infer them again",
    ),
    "an output too many": (
        ("#5 %15: float32[5, 4]", "#5 (%15: float32[5, 4], %40: float32[4])"),
        "node 5 (transpose2d): expected the outputs float32[5, 4], got float32[5, 4], float32[4]: infer them again",
    ),
    "no output": (
        ("#9 %18: int64[1] =", "%18: int64[1] input\n  #9 () ="),
        "node 9 (step_inc): expected the outputs int64[1], got none: infer them again",
    ),
}


@pytest.mark.parametrize(("edit", "text"), SHAPES.values(), ids=list(SHAPES))
def test_shapes_and_dtypes_are_inferred_anew(step_text: str, edit: tuple[str, str], text: str) -> None:
    assert fault(edited(step_text, edit)) == text


def test_an_op_may_refuse_in_its_own_way(step_text: str) -> None:
    text = fault(edited(step_text, ("{axis=0, keepdims=False}", "{axis='rows', keepdims=False}")))
    assert text.startswith("node 7 (reduce_sum): the op refuses its inputs or attributes: TypeError: ")
