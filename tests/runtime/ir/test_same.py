"""Two recordings are the same only if they do the same: what differs in one thing is left to the graphs."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, capture
from dgrr.runtime.captured import plans
from dgrr.runtime.ir.record import Recorded, Recording, record, record_loss
from dgrr.runtime.ir.recorded_graphs import step_graph
from dgrr.runtime.ir.same import NODES, same_recording
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import AnyVar, ops
from dgrr.tape.transforms.symbolic_tape import SymbolicTape
from dgrr.tape.values.spec import Spec

pytestmark = pytest.mark.quick

Read = Callable[[AnyVar, AnyVar], AnyVar]

PARAMS = {"w": np.ones((3, 3)), "v": np.ones((3, 3))}
RECIPE = Recipe(SGD(0.1)).settled(PARAMS)
EYE, ONES = np.eye(3), np.ones((3, 3))

PAIRS: dict[str, tuple[Read, Read]] = {
    "another op": (lambda w, v: ops.exp(w), lambda w, v: ops.tanh(w)),
    "another attribute": (lambda w, v: ops.scale(w, 2.0), lambda w, v: ops.scale(w, 3.0)),
    "a zero of another sign": (lambda w, v: ops.scale(w, 0.0), lambda w, v: ops.scale(w, -0.0)),
    "an axis counted from behind": (lambda w, v: w.sum(axis=1) * v[0], lambda w, v: w.sum(axis=-1) * v[0]),
    "another number": (lambda w, v: w * 2.0, lambda w, v: w * 3.0),
    "another array": (lambda w, v: w * EYE, lambda w, v: w * ONES),
    "an array in the place of a number": (lambda w, v: w * EYE, lambda w, v: w * 2.0),
    "another parent": (lambda w, v: w * v, lambda w, v: w * w),
    "parents in another order": (lambda w, v: w - v, lambda w, v: v - w),
    "another shape": (lambda w, v: w[:2] + 0.0, lambda w, v: w[:1] + 0.0),
    "one node more": (lambda w, v: w * v, lambda w, v: ops.neg(w * v)),
    "another of two results": (lambda w, v: (w * v, w * w)[0], lambda w, v: (w * v, w * w)[1]),
}


def loss_of(read: Read) -> Callable[[Any, Any], Any]:
    """A loss function that reads parameters so."""
    return lambda p, batch: read(p["w"], p["v"]).sum()


def recorded(read: Read) -> Recording:
    return record(loss_of(read), PARAMS, (), RECIPE)


@pytest.mark.parametrize("reads", PAIRS.values(), ids=PAIRS)
def test_what_differs_in_one_thing_is_not_the_same(reads: tuple[Read, Read]) -> None:
    first, second = map(recorded, reads)
    assert same_recording(first, recorded(reads[0]))
    assert not same_recording(first, second)
    assert not same_recording(second, first)


@pytest.mark.parametrize("reads", PAIRS.values(), ids=PAIRS)
def test_of_a_loss_alone_the_same_is_said(reads: tuple[Read, Read]) -> None:
    whole = recorded(reads[0])
    same, other = (record_loss(loss_of(read), PARAMS, (), RECIPE, {}, 0) for read in reads)
    assert same_recording(whole, same, whole.forward)
    assert not same_recording(whole, other, whole.forward)
    assert not same_recording(whole, same, whole.forward - 1)


OTHER = {
    "params": {"w": 1, "v": 0}, "inputs": [0], "step": 0, "model_state": {"s": 0}, "loss": 0, "gradients": {0: 0},
    "dense": {0: 0}, "new_state": {0: 1}, "metrics": [{"m": 0}], "forward": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(Recording) if field.name not in NODES])
def test_what_is_said_of_the_nodes_is_compared(name: str) -> None:
    first, changed = recorded(PAIRS["another op"][0]), {name: OTHER[name]}
    assert not same_recording(first, replace(first, **changed))


def leaf(value: Any, *, held: bool = False, unknown: bool = False) -> Recorded:
    """A tape of one leaf."""
    tape = SymbolicTape()
    array = np.asarray(value)
    var: AnyVar = tape.symbol(Spec(array.shape, array.dtype), None) if unknown else tape.const(array)
    if held:
        tape.held[var.id] = EYE
    return Recorded(tape, {}, [], None, {})


def test_leaves_are_equal_to_the_bit_or_read_from_one_place() -> None:
    assert same_recording(leaf(EYE), leaf(EYE.copy()))
    assert same_recording(leaf(EYE, held=True), leaf(ONES, held=True))
    assert not same_recording(leaf(EYE, held=True), leaf(EYE))
    assert not same_recording(leaf(EYE), leaf(EYE, held=True))
    assert not same_recording(leaf(0.0), leaf(-0.0))
    assert not same_recording(leaf(EYE), leaf(EYE.reshape(9)))
    assert same_recording(leaf(EYE, unknown=True), leaf(EYE, unknown=True))
    assert not same_recording(leaf(EYE, unknown=True), leaf(EYE.reshape(9), unknown=True))
    assert not same_recording(leaf(EYE, unknown=True), leaf(EYE))
    assert not same_recording(leaf(EYE), leaf(EYE, unknown=True))


def test_of_bodies_it_says_nothing() -> None:
    def looped(w: AnyVar, v: AnyVar) -> AnyVar:
        last: AnyVar = ops.scan(lambda carry, _: (carry @ v, None), w, None, length=2)[0]
        return last

    assert not same_recording(recorded(looped), recorded(looped))
    capture(loss_of(looped), PARAMS, SGD(0.1), ())


def test_a_capture_makes_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Any]()
    monkeypatch.setattr(plans, "step_graph", lambda *given: made.append(step_graph(*given)) or made[-1])
    step = capture(loss_of(PAIRS["another op"][0]), PARAMS, SGD(0.1), ())
    for _ in range(8):
        step(())
    assert len(made) == 1
