"""What a captured step refuses, in the words of the eager one; a refusal changes nothing."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, EagerStep, NonFiniteError, capture
from dgrr.runtime.optim import Rule
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import BoundsError, ops

from ..stepping import MODEL, RULES, Loss, batch_of, loss_fn, new_step, outcome

pytestmark = pytest.mark.quick

# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_non_finite_step_changes_nothing(rule: Rule) -> None:
    step = new_step(rule)
    step(batch_of(1))
    before = step.digest()
    inputs, labels = batch_of(2)
    inputs[3, 1] = np.nan
    with pytest.raises(NonFiniteError, match="the first non-finite value is node 4"):
        step((inputs, labels))
    assert step.digest() == before


NON_FINITE: dict[str, tuple[Loss, Any]] = {
    "a value": (lambda p, x: ops.log(p["w"] * x).sum(), np.array([1.0, -1.0, 2.0])),
    "a gradient": (lambda p, x: ops.log(p["w"] * x).sum(), np.array([1.0, 1e-320, 2.0])),
    "the loss": (lambda p, x: ops.exp((p["w"] * x).sum()), np.array([1e3, 0.0, 0.0])),
    "one gradient of two": (lambda p, x: (ops.log(p["v"] * 1e-320) * x).sum() + p["w"].sum(), np.ones(3)),
    "a dict": (
        lambda p, b: (p["w"] * b["x"]).sum() + (p["v"] * b["y"][0]).sum(),
        {"x": np.ones(3), "y": [np.full(3, np.inf)]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NON_FINITE)
@pytest.mark.parametrize("way", ["__call__", "replay", "steps"])
def test_what_is_not_finite_is_named_as_eagerly(name: str, way: str) -> None:
    loss, batch = NON_FINITE[name]
    params = {"w": np.ones(3), "v": np.ones(3)}
    step, eager = capture(loss, params, Adam(0.1), batch), EagerStep(loss, params, Recipe(Adam(0.1)))
    before = step.digest()
    argument = {"__call__": batch, "replay": 3, "steps": [batch, batch]}[way]
    got = outcome(step, way, argument)
    assert got[0] is NonFiniteError
    assert got == outcome(eager, "__call__", batch)
    assert step.digest() == before


@pytest.mark.parametrize("name", ["a value", "a gradient"])
def test_what_is_not_finite_in_a_micro_batch(name: str) -> None:
    loss, bad = NON_FINITE[name]
    params, good = {"w": np.ones(3), "v": np.ones(3)}, np.ones(3)
    for batch in ((good, bad), (bad, good)):
        step = capture(loss, params, SGD(0.1), batch, accumulate=2)
        eager = EagerStep(loss, params, Recipe(SGD(0.1), accumulate=2))
        got = outcome(step, "__call__", batch)
        assert got[0] is NonFiniteError
        assert got == outcome(eager, "__call__", batch) == outcome(step, "replay", 2)


@pytest.mark.parametrize("rows", [6, 300])
@pytest.mark.parametrize("way", ["__call__", "gradients", "grads", "replay", "steps"])
def test_an_index_out_of_range_is_refused_as_eagerly(rows: int, way: str) -> None:
    inputs, labels = batch_of(0, rows)
    step, eager = new_step(Adam()), EagerStep(loss_fn, MODEL.init(0), Recipe(Adam()))
    labels[[2, 4]] = 2, -1
    step.bind((inputs, labels))
    before, bad = step.digest(), (inputs, labels)
    got = outcome(step, way, {"replay": 2, "steps": [bad]}.get(way, bad))
    expected = "cross_entropy: argument 'labels': expected a class from 0 to 1, got 2 at position 2"
    assert got == outcome(eager, "__call__", bad) == (BoundsError, expected)
    assert step.digest() == before


def test_a_step_that_failed_can_go_on() -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    bad = batch_of(1)[0], np.full(6, 9)
    for k in range(3):
        with pytest.raises(BoundsError):
            step(bad)
        assert step(batch_of(k)).tobytes() == beside(batch_of(k)).tobytes()
    assert step.digest() == beside.digest()
