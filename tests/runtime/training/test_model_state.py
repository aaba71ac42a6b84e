"""Loss functions with a context: keyed draws and a state of the model, eager and captured, in batches and runs."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, Dataset, EagerStep, Trainer, capture, evaluate
from dgrr.runtime.step.loss_call import RunPoint, takes_context
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError, DTypeError, GradientError, NonFiniteError, ShapeError, Tape, ops
from dgrr.tape.numerics.math.random import uniform

Arrays = Mapping[str, npt.NDArray[Any]]
PARAMS = {"w": np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]], np.float32), "b": np.zeros(2, np.float32)}
STATE = {"mean": np.zeros(3, np.float32), "weights": np.ones((2, 3), np.float32), "calls": np.array(0)}
RNG = np.random.default_rng(3)
BATCHES = [
    (RNG.standard_normal((4, 3)).astype(np.float32), RNG.standard_normal((4, 2)).astype(np.float32)) for _ in range(6)
]


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Noise, a running mean of the inputs, an average of the weights and a count of the calls."""
    x, target = batch
    if ctx.training:
        ctx.update("mean", ctx.state["mean"] * 0.75 + ops.reduce_mean(x, 0) * 0.25)
        ctx.update("weights", ctx.state["weights"] * 0.5 + p["w"] * 0.5)
        ctx.update("calls", ops.cast(ops.cast(ctx.state["calls"], "float64") + 1.0, "int64"))
        x = ctx.random.dropout(x, 0.5) + ctx.random.uniform((4, 3)) * 0.125
    centred = x - ctx.state["mean"]
    return ops.mse_loss(ops.linear(centred, p["w"], p["b"]), target), ctx.state


def steps_of(recipe: Recipe, seed: int = 5) -> tuple[EagerStep, CapturedStep]:
    return EagerStep(loss_fn, PARAMS, recipe, STATE, seed), CapturedStep(
        loss_fn, PARAMS, recipe, model_state=STATE, seed=seed
    )


def bits(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize(
    "recipe", [Recipe(Adam(1e-2)), Recipe(SGD(0.1), clip_norm=0.5), Recipe(Adam(1e-2), accumulate=2, clip_value=0.1)]
)
def test_captured_and_eager_steps_agree_to_the_bit(recipe: Recipe) -> None:
    eager, captured = steps_of(recipe)
    for i in range(0, 6, recipe.accumulate):
        batch = BATCHES[i] if recipe.accumulate == 1 else tuple(BATCHES[i : i + 2])
        assert eager(batch).tobytes() == captured(batch).tobytes()
        assert bits(eager.model_state) == bits(captured.model_state)
        assert eager.digest() == captured.digest()
    assert captured.model_state["calls"] == 6
    assert np.abs(captured.model_state["mean"]).min() > 0


def test_the_state_is_what_its_formula_says() -> None:
    _, captured = steps_of(Recipe(SGD(0.1)))
    mean, weights = np.zeros(3), np.ones((2, 3))
    for batch in BATCHES:
        mean = mean * 0.75 + batch[0].astype(np.float64).mean(0) * 0.25
        weights = weights * 0.5 + captured.params["w"] * 0.5  # the weights before the update
        captured(batch)
    assert captured.model_state["mean"] == pytest.approx(mean, rel=1e-5)
    assert captured.model_state["weights"] == pytest.approx(weights, rel=1e-5)


def drawing(p: Any, batch: Any, ctx: Any) -> Any:
    """A loss that hands what it draws to the state."""
    first, second = ctx.random.uniform((3,), np.float64), ctx.random.uniform((3,), np.float64)
    return (p["w"] * batch).sum(), {"first": first, "second": second}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_draws_are_keyed_by_seed_step_micro_batch_and_order(accumulate: int) -> None:
    params, state = {"w": np.ones(2)}, {"first": np.zeros(3), "second": np.zeros(3)}
    step = capture(
        drawing, params, SGD(0.1), (np.ones(2),) * 2 if accumulate > 1 else np.ones(2),
        model_state=state, seed=1 << 40, accumulate=accumulate,
    )  # fmt: skip
    for number in range(3):
        step.replay(1)
        for ordinal, name in enumerate(("first", "second")):
            key = {"seed": 1 << 40, "step": number, "micro_batch": accumulate - 1, "ordinal": ordinal}
            assert step.model_state[name].tobytes() == uniform((3,), np.float64, **key).tobytes()


def test_a_step_without_draws_has_no_count_in_its_forward_pass() -> None:
    step = capture(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), np.ones(2))
    assert step.plan is not None
    assert [node.op for node in step.graph.nodes if node.op in ("snapshot", "assign")] == []


