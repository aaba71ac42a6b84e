"""Memory of a plan: what may be overwritten, what must not, and where everything lies."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, CapturedStep
from dgrr.runtime.lower.compile import PASSES
from dgrr.runtime.lower.plan import BindingPlan, plan
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import ops

pytestmark = pytest.mark.quick

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
PARAMS = {"w": X, "m": np.linspace(1, 2, 36, dtype=np.float32).reshape(6, 6), "b": X[0], "unused": X[1]}
Loss = Callable[[Any, Any], Any]


def step_of(loss: Loss, *on: str) -> CapturedStep:
    """A step with some passes only."""
    step = CapturedStep(loss, PARAMS, Recipe(Adam(0.1), clip_norm=1.0), without_passes=set(PASSES) - set(on))
    step(X)
    return step


def output_of(plan: BindingPlan, kernel: str, n: int = 0) -> int:
    """The first output of the n-th call of a kernel."""
    return [op.outputs[0] for op in plan.program.ops if op.kernel.name == kernel][n]


def test_an_input_read_for_the_last_time_is_overwritten() -> None:
    plan = step_of(lambda p, x: ops.neg(ops.scale(p["w"], 2.0)).mean(), "aliases", "in-place").plan
    assert plan.slots[output_of(plan, "scale")] is plan.slots[output_of(plan, "neg")]


@pytest.mark.parametrize(
    "loss",
    [
        lambda p, x: (h := ops.scale(p["w"], 2.0), ops.neg(h).mean() + h.mean())[1],
        lambda p, x: (h := ops.scale(p["w"], 2.0), ops.neg(h[1]).mean() + h[0].mean())[1],
        lambda p, x: ops.neg(ops.scale(p["w"], 2.0)[0]).mean(),
        lambda p, x: ops.neg(ops.scale(p["w"], 2.0).T).mean(),
    ],
    ids=["read again", "a part read again", "a part", "a copy between"],
)
def test_other_inputs_are_not_overwritten(loss: Loss) -> None:
    plan = step_of(loss, "aliases", "strides", "in-place").plan
    assert plan.slots[output_of(plan, "scale")] is not plan.slots[output_of(plan, "neg")]


def test_a_value_times_itself_is_not_overwritten() -> None:
    plan = step_of(lambda p, x: ((h := ops.scale(p["w"], 2.0)) * h).mean(), "aliases", "in-place").plan
    assert plan.slots[output_of(plan, "scale")] is not plan.slots[output_of(plan, "mul")]


def test_what_is_no_static_is_never_overwritten() -> None:
    step = step_of(lambda p, x: ops.neg(x).mean() + ops.neg(p["w"]).mean() + ops.neg(p["m"]).mean(), *PASSES)
    plans = step.record(X)
    assert plans.inputs[0].tobytes() == X.tobytes()
    plan = step.plan
    assert not {value.id for value in plan.program.graph.values.values() if value.role != "static"} & plan.slots.keys()


def test_without_the_choice_nothing_is_overwritten() -> None:
    plan = step_of(lambda p, x: ops.neg(ops.scale(ops.relu(p["w"]), 2.0)).mean(), "aliases").plan
    assert len({id(block) for block in plan.slots.values()}) == len(plan.slots)


def test_nothing_written_is_read_later() -> None:
    """An independent look at the table: between the write of a value and each of its reads no op writes its bytes."""

    def loss(p: Any, x: Any) -> Any:
        h = ops.relu(x @ p["m"] + p["b"])
        return ops.mse_loss(ops.tanh(h @ p["m"].T) * h, p["w"]) + (h.softmax() * h[::-1]).mean()

    for on in (("aliases", "strides", "in-place"), tuple(PASSES)):
        plan = step_of(loss, *on).plan
        assert _clobbered(plan) == []


def _clobbered(plan: BindingPlan) -> list[tuple[int, int, int]]:
    """(writer, clobbering op, reader) for every read of bytes that another op has written since."""
    program, found = plan.program, list[tuple[int, int, int]]()
    last: dict[int, int] = {}
    content: dict[int, int] = {}  # line of the arena → root whose elements it holds
    for i, op in enumerate(program.ops):
        for root in {program.root(v) for v in op.inputs} & plan.slots.keys():
            block = plan.slots[root]
            lines = range(block.offset, block.offset + max(program.layout(root).nbytes, 1), 64)
            found += [(last[root], content[line], i) for line in lines if content[line] != root]
        for root in {program.root(v) for v in op.outputs} & plan.slots.keys():
            block, last[root] = plan.slots[root], i
            content |= dict.fromkeys(range(block.offset, block.offset + block.nbytes, 64), root)
    return found


@pytest.mark.parametrize("on", [(), ("in-place",), tuple(PASSES)], ids=["none", "in place", "all"])
def test_the_arena_is_no_larger_than_its_statics(on: tuple[str, ...]) -> None:
    plan = step_of(lambda p, x: ops.tanh(ops.relu(x @ p["m"]) * p["w"]).mean(), *on).plan
    assert 0 < plan.arena_bytes <= plan.static_bytes
    assert f"arena {plan.arena_bytes:,} bytes for {plan.static_bytes:,} of statics" in str(plan.table().title)


def test_sharing_memory_saves_memory() -> None:
    def loss(p: Any, x: Any) -> Any:
        h = p["w"]
        for _ in range(6):
            h = ops.scale(ops.neg(h), 0.5)
        return h.mean()

    plan = step_of(loss, *PASSES).plan
    assert plan.arena_bytes * 3 < plan.static_bytes


@pytest.mark.parametrize("rest", [0, 3])
def test_memory_rests_before_it_is_taken_again(rest: int) -> None:
    def loss(p: Any, x: Any) -> Any:
        h = p["w"]
        for _ in range(6):
            h = ops.exp(ops.neg(h))
        return h.mean()

    made = plan(step_of(loss, *PASSES).plan.program, in_place=False, rest=rest)
    blocks = sorted(made.slots.values(), key=lambda block: block.first)
    reads = {made.program.root(v): i for i, op in enumerate(made.program.ops) for v in op.table}
    rests = [
        later.first - reads[earlier.owner] - 1
        for earlier, later in combinations(blocks, 2)
        if earlier.offset < later.offset + later.nbytes and later.offset < earlier.offset + earlier.nbytes
    ]
    assert min(rests) == rest


def test_every_address_begins_a_line() -> None:
    step = step_of(lambda p, x: ops.tanh(ops.relu(x @ p["m"]) * p["w"]).mean(), *PASSES)
    bound = step.record(X).step.bound
    roots = [root for root in bound.memory if bound.plan.program.root(root) == root]
    constants = {value.id for value in bound.plan.program.graph.values.values() if value.role == "const"}
    assert {bound.memory[root].ctypes.data % 64 for root in roots if root not in constants} == {0}
    for arrays in (step.params, step.state):
        assert {array.ctypes.data % 64 for array in arrays.values()} == {0}


def test_gaps_between_grouped_values_stay_zero() -> None:
    step = step_of(lambda p, x: ops.tanh(p["w"]).sum() + ops.tanh(p["m"]).sum() + ops.tanh(p["b"]).sum(), *PASSES)
    program, memory = step.lowered, step.record(X).step.bound.memory
    assert program.groups
    for whole, members in program.groups.items():
        used = np.zeros(memory[whole].size, np.bool_)
        for member, offset in members.items():
            value = program.graph.values[member]
            used[offset : offset + int(np.prod(value.shape)) * value.dtype.itemsize] = True
        assert not memory[whole][~used].any()


def test_what_a_plan_shows() -> None:
    step = step_of(lambda p, x: (x * p["w"]).mean(), *PASSES)
    rows = {row["value"]: row for row in step.plan.table()}
    assert [row["name"] for row in rows.values() if row["role"] == "param"] == list(PARAMS)
    assert [row["name"] for row in rows.values() if row["role"] == "input"] == ["batch"]
    assert all((row["offset"] == "-") == (row["role"] != "static") for row in rows.values() if row["first"] != "-")
    kernels = [row["kernel"] for row in step.lowered.table()]
    assert kernels == [op.kernel.name for op in step.lowered.ops]
    assert "adam_step" in str(step.lowered)
