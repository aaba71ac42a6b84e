"""The step and the draws of a context in training: eager, captured, recorded and computed again, with the same bits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, Dataset, EagerStep, Trainer, capture
from dgrr.runtime.ir.graph import IRGraph
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import TapeError, ops
from dgrr.tape.numerics.math import random
from dgrr.trace import replay

Array = npt.NDArray[Any]
PARAMS = {"w": np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]], np.float32), "b": np.zeros(2, np.float32)}
RNG = np.random.default_rng(3)
BATCHES = [
    (RNG.standard_normal((4, 3)).astype(np.float32), RNG.standard_normal((4, 2)).astype(np.float32)) for _ in range(6)
]


def error(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"], p["b"]), batch[1])


def weighted(p: Any, batch: Any, ctx: Any) -> Any:
    """A loss that grows with the step."""
    return error(p, batch) + ops.cast(ctx.step, np.float32) * 1e-3


def annealed(p: Any, batch: Any, ctx: Any) -> Any:
    """A penalty that comes in over four steps."""
    share = ops.clamp(ops.cast(ctx.step, np.float32) / 4, 0, 1)
    return error(p, batch) + share * (p["w"] * p["w"]).mean()


def switched(p: Any, batch: Any, ctx: Any) -> Any:
    """Another loss from step 3 on, and a view of the step's own memory."""
    late = ops.reshape(ctx.step > 2, (1,))
    return ops.where(late, ops.reshape(error(p, batch), (1,)), ops.reshape((p["w"] * p["w"]).mean(), (1,))).sum()


def drawing(p: Any, batch: Any, ctx: Any) -> Any:
    """Every draw, in the loss."""
    x, target = batch
    x = x + ctx.random.normal(x.shape, std=0.1)
    x = ops.where(ctx.random.bernoulli(0.7, x.shape), x, ops.scale(x, 0.5))
    x = ops.take(x, ctx.random.permutation(4), 0)
    x = ops.take(x, ctx.random.integers(0, 4, (3,)), 0)
    return error(p, (x, target[:3])) + ops.cast(ctx.step, np.float32) * ctx.random.normal(())


LOSSES: list[Callable[..., Any]] = [weighted, annealed, switched, drawing]


@pytest.mark.parametrize("loss_fn", LOSSES)
@pytest.mark.parametrize("recipe", [Recipe(SGD(0.1)), Recipe(Adam(1e-2), accumulate=2, clip_norm=0.5)], ids=str)
def test_captured_and_eager_steps_agree_to_the_bit(loss_fn: Callable[..., Any], recipe: Recipe) -> None:
    eager, captured = EagerStep(loss_fn, PARAMS, recipe, seed=5), CapturedStep(loss_fn, PARAMS, recipe, seed=5)
    losses: list[bytes] = []
    for i in range(0, 12, recipe.accumulate):
        batch = BATCHES[i % 6] if recipe.accumulate == 1 else tuple(BATCHES[i % 6 : i % 6 + 2])
        losses.append(eager(batch).tobytes())
        assert losses[-1] == captured(batch).tobytes()
        assert eager.digest() == captured.digest()
    assert len(set(losses)) == len(losses)


@pytest.mark.parametrize("loss_fn", LOSSES)
def test_every_check_of_verify_holds(loss_fn: Callable[..., Any]) -> None:
    step = capture(loss_fn, PARAMS, Adam(1e-2), BATCHES[0], seed=9)
    step(BATCHES[0])
    report = step.verify(replays=3)
    assert report.ok, str(report)


@pytest.mark.parametrize("loss_fn", LOSSES)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_recorded_run_is_proved(tmp_path: Path, loss_fn: Callable[..., Any], accumulate: int) -> None:
    path = tmp_path / "run.dgrr"
    Trainer(loss_fn, PARAMS, Adam(1e-2), seed=11, trace=path, accumulate=accumulate).fit(
        BATCHES, epochs=2, progress=False
    )
    report = replay(path, loss_fn=loss_fn, batches=BATCHES)
    assert report.ok, str(report)
    assert report.gradient == "proven"


def counting(p: Any, batch: Any, ctx: Any) -> Any:
    """A state that takes in the step of every micro-batch, and what is drawn."""
    seen = ctx.state["seen"] * 100.0 + ops.cast(ctx.step, np.float64)
    return error(p, batch), {"seen": seen, "last": ctx.step, "drawn": ctx.random.normal((2,))}


STATE: dict[str, Array] = {"seen": np.array(0.0), "last": np.array(-1), "drawn": np.zeros(2, np.float32)}


@pytest.mark.parametrize("kind", [EagerStep, CapturedStep])
def test_all_micro_batches_have_the_step_and_draws_of_their_own(kind: Any) -> None:
    step = kind(counting, PARAMS, Recipe(SGD(0.1), accumulate=2), model_state=STATE, seed=6)
    for _ in range(3):
        step(tuple(BATCHES[:2]))
    assert step.model_state["seen"] == 1010202
    assert step.model_state["last"] == 2
    z = random.uniform((2, 2), np.float64, seed=6, step=2, micro_batch=1)
    expected = np.sqrt(-2 * np.log(1 - z[:, 0])) * np.cos(2 * np.pi * z[:, 1])
    assert step.model_state["drawn"] == pytest.approx(expected, rel=1e-6)


def test_replays_count_on() -> None:
    step = capture(counting, PARAMS, SGD(0.1), BATCHES[0], model_state=STATE)
    step(BATCHES[0])
    step.replay(3)
    assert step.model_state["seen"] == 10203
    assert step.state["step"] == 4


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_in_evaluation_the_step_is_the_trainers_count(mode: Any) -> None:
    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        if ctx.training:
            return error(p, batch)
        return ops.cast(ctx.step, np.float32) + p["w"].sum() * 0

    trainer = Trainer(loss_fn, PARAMS, SGD(1e-3), mode=mode)
    data = Dataset(*BATCHES[0])
    assert trainer.evaluate(data) == 0
    trainer.fit(BATCHES, epochs=2, progress=False)
    assert trainer.evaluate(data) == 12


def test_a_step_cannot_be_asked_for_its_number_while_captured() -> None:
    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        return error(p, batch) * ctx.step.item()

    with pytest.raises(TapeError, match="value"):
        capture(loss_fn, PARAMS, SGD(0.1), BATCHES[0])


def test_the_graph_of_a_step_with_draws_is_read_back() -> None:
    step = capture(drawing, PARAMS, SGD(0.1), BATCHES[0])
    graph = step.graph
    assert IRGraph.parse(str(graph)) == graph == IRGraph.from_json(graph.to_json())
