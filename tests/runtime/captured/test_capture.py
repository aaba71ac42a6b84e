"""Capturing a step records it and runs nothing; what it then computes is the eager step, to the bit."""

import re
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, capture, evaluate, gradients, state_digest
from dgrr.runtime.optim import Cosine, Rule
from dgrr.tape import GradientError, ShapeError, TapeError, ops
from dgrr.tape.numerics.engine import machine

from ..stepping import MODEL, RULES, Loss, batch_of, bits, copied, loss_fn, new_step, same_training

# ------------------------------------------------------------------ recording


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_capture_trains_nothing(rule: Rule) -> None:
    params = MODEL.init(0)
    before = bits(params)
    step = capture(loss_fn, params, rule, batch_of(0))
    assert bits(params) == bits(step.params) == before
    assert not any(array.any() for array in step.state.values())
    assert step.digest() == state_digest(MODEL.init(0), rule.init(MODEL.init(0)))


def test_capture_runs_nothing() -> None:
    """No table is run, no kernel called, and the global generator of numpy is not drawn from."""

    def refuse(*arguments: Any) -> None:
        raise AssertionError(f"called with {arguments}")

    params, rule = MODEL.init(0), Adam(Cosine(0.1, steps=9))
    before = np.random.get_state()[1].tobytes()  # type: ignore[index]
    with (
        patch.object(machine, "run", refuse),
        patch.object(machine, "run_fed", refuse),
        patch.object(machine, "run_steps", refuse),
        patch("dgrr.tape.tape.Tape._result", refuse),
        patch("dgrr.tape.record.op.Op.compute", refuse),
        patch("dgrr.tape.numerics.engine.launch.run", refuse),
        patch("dgrr.tape.numerics.engine.launch.call", refuse),
    ):
        step = capture(loss_fn, params, rule, batch_of(0), clip_norm=1.0, clip_value=2.0)
        with pytest.raises(AssertionError, match="called with"):
            step(batch_of(0))
    assert np.random.get_state()[1].tobytes() == before  # type: ignore[index]
    assert np.isfinite(step(batch_of(0)))


def test_the_callers_arrays_stay_as_they_are() -> None:
    params = MODEL.init(0)
    before = bits(params)
    step = capture(loss_fn, params, Adam(), batch_of(0))
    step(batch_of(1))
    assert bits(params) == before
    assert not any(np.shares_memory(params[name], step.params[name]) for name in params)
    assert all(np.any(params[name] != step.params[name]) for name in params)


def test_capture_tries_the_model_on_the_example() -> None:
    with pytest.raises(ShapeError, match="linear: argument 'w'"):
        capture(loss_fn, MODEL.init(0), Adam(), (np.zeros((6, 5), np.float32), np.zeros(6, np.int64)))


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.item(),
    "bool": lambda x: 1 if x > 0 else 2,
    "float": float,
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: np.asarray(x.value),
    "asarray of a Var": np.asarray,
    "int": int,
    "array": lambda x: x.value.array,
    "iteration": lambda x: list(x.value.numpy()),
    "format": lambda x: f"{x:.2f}",
}


@pytest.mark.parametrize("read", READS)
def test_a_value_cannot_be_read_while_the_step_is_recorded(read: str) -> None:
    """Whatever way a model asks for a number, the error says why there is none and what to do."""

    def loss(p: Any, x: Any) -> Any:
        total = (p["w"] * x).sum()
        READS[read](total)
        return total

    with pytest.raises(TapeError) as caught:
        capture(loss, {"w": np.ones(3, np.float32)}, Adam(), np.ones(3, np.float32))
    text = str(caught.value)
    assert "was read while the step is being recorded: a captured step holds ops, not values" in text
    assert "use ops (ops.where, comparisons, slicing), or run the step eagerly; it was read at " in text
    assert re.search(r"test_capture\.py:\d+: ", text)


@pytest.mark.parametrize(
    ("loss", "error", "text"),
    [
        (lambda p, b: 1.0, GradientError, "loss_fn: expected it to return a scalar Var, got float"),
        (lambda p, b: p["w"], ShapeError, "expected shape (), got (3,)"),
        (lambda p, b: b.sum(), GradientError, "depends on no leaf that requires a gradient"),
    ],
)
def test_losses_that_are_none(loss: Loss, error: type[Exception], text: str) -> None:
    params, batch = {"w": np.ones(3, np.float32)}, np.ones(3, np.float32)
    with pytest.raises(error) as captured:
        capture(loss, params, Adam(), batch)
    with pytest.raises(error) as eager:
        evaluate(loss, params, batch)
    assert text in str(captured.value)
    assert str(captured.value) == str(eager.value)


