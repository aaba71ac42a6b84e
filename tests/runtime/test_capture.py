"""A captured step: recorded without being run, equal to the eager step to the bit, restored to the bit."""

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import (
    SGD,
    Adam,
    AdamW,
    CapturedStep,
    EagerStep,
    NonFiniteError,
    StateError,
    capture,
    evaluate,
    gradients,
    state_digest,
)  # fmt: skip
from dgrr.runtime.optim import Cosine, Rule
from dgrr.runtime.recipe import Recipe
from dgrr.tape import BoundsError, DgrrError, DomainError, GradientError, ShapeError, TapeError, nn, ops
from dgrr.tape.numerics import machine

Arrays = dict[str, npt.NDArray[Any]]
Batch = tuple[npt.NDArray[Any], npt.NDArray[Any]]
Loss = Callable[[Any, Any], Any]
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RULES = [SGD(0.1, momentum=0.9), Adam(0.01)]


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def batch_of(number: int, rows: int = 6) -> Batch:
    rng = np.random.default_rng(number)
    return rng.standard_normal((rows, 3)).astype(np.float32), rng.integers(0, 2, rows)


def new_step(rule: Rule, seed: int = 0, **options: Any) -> CapturedStep:
    return capture(loss_fn, MODEL.init(seed), rule, batch_of(0), **options)


def copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def bits(arrays: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def outcome(call: Callable[[], Any]) -> Any:
    """The bits of a loss, or the error and its text."""
    try:
        return call().tobytes()
    except DgrrError as error:
        return type(error), str(error)


def same_training(loss: Loss, params: Any, batches: Sequence[Any], rule: Rule, **recipe: Any) -> CapturedStep:
    """Train both ways on the batches; losses, consumed gradients and states must be equal to the bit at each."""
    captured, eager = capture(loss, params, rule, batches[0], **recipe), EagerStep(loss, params, Recipe(rule, **recipe))
    for batch in batches:
        assert captured(batch).tobytes() == eager(batch).tobytes()
        assert bits(captured.consumed) == bits(eager.consumed)
        assert bits(captured.params) == bits(eager.params)
        assert bits(captured.state) == bits(eager.state)
        assert captured.scale == eager.scale
    return captured


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
    before = np.random.get_state()[1].tobytes()  # type: ignore[index,union-attr]
    with (
        patch.object(machine, "run", refuse),
        patch.object(machine, "run_fed", refuse),
        patch.object(machine, "run_steps", refuse),
        patch("dgrr.tape.primitive.run", refuse),
        patch("dgrr.tape.numerics.launch.call", refuse),
    ):
        step = capture(loss_fn, params, rule, batch_of(0), clip_norm=1.0, clip_value=2.0)
        with pytest.raises(AssertionError, match="called with"):
            step(batch_of(0))
    assert np.random.get_state()[1].tobytes() == before  # type: ignore[index,union-attr]
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
    "array": lambda x: x.value.array,
    "iteration": lambda x: list(x.value.numpy()),
    "format": lambda x: f"{x.value.item():.2f}",
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
    assert "use ops (ops.where, comparisons, slicing), or run the step eagerly" in text


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
    "a dict": (lambda p, b: (p["w"] * b["x"]).sum() + (p["v"] * b["y"][0]).sum(), {"x": np.ones(3), "y": [np.full(3, np.inf)]}),
}  # fmt: skip


@pytest.mark.parametrize("name", NON_FINITE)
@pytest.mark.parametrize("way", ["call", "replay", "steps"])
def test_what_is_not_finite_is_named_as_eagerly(name: str, way: str) -> None:
    loss, batch = NON_FINITE[name]
    params = {"w": np.ones(3), "v": np.ones(3)}
    step, eager = capture(loss, params, Adam(0.1), batch), EagerStep(loss, params, Recipe(Adam(0.1)))
    before = step.digest()
    ways: dict[str, Callable[[], Any]] = {
        "call": lambda: step(batch), "replay": lambda: step.replay(3), "steps": lambda: step.steps([batch, batch])
    }  # fmt: skip
    got = outcome(ways[way])
    assert got[0] is NonFiniteError
    assert got == outcome(lambda: eager(batch))
    assert step.digest() == before


