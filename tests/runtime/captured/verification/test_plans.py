"""Surgery on programs, tables and memory: each fault is found by its own check, which names the op or value."""

from ctypes import c_int64
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.lower.array_layout import ArrayLayout
from dgrr.runtime.lower.program import StoragePlace
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.engine.machine import KERNEL, PARTS, TABLE, WORDS


def name_of(patient: Any, i: int) -> str:
    op = patient.program.ops[i]
    return f"step: op {i} ({op.kernel.name}, node {op.source})"


# ------------------------------------------------------------------ lowering


@pytest.mark.parametrize("kernel", ["relu", "where_positive", "sum_columns", "sub"])
def test_a_node_that_is_not_lowered(patient: Any, kernel: str) -> None:
    i = patient.op(kernel)
    out = patient.program.ops[i].outputs[0]
    patient.drop_op(i)
    found = patient.check("lowering")
    assert found.endswith(f"reads %{out} before any op has written it") or "no op computes it" in found


def test_an_update_that_is_not_lowered(patient: Any) -> None:
    i = patient.op("adam_step")
    node = patient.program.ops[i].source
    patient.drop_op(i)
    assert patient.check("lowering") == f"step: node {node} (adam_step): no op computes it"


def test_a_check_that_is_not_lowered(patient: Any) -> None:
    i = patient.op("finite")
    node = patient.program.ops[i].source
    patient.drop_op(i)
    assert patient.check("lowering") == f"step: node {node} (finite): no op of the program does it"


def test_an_op_that_reads_another_value(patient: Any) -> None:
    i = patient.op("sub")
    wrong = patient.program.ops[i]
    patient.replace_op(i, inputs=(wrong.inputs[1], wrong.inputs[1]))
    node = f"step: node {wrong.source} (sub)"
    assert patient.check("lowering") == f"{name_of(patient, i)}: computes {node}, but does not read its input %8"


def test_an_op_that_reads_more_than_its_nodes(patient: Any) -> None:
    i = patient.op("relu")
    stranger = next(iter(patient.plans.recording.inputs))
    patient.replace_op(i, inputs=(*patient.program.ops[i].inputs, stranger))
    assert patient.check("lowering") == f"{name_of(patient, i)}: reads %{stranger}, which none of its nodes reads"


def test_a_fused_op_that_lost_an_operand(fused: Any) -> None:
    op = fused.program.ops[0]
    fused.replace_op(0, inputs=op.inputs[:2])
    found = fused.check("lowering")
    assert found == f"{name_of(fused, 0)}: computes step: node 0 (linear), but does not read its input %1"


def test_an_op_that_runs_twice(patient: Any) -> None:
    i = patient.op("relu")
    ops = list(patient.program.ops)
    patient.reprogram(patient.program.with_ops([*ops[: i + 1], ops[i], *ops[i + 1 :]]))
    assert patient.check("lowering").endswith(f"is written by both op {i} and op {i + 1}")


def test_an_op_that_is_left_over(patient: Any) -> None:
    i = patient.op("relu")
    op, program = patient.program.ops[i], patient.program
    free = max(program.places) + 1
    places = {
        **program.places,
        free: StoragePlace(free, ArrayLayout.dense(program.layout(op.outputs[0]).shape, op.element)),
    }
    extra = replace(op, outputs=(free,))
    patient.reprogram(replace(program, places=places, ops=(*program.ops[: i + 1], extra, *program.ops[i + 1 :])))
    found = patient.check("lowering")
    assert found == f"{name_of(patient, i + 1)}: is left over: it computes no node, and no op reads its result"


def test_an_op_of_no_node(patient: Any) -> None:
    i = patient.op("relu")
    patient.replace_op(i, source=999)
    assert patient.check("lowering") == f"step: op {i} (relu, node 999): comes from no node of the graph"


def test_a_view_that_changes_elements(patient: Any) -> None:
    i, program = patient.op("relu"), patient.program
    op = program.ops[i]
    places = {v: p._replace(root=op.inputs[0]) if p.root == op.outputs[0] else p for v, p in program.places.items()}
    ops = [other for other in program.ops if other is not op]
    patient.reprogram(replace(program, places=places, ops=tuple(ops), views=program.views | {op.source}))
    expected = f"step: node {op.source} (relu): became a view of another value, but it changes elements"
    assert patient.check("lowering") == expected


# ------------------------------------------------------------------ table


def test_a_row_with_another_kernel(patient: Any) -> None:
    i = patient.op("relu")
    patient.bound.rows[i, KERNEL] = KERNELS["neg"].address(np.dtype(np.float32))
    assert patient.check("bound table").startswith(f"{name_of(patient, i)}: kernel: expected ")


def test_a_row_with_another_operand(patient: Any) -> None:
    i = patient.op("sub")
    first = c_int64.from_address(int(patient.bound.rows[i, TABLE]))
    right, first.value = first.value, first.value + 64
    assert patient.check("bound table").startswith(f"{name_of(patient, i)}: pointers: expected [{right}, ")


