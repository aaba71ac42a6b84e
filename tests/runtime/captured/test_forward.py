"""Captured forward passes: to the bit what the same function computes op by op, and of no effect on anything."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, CaptureError, EagerStep
from dgrr.runtime.captured.captured_forward import CapturedForward
from dgrr.runtime.captured.kept import OFTEN
from dgrr.runtime.step.forward import Forward, eager_forward, loss_forward, model_forward
from dgrr.runtime.step.loss_call import RunPoint
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import BoundsError, DomainError, TapeError, nn, ops

from ..stepping import batch_of, bits

MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2))


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    inputs, labels = batch
    logits = MODEL(p, inputs, ctx)
    right = ops.cast(ops.equal(ops.argmax(logits, -1), labels), "float32").mean()
    return ops.cross_entropy(logits, labels), ctx.state, {"acc": right, "drawn": ctx.random.uniform((2,))[1]}


def new_step() -> EagerStep:
    return EagerStep(loss_fn, MODEL.init(0), Recipe(Adam(0.05)), MODEL.init_state(), seed=3)


def point_of(step: EagerStep) -> RunPoint:
    return RunPoint(int(step.state["step"]), step.seed, step.model_state, training=False)


def flattened(made: Any) -> list[tuple[bytes, Any]]:
    if isinstance(made, dict):
        return [pair for part in made.values() for pair in flattened(part)]
    if isinstance(made, tuple | list):
        return [pair for part in made for pair in flattened(part)]
    return [(made.tobytes(), (made.shape, made.dtype))]


FUNCTIONS: dict[str, tuple[Forward, Any]] = {
    "loss and metrics": (loss_forward(loss_fn), lambda batch: batch),
    "model": (model_forward(MODEL), lambda batch: batch[0]),
    "nested": (lambda p, b, ctx: {"both": (MODEL(p, b["x"][0], ctx()), [b["y"]])}, lambda b: {"x": [b[0]], "y": b[1]}),
    "a parameter": (lambda p, b, ctx: p["4.weight"], lambda batch: batch[0]),
    "views": (lambda p, b, ctx: (b.T, p["4.weight"].T, b[0]), lambda batch: batch[0]),
    "its input": (lambda p, b, ctx: b, lambda batch: batch[0]),
    "a state": (lambda p, b, ctx: ctx().state["1.running_mean"] * 2, lambda batch: batch[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_captured_and_op_by_op_agree_to_the_bit_while_a_step_trains(name: str) -> None:
    function, part = FUNCTIONS[name]
    step = new_step()
    captured = CapturedForward(function, step.arrays, step.seed)
    for number, rows in [(0, 6), (1, 6), (2, 1), (3, 6), (4, 1)]:
        batch = part(batch_of(number, rows))
        before = step.digest()
        got, expected = captured(batch), eager_forward(function, step.params, batch, point_of(step))
        assert flattened(got) == flattened(expected)
        assert step.digest() == before
        step(batch_of(number + 10))


def test_results_cannot_be_written() -> None:
    step = new_step()
    with pytest.raises(ValueError, match="read-only"):
        CapturedForward(lambda p, b, ctx: p["4.weight"], step.arrays)(batch_of(0)[0])[0] = 1
    assert bits(step.params) == bits(MODEL.init(0))


def test_a_batch_without_samples() -> None:
    step = new_step()
    made = CapturedForward(model_forward(MODEL), step.arrays)(np.empty((0, 3), np.float32))
    assert (made.shape, made.dtype) == ((0, 2), np.float32)


def test_signatures_that_come_often_are_captured_once_and_kept() -> None:
    calls = list[int]()

    def function(p: Any, b: Any, ctx: Any) -> Any:
        if "capture" in repr(b.tape):
            calls.append(len(b))
        return b * 2.0

    captured = CapturedForward(function, new_step().arrays)
    for _ in range(OFTEN + 2):
        for n in range(1, 5):
            assert captured(np.ones(n)).tolist() == [2.0] * n
    calls.clear()
    for n in (1, 2, 3, 4, 1):
        captured(np.ones(n))
    assert len(calls) <= 5  # looks alone


def test_a_function_that_does_another_thing_the_next_time() -> None:
    counts = iter(range(9))
    with pytest.raises(CaptureError) as caught:
        CapturedForward(lambda p, b, ctx: b * float(next(counts)), new_step().arrays)(np.ones(2))
    text = str(caught.value)
    assert text.startswith("capture: the function behaves differently when it is called again")
    assert "but the second time as" in text
    assert "test_forward.py" in text


def test_what_is_refused() -> None:
    arrays = new_step().arrays
    with pytest.raises(DomainError) as caught:
        CapturedForward(lambda p, b, ctx: {"a": (b, 1.0)}, arrays)(np.ones(2))
    assert str(caught.value) == "forward pass: result['a'][1]: expected a Var, got float; compute it with ops"
    with pytest.raises(TapeError, match="was read while the step is being recorded"):
        CapturedForward(lambda p, b, ctx: b * b[0].item(), arrays)(np.ones(2))
    rows = CapturedForward(lambda p, b, ctx: ops.take(p["4.weight"], b), arrays)
    assert rows(np.array([1])).shape == (1, 4)
    for index in (np.array([2]), np.array([[2]])):  # a table that is there, and one that is made
        with pytest.raises(BoundsError):
            rows(index)