# ------------------------------------------------------------------ one step


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_step_is_gradients_then_the_rule(rule: Rule) -> None:
    step, params = new_step(rule), MODEL.init(0)
    state = rule.init(params)
    for k in range(4):
        loss, grads = gradients(loss_fn, params, batch_of(k))
        assert bits(step.gradients(batch_of(k))) == bits(grads)
        assert step(batch_of(k)).tobytes() == loss.tobytes()
        assert step.loss.tobytes() == loss.tobytes()
        rule.step(params, grads, state)
        assert bits(step.params) == bits(params)
        assert bits(step.state) == bits(state)


RECIPES: list[dict[str, Any]] = [
    {"clip_norm": 0.05}, {"clip_norm": 1e9}, {"clip_value": 0.01}, {"clip_norm": 0.05, "clip_value": 0.02},
    {"clip_norm": 0.0}, {"accumulate": 3}, {"accumulate": 2, "clip_norm": 0.05, "clip_value": 0.02},
]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize("rule", [*RULES, AdamW(Cosine(0.1, steps=4))], ids=["sgd", "adam", "scheduled"])
def test_clipping_accumulation_and_schedules_are_the_eager_ones(rule: Rule, recipe: dict[str, Any]) -> None:
    n = recipe.get("accumulate", 1)
    batches = [batch_of(k) if n == 1 else tuple(batch_of(10 * k + i) for i in range(n)) for k in range(6)]
    same_training(loss_fn, MODEL.init(0), batches, rule, **recipe)


def test_a_parameter_of_some_micro_batches() -> None:
    def loss(p: Any, batch: Any) -> Any:
        return (
            (p["w"] * batch["x"]).sum() + (p["v"] * batch["y"]).sum() if "y" in batch else (p["w"] * batch["x"]).sum()
        )

    params = {"w": np.ones(3, np.float32), "v": np.ones(3, np.float32), "unused": np.ones(2, np.float32)}
    x = np.arange(3, dtype=np.float32)
    step = same_training(loss, params, [({"x": x}, {"x": x + 1, "y": x})] * 3, Adam(0.1), accumulate=2)
    assert list(step.consumed) == ["w", "v"]


def test_an_unused_parameter_keeps_its_bits() -> None:
    params = {"a": np.ones(3), "unused": np.array([np.nan, -0.0, 5e-324]), "b": np.ones(3), "last": np.ones(2)}
    step = same_training(
        lambda p, x: ops.tanh(p["a"] * x).sum() + ops.tanh(p["b"] * x).sum(), params, [np.arange(3.0)] * 4, AdamW(0.1)
    )
    assert step.params["unused"].tobytes() == params["unused"].tobytes()
    assert not any(step.state[f"{buffer}/{name}"].any() for buffer in "mv" for name in ("unused", "last"))


@pytest.mark.parametrize("rule", [SGD(0.1), SGD(0.1, 0.9), Adam(0.1)], ids=str)
@pytest.mark.parametrize("recipe", [{}, {"clip_norm": 0.1}, {"clip_value": 0.1}], ids=str)
def test_parameters_that_share_a_gradient(rule: Rule, recipe: dict[str, Any]) -> None:
    params = {"a": np.linspace(-1, 1, 5), "b": np.linspace(0, 1, 5)}
    same_training(lambda p, x: ((p["a"] + p["b"]) * x).sum(), params, [np.arange(5.0)] * 3, rule, **recipe)
    same_training(lambda p, x: ops.tanh(p["a"] + p["b"]).sum(), params, [np.arange(5.0)] * 3, rule, **recipe)


@pytest.mark.parametrize("recipe", [{}, {"clip_norm": 0.1, "clip_value": 0.05}], ids=str)
def test_parameters_of_both_types(recipe: dict[str, Any]) -> None:
    params = {name: np.linspace(-1, 1, 4).astype("f4" if name in "abe" else "f8") for name in "abcde"}

    def loss(p: Any, x: Any) -> Any:
        narrow = ops.tanh(p["a"] * p["b"] * x) + p["e"]
        return (ops.cast(narrow, np.float64) * ops.exp(p["c"]) * p["d"]).sum()

    same_training(loss, params, [np.arange(4, dtype=np.float32)] * 4, Adam(0.1), **recipe)