def test_a_row_with_other_words(patient: Any) -> None:
    i, wrong = patient.op("sub"), Words(11)
    patient.bound.rows[i, WORDS] = wrong.address
    assert patient.check("bound table") == f"{name_of(patient, i)}: words: expected [12], got [11]"


def test_a_row_in_other_parts(patient: Any) -> None:
    i = patient.op("relu")
    patient.bound.rows[i, PARTS] = 2
    assert patient.check("bound table") == f"{name_of(patient, i)}: parts: expected 1, got 2"


def test_rows_in_another_order(patient: Any) -> None:
    i = patient.op("relu")
    rows = patient.bound.rows
    rows[[i, i + 1]] = rows[[i + 1, i]]
    assert patient.check("bound table").startswith(f"{name_of(patient, i)}: kernel: expected ")


def test_a_constant_that_is_not_the_recorded_one(patient: Any) -> None:
    hyper = next(value for value in patient.program.graph.values.values() if value.name == "hyper")
    patient.bound.memory[hyper.id].view(np.float64)[0] = 0.5
    expected = f"step: constant %{hyper.id}: element [0]: expected 0.01, got 0.5 (1 of 5 differ)"
    assert patient.check("bound table") == expected


# ------------------------------------------------------------------ arena


def relu_and_its_input(patient: Any) -> tuple[int, int]:
    op = patient.program.ops[patient.op("where_positive")]
    return op.inputs


def test_blocks_that_overlap(patient: Any) -> None:
    plan = patient.bound.plan
    a, b = relu_and_its_input(patient)
    slots = {**plan.slots, a: plan.slots[a]._replace(offset=plan.slots[b].offset)}
    patient.put(replace(plan, slots=slots))
    found = patient.check("arena")
    assert "share bytes while both are alive" in found
    assert f"%{plan.slots[a].owner}" in found
    assert f"%{plan.slots[b].owner}" in found


def test_lifetimes_that_are_too_short(patient_of: Any) -> None:
    """Blocks that are apart by what they say of themselves, although a value is overwritten before it is read."""
    patient = patient_of(without_passes=("epilogues", "in-place"))
    plan, i = patient.bound.plan, patient.op("where_positive")
    saved, later = patient.program.ops[i].inputs[1], patient.program.ops[patient.op("sub")].outputs[0]
    early = plan.slots[saved]._replace(last=plan.slots[later].first - 1)
    moved = plan.slots[later]._replace(offset=early.offset)
    changed = {id(plan.slots[saved]): early, id(plan.slots[later]): moved}
    patient.put(replace(plan, slots={root: changed.get(id(block), block) for root, block in plan.slots.items()}))
    assert not patient.bound.plan.overlaps()
    found = patient.check("arena")
    assert found.startswith("step: op ")
    assert f" reads %{saved}, but where %{saved} should lie is %" in found


def test_a_block_that_does_not_begin_at_a_line(patient: Any) -> None:
    plan = patient.bound.plan
    root = patient.program.ops[patient.op("relu")].outputs[0]
    moved = plan.slots[root]._replace(offset=plan.arena_bytes + 4, first=0, last=0)
    patient.put(replace(plan, slots={**plan.slots, root: moved}, arena_bytes=plan.arena_bytes + 4 + moved.nbytes))
    assert "is not 64-byte aligned in an arena of" in patient.check("arena")


def test_an_operand_outside_of_its_memory(patient: Any) -> None:
    i, program = patient.op("relu"), patient.program
    out = program.ops[i].outputs[0]
    layout = program.layout(out)
    places = {**program.places, out: StoragePlace(out, replace(layout, offset=64))}
    patient.put(replace(patient.bound.plan, program=replace(program, places=places)))
    assert patient.check("arena") == f"{name_of(patient, i)}: %{out} reaches out of the memory of %{out}"


# ------------------------------------------------------------------ executed trace


@pytest.mark.parametrize(("kernel", "other"), [("relu", "neg"), ("where_positive", "mul"), ("sub", "add")])
def test_an_op_that_computes_something_else(patient: Any, kernel: str, other: str) -> None:
    """Forward and backward: the first op whose bits are not those of eager execution is named, with its node."""
    i = patient.break_kernel(kernel, other)
    op = patient.program.ops[i]
    expected = f"{name_of(patient, i)}: %{op.outputs[0]} of step: node {op.source} ({kernel}): element ["
    assert patient.check("executed trace").startswith(expected)


def test_an_op_that_writes_too_much(patient: Any) -> None:
    i = patient.op("relu")
    patient.replace_op(i, words=Words(48))
    assert patient.check("executed trace").startswith(f"{name_of(patient, i)}: wrote outside of its outputs: byte ")
