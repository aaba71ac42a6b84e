"""What a loop adds up step by step is one product behind it, to the bit; other sums stay in the loop."""

from typing import Any

import pytest

from dgrr.runtime.lower.loop import LoopPlan
from dgrr.runtime.lower.program import Program
from dgrr.tape import ops

from .programs import Loss, change, normal, programs

PASSES = ("addends", "summed-products")
PARAMS = {"w": normal(6, 6), "u": normal(4, 6), "h": normal(3, 6), "s": normal(6)}
BATCH = normal(5, 3, 4)


def scanned(step: Any, *, reverse: bool = False) -> Loss:
    """The loss of a loop over rows that are made for all steps at once, so that their cotangents are kept."""

    def loss(p: Any, x: Any) -> Any:
        last, rows = ops.scan(lambda h, row: step(p, h, row), p["h"], x @ p["u"], reverse=reverse)
        return last.sum() + (rows * rows).mean()

    return loss


def cell(p: Any, h: Any, row: Any) -> Any:
    h = ops.tanh(row + h @ p["w"])
    return h, h * p["s"]


def gated(p: Any, h: Any, row: Any) -> Any:
    h = ops.tanh(row + h @ p["w"] + p["s"]) * 0.5 + h * 0.5
    return h, h * p["s"]


def inside(p: Any, h: Any, row: Any) -> Any:
    h = ops.tanh(row) * ops.sigmoid(h @ p["w"])
    return h, h * p["s"]


def scaled(p: Any, h: Any, row: Any) -> Any:
    h = ops.tanh(row + h @ (p["w"] * row.sum()))
    return h, h * p["s"]


@pytest.mark.parametrize("step", [cell, gated])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_of_a_weight_is_made_behind_the_loop(step: Any, reverse: bool) -> None:
    assert change(scanned(step, reverse=reverse), *PASSES, params=PARAMS, batch=BATCH)["gemm"] == 1


@pytest.mark.parametrize("step", [inside, scaled])
def test_terms_that_are_not_kept_stay_in_the_loop(step: Any) -> None:
    assert "gemm" not in change(scanned(step), *PASSES, params=PARAMS, batch=BATCH)


def test_terms_beyond_a_chain_stay_in_the_loop() -> None:
    """The total of a product of more than 256 terms is made before it is added."""
    params = {**PARAMS, "h": normal(257, 6)}
    assert "gemm" not in change(scanned(cell), *PASSES, params=params, batch=normal(2, 257, 4))


def test_a_state_that_is_read_stays_in_the_loop() -> None:
    def loss(p: Any, x: Any) -> Any:
        def step(total: Any, row: Any) -> Any:
            total = total + row.T @ p["h"]
            return total, total.sum()

        total, sums = ops.scan(step, p["u"], x)
        return total.sum() + sums.mean()

    assert "gemm" not in change(loss, *PASSES, params=PARAMS, batch=BATCH)


def test_the_parts_of_the_state_that_stay_are_numbered_anew() -> None:
    """The sum is the second of three parts; the others are what they were."""

    def loss(p: Any, x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            h, total, s = state
            return (ops.tanh(row @ p["u"] + h), total + row.T @ row, s * 0.5), None

        state, _ = ops.scan(step, (p["h"], p["g"], p["s"]), x)
        return sum(ops.tanh(part).sum() for part in state)

    _, after = programs(loss, "dead-code", *PASSES, params={**PARAMS, "g": normal(4, 4)}, batch=BATCH)
    assert parts(after)[0] == 2


def parts(program: Program) -> list[int]:
    """How many parts the state of each loop has."""
    return [len(op.words.carried) for op in program.ops if isinstance(op.words, LoopPlan)]
