"""Correct steps pass: gradients that are constants, updates that get lost, training that leaves the finite numbers.

Where a check was made wider for them, the fault beside it is still found.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, capture
from dgrr.tape import nn, ops

LOSSES = {
    "sum": lambda p, x: ops.reduce_sum(p["a"]),
    "mean": lambda p, x: ops.reduce_mean(p["a"]),
    "sum of a multiple": lambda p, x: ops.reduce_sum(p["a"] * 2.0),
    "two equal sums": lambda p, x: ops.reduce_sum(p["a"]) + ops.reduce_sum(p["b"]),
    "scalars": lambda p, x: p["c"] + p["d"],
    "minimum of a product": lambda p, x: ops.reduce_min(ops.einsum("ij,kj->ik", p["a"], x)),
    "sum of tanh": lambda p, x: ops.reduce_sum(ops.tanh(p["a"])) + ops.reduce_sum(p["b"]),
    "sum of a layer": lambda p, x: ops.reduce_sum(ops.linear(ops.reshape(x * p["s"], (1, 2, 3)), p["a"])),
    "sum of a square": lambda p, x: ops.reduce_sum(ops.tanh(p["a"]) + p["b"] + p["a"]),
    "sum of a norm": lambda p, x: ops.reduce_sum(ops.layer_norm(p["a"] * x, p["row"], p["row"])),
    "through an index": lambda p, x: ops.reduce_sum(ops.take(p["a"], ops.argmin(p["b"] * x, axis=0))),
    "a copy of 1 for two": lambda p, x: ops.where(x > 0, x, p["b"]).sum() + (p["a"] * p["b"]).sum(),
    "joined with nothing": lambda p, x: ops.concat([p["none"], ops.concat([p["none"], p["a"] * x], 1)], 1).T.mean(),
    "pieces of joined arrays": lambda p, x: ops.concat([p["a"] * x, ops.tanh(p["b"])], 1)[:, 1:3].mean(),
    "sum of a softmax": lambda p, x: ops.reduce_sum(ops.softmax(p["a"] / x, axis=0)),
}
SHAPES = {"a": (2, 3), "b": (2, 3), "c": (), "d": (), "s": (2, 3), "row": (3,), "none": (2, 0), "unused": (2,)}


def params(dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {name: np.asarray(rng.standard_normal(shape) + 2, dtype) for name, shape in SHAPES.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_that_do_not_depend_on_the_batch(name: str, dtype: Any) -> None:
    for passes in ((), ("unit-factors", "common-subexpressions"), ("aliases", "strides", "grouped-updates")):
        step = capture(LOSSES[name], params(dtype), Adam(1e-2), np.ones((2, 3), dtype), without_passes=passes)
        report = step.verify(2)
        assert report.ok, str(report)


@pytest.mark.parametrize("layer", [nn.LSTM(3, 4, batch_first=True), nn.GRU(3, 4, batch_first=True)])
def test_the_last_place_of_a_sequence(layer: Any) -> None:
    """Sums of blocks are kept as gradients, and joined anew with others; the other places are not joined at all."""
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    step = capture(lambda p, batch: ops.tanh(layer(p, batch)[:, -1]).sum(), layer.init(seed=0), Adam(1e-2), x)
    report = step.verify(1)
    assert report.ok, str(report)


def test_a_check_of_a_constant_that_is_not_lowered(patient_of: Any) -> None:
    """The copy that the check reads is not taken for the check."""
    patient = patient_of(SGD(0.1), loss=lambda p, batch: p["0.weight"].sum())
    i = max(i for i, op in enumerate(patient.program.ops) if op.kernel.name == "finite")
    node = patient.program.ops[i].source
    assert "copy" in [op.kernel.name for op in patient.program.ops if op.source == node]
    patient.drop_op(i)
    assert patient.check("lowering") == f"step: node {node} (finite): no op of the program does it"


def test_a_copy_of_another_constant(patient_of: Any) -> None:
    """A product with 1 may lie in a copy of its other factor, but of nothing else."""
    patient = patient_of(SGD(0.1), loss=lambda p, batch: (p["0.weight"] * 2.0).sum())
    i = patient.op("copy")
    one = next(id for id, value in patient.program.graph.values.items() if value.content == "1.0")
    patient.replace_op(i, inputs=(one,))
    found = patient.check("lowering")
    assert found.startswith(f"step: op {i} (copy, node ")
    assert "does not read its input" in found


def test_what_is_no_piece(patient_of: Any) -> None:
    """Who reads one of the arrays that no op has joined needs no other, but nothing else will do."""
    none = np.zeros((0, 3), np.float32)
    patient = patient_of(SGD(0.1), loss=lambda p, batch: ops.concat([none, ops.tanh(p["0.weight"])], 0).T.mean())
    i = patient.op("copy")
    one = next(id for id, value in patient.program.graph.values.items() if value.content == "1.0")
    patient.replace_op(i, inputs=(one,))
    assert "does not read its input" in patient.check("lowering")


def test_updates_that_get_lost() -> None:
    """A gradient that is not zero moves nothing where the parameter is too large for it."""
    step = capture(
        lambda p, x: (p["a"] * x).sum(), {"a": np.full(3, 1e3, np.float32)}, SGD(1e-2), np.full(3, 1e-6, "f")
    )
    report = step.verify(2)
    assert report.ok, str(report)


def test_terms_that_cancel_in_float32() -> None:
    """The gradient of a sum of normalised rows is zero, and in float32 what rounding leaves of large terms."""
    a = np.linspace(1, 1.01, 12, dtype=np.float32).reshape(2, 6)
    step = capture(lambda p, x: ops.layer_norm(p["a"] * x).sum(), {"a": a}, SGD(1e-3), np.ones((2, 6), "f"))
    report = step.verify(2)
    assert report.ok, str(report)


# ------------------------------------------------------------------ steps that leave the finite numbers


def explosive() -> CapturedStep:
    """Finite at first; the second step is not."""
    return capture(lambda p, x: ops.exp(p["a"] * p["a"] * x).sum(), {"a": np.arange(1.0, 7)}, SGD(1e-3), np.ones(6))


def test_replays_end_where_the_finite_numbers_end() -> None:
    step = explosive()
    report = step.verify(20)
    assert report.ok, str(report)
    found = {check.name: check.detail for check in report.checks}
    assert found["finite replays"].startswith(
        "1 of 20 replays, and no more are checked; the next one would meet: the first non-finite value is node "
    )
    assert found["update rule"].startswith("1 updates of ")
    assert found["determinism"].startswith("2 runs of 1 replays and as many eager steps")
    assert found["steps at once"] == "1 steps in one launch"


def test_a_step_that_is_not_finite_itself() -> None:
    """What cannot be checked says so, in words."""
    step = explosive()
    step.params["a"] *= 100
    failed = {check.name: check.detail for check in step.verify(2).failures}
    expected = "the first step already leaves the finite numbers, so replays cannot be checked: the first non-finite "
    assert failed["finite replays"].startswith(expected)
    assert failed["allocation"].startswith("Fault: finite of node ")
    assert "object at 0x" not in "".join(failed.values())


def test_a_batch_in_reverse_that_is_not_finite() -> None:
    """Several steps at once take the batch in reverse too, which may end earlier than the batch itself."""
    step = capture(
        lambda p, b: ops.log(b["x"] * p["a"] + b["y"]).sum(),
        {"a": np.ones(2)},
        SGD(1e-3),
        {"x": np.array([-1.0, 2.0]), "y": np.array([2.0, -0.5])},
    )
    report = step.verify(4)
    assert report.ok, str(report)
    assert "steps at once: 1 steps in one launch" in str(report)


def test_differences_beside_a_logarithm_of_little() -> None:
    """A loss that is not finite beside the parameters says nothing of a slope."""
    step = capture(lambda p, x: ops.log(p["a"]).sum(), {"a": np.full(40, 1e-9)}, SGD(1e-12), np.ones(1))
    detail = {check.name: check for check in step.verify(1).checks}["finite differences"]
    assert detail.held
    assert detail.detail.endswith("; 1 of them left out, along which the loss is not finite")


def test_a_constant_1_that_is_no_factor(patient_of: Any) -> None:
    """Products with 1 may be left out; a difference from 1 may not."""
    patient = patient_of(SGD(0.1), loss=lambda p, batch: ops.tanh(p["0.weight"]).sum())
    program, i = patient.program, patient.op("sub")
    ones, other = program.ops[i].inputs
    wrong = replace(program.ops[i], inputs=(other, other))
    ops_left = [wrong if op is program.ops[i] else op for op in program.ops if ones not in op.outputs]
    patient.reprogram(program.with_ops(ops_left))
    assert "does not read its input" in patient.check("lowering")