@pytest.mark.parametrize("name", ["a value", "a gradient"])
def test_what_is_not_finite_in_a_micro_batch(name: str) -> None:
    loss, bad = NON_FINITE[name]
    params, good = {"w": np.ones(3), "v": np.ones(3)}, np.ones(3)
    for batch in ((good, bad), (bad, good)):
        step = capture(loss, params, SGD(0.1), batch, accumulate=2)
        eager = EagerStep(loss, params, Recipe(SGD(0.1), accumulate=2))
        got = outcome(lambda step=step, batch=batch: step(batch))  # type: ignore[misc]
        assert got == outcome(lambda eager=eager, batch=batch: eager(batch))  # type: ignore[misc]
        assert got[0] is NonFiniteError
        assert got == outcome(lambda step=step: step.replay(2))  # type: ignore[misc]


@pytest.mark.parametrize("rows", [6, 300])
@pytest.mark.parametrize("way", ["call", "gradients", "grads", "replay", "steps"])
def test_an_index_out_of_range_is_refused_as_eagerly(rows: int, way: str) -> None:
    inputs, labels = batch_of(0, rows)
    step, eager = new_step(Adam()), EagerStep(loss_fn, MODEL.init(0), Recipe(Adam()))
    labels[[2, 4]] = 2, -1
    step.bind((inputs, labels))
    before, bad = step.digest(), (inputs, labels)
    ways: dict[str, Callable[[], Any]] = {
        "call": lambda: step(bad), "gradients": lambda: step.gradients(bad), "grads": lambda: step.grads(bad),
        "replay": lambda: step.replay(2), "steps": lambda: step.steps([bad]),
    }  # fmt: skip
    with pytest.raises(BoundsError) as caught:
        ways[way]()
    expected = "cross_entropy: argument 'labels': expected a class from 0 to 1, got 2 at position 2"
    assert (BoundsError, str(caught.value)) == outcome(lambda: eager(bad)) == (BoundsError, expected)
    assert step.digest() == before


def test_a_step_that_failed_can_go_on() -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    bad = batch_of(1)[0], np.full(6, 9)
    for k in range(3):
        with pytest.raises(BoundsError):
            step(bad)
        assert step(batch_of(k)).tobytes() == beside(batch_of(k)).tobytes()
    assert step.digest() == beside.digest()


# ------------------------------------------------------------------ batches


def test_batches_of_another_shape_are_captured_once_and_kept() -> None:
    step, eager = new_step(Adam()), EagerStep(loss_fn, MODEL.init(0), Recipe(Adam()))
    plans = {rows: step.record(batch_of(0, rows)) for rows in (6, 5, 1)}
    assert len({id(made) for made in plans.values()}) == 3
    for k, rows in enumerate((6, 5, 6, 1, 1, 5)):
        assert step(batch_of(k, rows)).tobytes() == eager(batch_of(k, rows)).tobytes()
        assert step.record(batch_of(k, rows)) is plans[rows]
        assert step.plan is plans[rows].step.bound.plan
    assert step.digest() == eager.digest()


def test_batches_of_another_shape_can_be_refused() -> None:
    step = new_step(Adam(), on_shape_change="error")
    before = step.digest()
    step(batch_of(0))
    after = step.digest()
    with pytest.raises(ShapeError) as caught:
        step(batch_of(0, 5))
    assert str(caught.value) == (
        "step: batch: expected batch[0] float32[6, 3], batch[1] int64[6] as captured, "
        "got batch[0] float32[5, 3], batch[1] int64[5]"
    )
    assert before != after == step.digest()
    step(batch_of(1))


def test_a_batch_that_the_model_refuses_leaves_the_step_as_it_was() -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    step(batch_of(0))
    beside(batch_of(0))
    for wrong in ((np.zeros((6, 5), np.float32), np.zeros(6, np.int64)), (np.zeros((6, 3), np.float32),)):
        with pytest.raises((ShapeError, ValueError)):
            step(wrong)
    assert step.replay(2).tobytes() == np.array([beside(batch_of(0)) for _ in range(2)]).tobytes()
    assert step.digest() == beside.digest()


