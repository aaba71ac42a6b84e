"""Matrices that the products of a loop read at every turn are copied once, before it; others where they are read."""

from typing import Any

import pytest

from dgrr.runtime.lower.loop import LoopPlan
from dgrr.runtime.lower.program import Program
from dgrr.tape import ops
from dgrr.tape.ops.linear.kernels.product import Product

from .programs import change, normal, programs

PASSES = ("addends", "loop-panels")
PARAMS = {"w": normal(6, 6), "v": normal(6, 7), "h": normal(12, 6)}
BATCH = normal(4, 12, 6)


def scanned(step: Any, **options: Any) -> Any:
    """The loss of a loop over the rows of a batch."""

    def loss(p: Any, x: Any) -> Any:
        last, rows = ops.scan(lambda h, row: (step(p, h, row),) * 2, p["h"], x, **options)
        return last.sum() + (rows * rows).mean()

    return loss


def cell(p: Any, h: Any, row: Any) -> Any:
    return ops.tanh(row + h @ p["w"])


def twice(p: Any, h: Any, row: Any) -> Any:
    return ops.tanh(ops.tanh(row @ p["w"]) + h @ p["w"])


def through_slices(p: Any, h: Any, row: Any) -> Any:
    """Products with different columns of one matrix, which lies in the middle of what the loop is given."""
    return ops.tanh(row @ p["v"][:, 1:] + h @ p["v"][:, :6])


def made_inside(p: Any, h: Any, row: Any) -> Any:
    return ops.tanh(row + h @ (p["w"] * row.sum()))


def of_the_state(p: Any, h: Any, row: Any) -> Any:
    return ops.tanh(row @ (row.T @ h)) * p["h"]


def packed(program: Program) -> list[list[bool]]:
    """For each loop, of each of its products whether it reads panels."""
    loops = [op.words.body.program for op in program.ops if isinstance(op.words, LoopPlan)]
    return [[op.words.panels for op in body.ops if isinstance(op.words, Product)] for body in loops]


def test_a_weight_is_copied_for_the_loop_and_for_its_gradient() -> None:
    _, after = programs(scanned(cell), *PASSES, params=PARAMS, batch=BATCH)
    assert packed(after) == [[True], [True, False]], "the weight's gradient multiplies what the steps made"
    made = [op for op in after.ops if op.kernel.name == "pack_panels"]
    loops = [op for op in after.ops if isinstance(op.words, LoopPlan)]
    assert [op.outputs[0] for op in made] == [op.inputs[-1] for op in loops]


@pytest.mark.parametrize(("step", "copies"), [(twice, 2), (through_slices, 3)])
@pytest.mark.parametrize("reverse", [False, True])
def test_each_matrix_is_copied_once(step: Any, copies: int, reverse: bool) -> None:
    found = change(scanned(step, reverse=reverse), *PASSES, params=PARAMS, batch=BATCH)
    assert found["pack_panels"] == copies


@pytest.mark.parametrize("step", [made_inside, of_the_state])
def test_what_a_turn_makes_is_copied_there(step: Any) -> None:
    assert "pack_panels" not in change(scanned(step), *PASSES, params=PARAMS, batch=BATCH)


def test_few_rows_read_a_matrix_where_it_lies() -> None:
    """Its transposed form, for the gradient, they would copy."""
    params = {**PARAMS, "h": normal(8, 6)}
    _, after = programs(scanned(cell), *PASSES, params=params, batch=normal(4, 8, 6))
    assert packed(after) == [[False], [True, False]]


def test_a_single_turn_copies_nothing_ahead() -> None:
    assert "pack_panels" not in change(scanned(cell), *PASSES, params=PARAMS, batch=normal(1, 12, 6))


def test_a_loop_in_a_loop_reads_panels_of_its_own() -> None:
    """The inner one's are made at each turn of the outer one, for all of its own turns."""

    def loss(p: Any, x: Any) -> Any:
        def outer(h: Any, rows: Any) -> Any:
            last, _ = ops.scan(lambda h, row: (cell(p, h, row), None), h, rows)
            return last, last.sum()

        last, sums = ops.scan(outer, p["h"], x)
        return last.sum() + sums.mean()

    _, after = programs(loss, *PASSES, params=PARAMS, batch=normal(3, 4, 12, 6))
    outer = next(op.words.body.program for op in after.ops if isinstance(op.words, LoopPlan))
    assert [op.kernel.name for op in outer.ops if op.kernel.name in ("pack_panels", "loop")] == ["pack_panels", "loop"]
    assert packed(outer) == [[True]]