ALONE: dict[str, Loss] = {
    "a parameter": lambda p, b: p["s"],
    "a view of a parameter": lambda p, b: p["one"].reshape(()),
    "an element": lambda p, b: p["w"][1],
    "a weighted parameter": lambda p, b: p["s"] * 2.0,
    "a product of two": lambda p, b: (p["w"] * p["v"]).sum(),
    "a square": lambda p, b: (p["w"] * p["w"]).sum(),
    "a parameter twice": lambda p, b: p["s"] + p["s"],
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("rule", [SGD(0.25), Adam(0.1)], ids=str)
def test_a_loss_of_parameters_alone(name: str, rule: Rule) -> None:
    """The loss and the gradients are those before the update, even where they are the very parameters."""
    w = np.linspace(1, 2, 4, dtype=np.float32)
    params = {"s": np.float32(3) * np.ones((), np.float32), "one": w[:1], "w": w, "v": w[::-1]}
    same_training(ALONE[name], params, [()] * 3, rule)
    same_training(ALONE[name], params, [w] * 3, rule)


# ------------------------------------------------------------------ gradients


def test_dense_gradients_are_the_eager_ones_by_name_and_id() -> None:
    step = new_step(Adam())
    before = step.digest()
    for k in range(2):
        grads, expected = step.grads(batch_of(k)), evaluate(loss_fn, step.params, batch_of(k)).dense
        assert {id: g.numpy().tobytes() for id, g in grads.reached().items()} == {
            id: g.numpy().tobytes() for id, g in expected.reached().items()
        }
        for name in step.params:
            assert grads[name].numpy().tobytes() == expected[name].numpy().tobytes()  # type: ignore[union-attr]
    with pytest.raises(TapeError, match="name 'weight': expected one node of that name, got no node"):
        _ = step.grads(batch_of(0))["weight"]
    assert step.digest() == before


def test_gradients_are_views_until_the_next_call() -> None:
    step = new_step(Adam())
    first = step.gradients(batch_of(0))
    kept, name = copied(first), "0.weight"
    second = step.gradients(batch_of(1))
    assert all(first[n].ctypes.data == second[n].ctypes.data for n in first)
    assert first[name].tobytes() == second[name].tobytes() != kept[name].tobytes()
    with pytest.raises(ValueError, match="read-only"):
        second[name][0, 0] = 1
    dense = step.grads(batch_of(0))[name]
    assert dense is not None
    assert dense.numpy().tobytes() == kept[name].tobytes()
    assert not dense.numpy().flags.writeable


def test_gradients_are_taken_without_an_update() -> None:
    step = new_step(Adam())
    before = step.digest()
    step.grads(batch_of(1))
    step.gradients(batch_of(1))
    assert step.digest() == before


def test_gradients_of_accumulated_batches_are_means() -> None:
    step = new_step(SGD(0.5), accumulate=1)
    three = capture(loss_fn, MODEL.init(0), SGD(0.5), (batch_of(1), batch_of(2)), accumulate=2)
    one, two = (copied(step.gradients(batch_of(k))) for k in (1, 2))
    got, dense = copied(three.gradients((batch_of(1), batch_of(2)))), three.grads((batch_of(1), batch_of(2)))
    for name, array in got.items():
        assert array.tobytes() == ((one[name] + two[name]) / np.float32(2)).tobytes() == dense[name].numpy().tobytes()  # type: ignore[union-attr]


def test_gradients_lie_in_row_major_order() -> None:
    """Those too that a formula gives with its axes turned: whoever reads them needs no copy."""

    def loss_fn(p: Any, x: Any) -> Any:
        return ops.reduce_sum(ops.conv2d(x, p["kernel"]) ** 2.0) + ops.reduce_sum((x[0, 0] @ p["w"].T) ** 2.0)

    params = {"kernel": np.ones((3, 2, 2, 2)), "w": np.ones((4, 5))}
    step = capture(loss_fn, params, SGD(0.1), np.ones((2, 2, 5, 5)))
    step(np.ones((2, 2, 5, 5)))
    assert {name: grad.flags.c_contiguous for name, grad in step.consumed.items()} == dict.fromkeys(params, True)
    assert step.verify(2).ok