CONVERTED: dict[str, Callable[[Batch], Any]] = {
    "int32 labels": lambda b: (b[0], b[1].astype(np.int32)),
    "uint8 labels": lambda b: (b[0], b[1].astype(np.uint8)),
    "a list of both": lambda b: [b[0], b[1]],
    "another byte order": lambda b: (b[0].astype(">f4"), b[1].astype(">i8")),
    "column-major": lambda b: (np.asfortranarray(b[0]), b[1]),
    "strided": lambda b: (np.repeat(b[0], 2, axis=0)[::2], np.repeat(b[1], 3)[::3]),
    "reversed twice": lambda b: (b[0][::-1].copy()[::-1], b[1][::-1].copy()[::-1]),
    "read-only": lambda b: tuple(np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for a in b),
    "a subclass of arrays": lambda b: (b[0].view(np.matrix), b[1]),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("form", CONVERTED)
def test_batches_of_other_forms_are_the_same_batch(form: str) -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    for k in range(3):
        assert step(CONVERTED[form](batch_of(k))).tobytes() == beside(batch_of(k)).tobytes()
    assert step.digest() == beside.digest()
    several = [CONVERTED[form](batch_of(k)) for k in range(3)]
    assert step.steps(several).tobytes() == beside.steps([batch_of(k) for k in range(3)]).tobytes()


def nested(p: Any, batch: Any) -> Any:
    inner, scale = batch["data"], batch["scale"]
    return ops.cross_entropy(MODEL(p, inner["x"] * scale), inner["y"][0]) + inner["y"][1].mean() * p["0.bias"].mean()


def nested_batch(k: int, reverse: bool = False) -> Any:
    x, y = batch_of(k)
    inner = {"x": x, "y": [y, np.full(3, k, np.float32)]}
    batch = {"data": dict(reversed(inner.items())) if reverse else inner, "scale": np.float32(1.5)}
    return dict(reversed(batch.items())) if reverse else batch


def test_nested_batches() -> None:
    batches = [nested_batch(k, reverse=k % 2 == 1) for k in range(6)]
    step = same_training(nested, MODEL.init(0), batches, Adam(0.1))
    beside = capture(nested, MODEL.init(0), Adam(0.1), batches[0])
    together = [batch for k, batch in enumerate(batches) if k % 2 == 0]
    assert beside.steps(together).tobytes() == np.array([beside_loss(k) for k in (0, 2, 4)]).tobytes()
    assert np.isfinite(step.replay(2)).all()


def beside_loss(k: int, trained: list[EagerStep] = []) -> Any:  # noqa: B006 (one step for all calls)
    if not trained:
        trained.append(EagerStep(nested, MODEL.init(0), Recipe(Adam(0.1))))
    return trained[0](nested_batch(k))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_order_of_names_in_a_batch_does_not_matter(dtype: str) -> None:
    x, y = np.arange(3).astype(dtype), np.arange(3, 6).astype(dtype)
    batches = [{"x": x, "y": y}, {"y": y, "x": x}, {"x": y, "y": x}, {"y": x, "x": y}]
    same_training(lambda p, b: (p["w"] * (b["x"] - b["y"] * b["y"])).sum(), {"w": x}, batches, SGD(0.1))


@pytest.mark.parametrize("batch", [(), {}, [], ((), {"x": ()})], ids=str)
def test_a_batch_without_arrays(batch: Any) -> None:
    params = {"w": np.linspace(1, 2, 3)}
    step = same_training(lambda p, b: (p["w"] * p["w"]).sum(), params, [batch] * 3, Adam(0.1))
    beside = EagerStep(step.loss_fn, step.params, Recipe(SGD(0.1)))
    again = capture(step.loss_fn, step.params, SGD(0.1), batch)
    assert again.steps([batch] * 2).tobytes() == np.array([beside(batch) for _ in range(2)]).tobytes()


def test_a_batch_of_one_array_and_of_a_number() -> None:
    params = {"w": np.linspace(1, 2, 3)}
    same_training(lambda p, x: (p["w"] * x).sum(), params, [np.arange(3.0), np.ones(3)], Adam(0.1))
    same_training(lambda p, x: (p["w"] * x).sum(), params, [2.0, np.float64(3), np.array(4.0)], Adam(0.1))


# ------------------------------------------------------------------ several steps


@pytest.mark.parametrize("rule", [*RULES, Adam(Cosine(0.1, steps=5))], ids=["sgd", "adam", "scheduled"])
def test_replays_and_steps_are_single_steps(rule: Rule) -> None:
    step, beside = new_step(rule), new_step(rule)
    assert step.replay(3).tobytes() == np.array([beside(batch_of(0)) for _ in range(3)]).tobytes()
    several = [batch_of(k) for k in range(4)]
    assert step.steps(several).tobytes() == np.array([beside(batch) for batch in several]).tobytes()
    assert step.replay(2).tobytes() == np.array([beside(batch_of(3)) for _ in range(2)]).tobytes()
    assert step.steps(iter(several[:1])).shape == (1,)
    beside(several[0])
    assert step.digest() == beside.digest()


def test_no_steps_are_none() -> None:
    step = new_step(Adam())
    before = step.digest()
    assert step.replay(0).shape == step.steps([]).shape == (0,)
    assert step.digest() == before


def test_losses_of_several_steps_are_of_the_losss_type() -> None:
    step = capture(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), np.ones(2))
    assert step.replay(2).dtype == step.steps([np.ones(2)]).dtype == np.float64
    assert new_step(Adam()).replay(1).dtype == np.float32