def test_entries_may_be_exchanged() -> None:
    def swapping(p: Any, batch: Any, ctx: Any) -> Any:
        return (p["w"] * batch).sum(), {"a": ctx.state["b"], "b": ctx.state["a"], "w": p["w"], "x": batch}

    state = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0]), "w": np.zeros(2), "x": np.zeros(2)}
    batches = [np.array([1.0, -1.0]), np.array([2.0, 5.0]), np.array([0.5, 0.25])]
    eager = EagerStep(swapping, {"w": np.ones(2)}, Recipe(SGD(0.5)), state)
    captured = capture(swapping, {"w": np.ones(2)}, SGD(0.5), batches[0], model_state=state)
    for batch in batches:
        before = captured.params["w"].copy()
        eager(batch)
        captured(batch)
        assert bits(eager.model_state) == bits(captured.model_state)
        assert captured.model_state["w"].tolist() == before.tolist()
        assert captured.model_state["x"].tolist() == batch.tolist()
    assert captured.model_state["a"].tolist() == [3.0, 4.0]


def test_several_steps_at_once_and_replays_are_single_steps() -> None:
    one, many = (capture(loss_fn, PARAMS, Adam(1e-2), BATCHES[0], model_state=STATE, seed=2) for _ in range(2))
    losses = [one(batch) for batch in BATCHES]
    assert many.steps(BATCHES).tolist() == losses
    assert one.digest() == many.digest()
    assert one.replay(3).tolist() == [many(BATCHES[-1]) for _ in range(3)]
    assert one.digest() == many.digest()


def test_gradients_and_looking_change_no_state() -> None:
    step = capture(loss_fn, PARAMS, Adam(1e-2), BATCHES[0], model_state=STATE)
    step(BATCHES[0])
    before = step.digest()
    point = RunPoint(1, 0, step.model_state)
    made = evaluate(loss_fn, step.params, BATCHES[1], point)
    assert bits(step.gradients(BATCHES[1])) == bits(made.grads)
    assert step.grads(BATCHES[1])["w"] is not None
    assert step.digest() == before


def test_every_check_of_verify_holds() -> None:
    step = capture(loss_fn, PARAMS, Adam(1e-2), BATCHES[0], model_state=STATE, seed=9)
    step(BATCHES[0])
    report = step.verify(replays=3)
    assert report.ok, str(report)


def test_a_full_restore_brings_the_state_back() -> None:
    step = capture(loss_fn, PARAMS, Adam(1e-2), BATCHES[0], model_state=STATE)
    step(BATCHES[0])
    saved, digest = step.state_dict(), step.digest()
    step(BATCHES[1])
    after = step.digest()
    step.load_state_dict(saved)
    assert step.digest() == digest
    step(BATCHES[1])
    assert step.digest() == after


def test_a_state_that_is_not_finite_ends_the_step_and_changes_nothing() -> None:
    def growing(p: Any, batch: Any, ctx: Any) -> Any:
        return (p["w"] * batch).sum(), {"s": ctx.state["s"] * 1e30}

    state = {"s": np.ones(2, np.float32)}
    params, batch = {"w": np.ones(2, np.float32)}, np.ones(2, np.float32)
    eager = EagerStep(growing, params, Recipe(SGD(0.5)), state)
    for step in (eager, capture(growing, params, SGD(0.5), batch, model_state=state)):
        step(batch)
        before = step.digest()
        with pytest.raises(NonFiniteError, match="the new state 's' of the model is not"):
            step(batch)
        assert step.digest() == before


# ------------------------------------------------------------------ what is refused


def refusal(result: Any, state: Arrays = STATE) -> str:
    """The text with which eager and captured steps refuse what a loss function returns: the same."""
    texts = set[str]()
    for make in (
        lambda f: EagerStep(f, PARAMS, Recipe(SGD(0.1)), state)(BATCHES[0]),
        lambda f: capture(f, PARAMS, SGD(0.1), BATCHES[0], model_state=state),
    ):
        with pytest.raises((GradientError, DomainError, ShapeError, DTypeError)) as caught:
            make(lambda p, batch, ctx: result(p["w"].sum(), ctx))
        texts.add(f"{type(caught.value).__name__}: {caught.value}")
    (text,) = texts
    return text


def updated(loss: Any, ctx: Any) -> Any:
    ctx.update("mean", ctx.state["mean"] * 0.5)
    return loss


def test_an_update_that_is_not_returned() -> None:
    expected = "GradientError: loss_fn: the model updated 'mean': expected (loss, ctx.state), got the loss alone"
    assert refusal(updated) == expected