def test_steps_of_unlike_batches_are_refused() -> None:
    step = new_step(Adam())
    before = step.digest()
    expected = r"^steps: batch 1: expected batch\[0\] float32\[6, 3\], .*, got batch\[0\] float32\[5, 3\], .*$"
    with pytest.raises(ShapeError, match=expected):
        step.steps([batch_of(0), batch_of(1, 5)])
    assert step.digest() == before


@pytest.mark.parametrize("kind", ["infinite", "out of range"])
def test_steps_that_fail_in_the_middle_keep_those_before(kind: str) -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    x, y = batch_of(2)
    bad = (x * np.float32(np.inf), y) if kind == "infinite" else (x, y + 7)
    got = outcome(lambda: step.steps([batch_of(0), batch_of(1), bad, batch_of(3)]))
    for k in range(2):
        beside(batch_of(k))
    assert got == outcome(lambda: beside(bad))
    assert step.digest() == beside.digest()
    assert step(batch_of(4)).tobytes() == beside(batch_of(4)).tobytes()


def test_a_step_without_a_batch_has_nothing_to_replay() -> None:
    step = CapturedStep(loss_fn, MODEL.init(0), Recipe(Adam()))
    for what, use in {"replay": step.replay, "graph": lambda: step.graph, "loss": lambda: step.loss}.items():
        with pytest.raises(DomainError, match=f"^{what}: expected a batch to be bound, got none; call step"):
            use()