def test_results_of_another_form() -> None:
    assert refusal(lambda loss, ctx: (loss, 3)) == (
        "GradientError: loss_fn: expected it to return (loss, new_state) or (loss, new_state, metrics), got (Var, int)"
    )
    assert refusal(lambda loss, ctx: (3.0, {})) == (
        "GradientError: loss_fn: expected it to return a scalar Var, got float"
    )


def test_states_that_do_not_fit() -> None:
    assert refusal(lambda loss, ctx: (loss, {"mode": loss})) == (
        "DomainError: loss_fn: expected the new state of 'mean', 'weights', 'calls', got 'mode'; return metrics behind "
        "it: (loss, ctx.state, metrics)"
    )
    assert refusal(lambda loss, ctx: (loss, {"mean": loss})) == (
        "ShapeError: update: argument 'value' of 'mean': expected shape (3,), got ()"
    )
    assert refusal(lambda loss, ctx: (loss, {"mean": ops.cast(ctx.state["mean"], "float64")})) == (
        "DTypeError: update: argument 'value' of 'mean': expected float32, got float64"
    )


def test_a_state_needs_a_loss_function_that_takes_it() -> None:
    with pytest.raises(DomainError) as caught:
        capture(lambda p, batch: p["w"].sum(), PARAMS, SGD(0.1), BATCHES[0], model_state={"a": np.ones(1)})
    assert str(caught.value) == ("model_state: expected loss_fn(p, batch, ctx) to use 'a', got a loss_fn without ctx")


def test_which_functions_take_a_context() -> None:
    class Callable:
        def __call__(self, p: Any, batch: Any, ctx: Any = None) -> None: ...

    assert takes_context(lambda p, batch, ctx: None)
    assert takes_context(lambda p, batch, context: None)
    assert takes_context(Callable())
    assert not takes_context(lambda p, batch: None)
    assert not takes_context(lambda p, batch, weight=0.5: None)
    assert not takes_context(lambda p, batch, *, ctx: None)


# ------------------------------------------------------------------ runs


def repeated() -> Iterator[Any]:
    yield from BATCHES


@pytest.mark.parametrize("mode", ["eager", "capture", "replay"])
def test_every_mode_of_the_trainer_gives_the_same_bits(mode: Any) -> None:
    trainer = Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE, mode=mode, seed=5, warmup=1)
    result = trainer.fit(BATCHES, epochs=2, progress=False)
    eager, _ = steps_of(Recipe(Adam(1e-2)))
    losses = [eager(batch) for batch in BATCHES + BATCHES]
    assert result.losses.tolist() == losses
    assert result.state_digest == eager.digest()
    assert trainer.model_state["calls"] == 12
    assert STATE["calls"] == 0


def test_another_seed_gives_another_run() -> None:
    digests = {
        Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE, seed=seed).fit(BATCHES, progress=False).state_digest
        for seed in (0, 1)
    }
    assert len(digests) == 2


def test_evaluation_neither_draws_nor_changes() -> None:
    trainer = Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE)
    trainer.fit(BATCHES, progress=False)
    before, mean = trainer.model_state["calls"].copy(), trainer.model_state["mean"]
    x, target = (np.concatenate(part) for part in zip(*BATCHES, strict=True))
    found = trainer.evaluate(Dataset(x, target))
    expected = np.mean((((x - mean) @ trainer.params["w"].T + trainer.params["b"]) - target) ** 2)
    assert found == pytest.approx(float(expected), rel=1e-5)
    assert trainer.model_state["calls"] == before


def test_a_model_with_a_context_is_evaluated_without_training() -> None:
    trainer = Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE)
    seen: list[bool] = []

    def model(p: Any, x: Any, ctx: Any) -> Any:
        seen.append(ctx.training)
        return ops.linear(x - ctx.state["mean"], p["w"], p["b"])

    x = BATCHES[0][0]
    labels = (x @ PARAMS["w"].T).argmax(-1)
    assert trainer.evaluate(Dataset(x, labels), "accuracy", model) == 1.0
    assert set(seen) == {False}


def test_a_tape_of_ones_own_takes_a_moment() -> None:
    tape: Tape[Any] = Tape()
    ctx = RunPoint(3, 7, STATE, training=False, micro_batch=1).context(tape)
    assert not ctx.training
    assert list(ctx.state) == list(STATE)
    expected = uniform((2,), np.float32, seed=7, step=3, micro_batch=1)
    assert ctx.random.uniform((2,)).numpy().tobytes() == expected.tobytes()