def test_nothing_is_allocated_by_replays() -> None:
    """Neither addresses nor Python's memory change over two thousand steps."""
    step, batch = new_step(Adam(), clip_norm=1.0), batch_of(0)
    for _ in range(10):
        step(batch)
    bound = step.record(batch).step.bound
    addresses = [memory.ctypes.data for memory in bound.memory.values()]
    table = bound.rows.tobytes()
    gc.collect()
    tracemalloc.start()
    try:
        step(batch)
        step.replay(1)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2000):
            step(batch)
        step.replay(2000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 2048  # a loss and what the tracing itself keeps
    assert [memory.ctypes.data for memory in bound.memory.values()] == addresses
    assert bound.rows.tobytes() == table
    assert step.state["step"] == 4012


def test_a_profile_trains_nothing() -> None:
    step = new_step(Adam())
    step(batch_of(0))
    before = step.digest()
    profile = step.profile(batch_of(1))
    assert step.digest() == before
    assert [call.kernel for call in profile.calls] == [op.kernel.name for op in step.lowered.ops]


# ------------------------------------------------------------------ state


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("seed", [0, 1], ids=["the same step", "a step from another start"])
def test_a_state_dict_restores_to_the_bit(rule: Rule, seed: int) -> None:
    step = new_step(rule)
    for k in range(3):
        step(batch_of(k))
    saved, digest = step.state_dict(), step.digest()
    losses = [step(batch_of(k)).tobytes() for k in range(3, 7)]
    end = step.digest()
    resumed = step if seed == 0 else new_step(rule, seed)
    resumed.load_state_dict(saved)
    assert resumed.digest() == digest != end
    assert [resumed(batch_of(k)).tobytes() for k in range(3, 7)] == losses
    assert resumed.digest() == end


def test_a_state_dict_is_a_copy_and_loading_keeps_the_arrays() -> None:
    step = new_step(Adam())
    step(batch_of(1))
    digest, arrays = step.digest(), [*step.params.values(), *step.state.values()]
    saved = step.state_dict()
    step.load_state_dict(saved)
    for part in saved.values():
        for array in part.values():
            array[...] = 7
    assert step.digest() == digest
    kept = [*step.params.values(), *step.state.values()]
    assert all(now is then for now, then in zip(kept, arrays, strict=True))


def without_weight(saved: dict[str, Arrays]) -> None:
    del saved["params"]["0.weight"]


def renamed(saved: dict[str, Arrays]) -> None:
    saved["params"] = {f"model.{name}": value for name, value in saved["params"].items()}


def reordered(saved: dict[str, Arrays]) -> None:
    saved["state"] = dict(reversed(saved["state"].items()))


def without_state(saved: dict[str, Arrays]) -> None:
    del saved["state"]


def transposed(saved: dict[str, Arrays]) -> None:
    saved["params"]["0.weight"] = saved["params"]["0.weight"].T


def widened(saved: dict[str, Arrays]) -> None:
    saved["state"]["m/2.bias"] = saved["state"]["m/2.bias"].astype(np.float64)


def scalar(saved: dict[str, Arrays]) -> None:
    saved["state"]["step"] = np.zeros(1, np.int64)


NAMES = "['0.weight', '0.bias', '2.weight', '2.bias']"
STATE = f"['step', 'corrections', {', '.join(repr(f'{b}/{n}') for b in 'mv' for n in MODEL.init(0))}]"
REFUSED: list[tuple[Callable[[dict[str, Arrays]], None], str]] = [
    (without_weight, f"params: expected the names {NAMES}, got ['0.bias', '2.weight', '2.bias']"),
    (renamed, f"params: expected the names {NAMES}, got ['model.0.weight', 'model.0.bias', "),
    (reordered, f"state: expected the names {STATE}, got ['v/2.bias', "),
    (without_state, f"state: expected the names {STATE}, got []"),
    (transposed, "params '0.weight': expected float32[4, 3], got float32[3, 4]"),
    (widened, "state 'm/2.bias': expected float32[2], got float64[2]"),
    (scalar, "state 'step': expected int64[], got int64[1]"),
]


@pytest.mark.parametrize(("spoil", "text"), REFUSED)
def test_a_state_dict_that_does_not_fit_changes_nothing(spoil: Callable[[dict[str, Arrays]], None], text: str) -> None:
    step, other = new_step(Adam()), new_step(Adam(), seed=1)
    for k in range(2):
        other(batch_of(k))
    saved, before = other.state_dict(), step.digest()
    spoil(saved)
    with pytest.raises(StateError) as caught:
        step.load_state_dict(saved)
    assert str(caught.value).startswith(f"load_state_dict: {text}")
    assert step.digest() == before


def test_the_state_of_another_rule_does_not_fit() -> None:
    step = new_step(SGD(0.1))
    with pytest.raises(StateError, match=r"expected the names \['step'\], got \['step', 'corrections'"):
        step.load_state_dict(new_step(Adam()).state_dict())
