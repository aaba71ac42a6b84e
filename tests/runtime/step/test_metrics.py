"""Metrics of a loss function: the same eagerly and captured, means over micro-batches, and of no influence."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep, capture
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DgrrError, Tape, nn, ops

from ..stepping import Loss, batch_of, bits

pytestmark = pytest.mark.quick

MODEL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
BATCHES = [batch_of(k) for k in range(6)]


def accuracy(logits: Any, labels: Any) -> Any:
    return ops.cast(ops.equal(ops.argmax(logits, -1), labels), "float32").mean()


def plain(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels) * p["scale"]


def measured(p: Any, batch: Any) -> Any:
    """With metrics of every element type, a parameter itself, views, and what the loss reads."""
    inputs, labels = batch
    logits = MODEL(p, inputs)
    loss = ops.cross_entropy(logits, labels) * p["scale"]
    metrics = {
        "acc": accuracy(logits, labels),
        "twice": loss * 2,
        "count": ops.cast(labels, "int64")[0],
        "right": ops.equal(ops.argmax(logits[0], 0), labels[0]),
        "weight": p["0.weight"][1, 2],
        "scale": p["scale"],
        "logit": logits[1, 0],
        "same": loss,
    }
    return loss, metrics


PARAMS = {**MODEL.init(0), "scale": np.array(2.5, np.float32)}


def steps(loss: Loss, rule: Any = None, **recipe: Any) -> tuple[EagerStep, CapturedStep]:
    rule = rule or Adam(0.05)
    example = BATCHES[0] if recipe.get("accumulate", 1) == 1 else tuple(BATCHES[: recipe["accumulate"]])
    return EagerStep(loss, PARAMS, Recipe(rule, **recipe)), capture(loss, PARAMS, rule, example, **recipe)


def expected(params: Any, batch: Any) -> dict[str, float]:
    """By numpy, from the parameters before the step."""
    inputs, labels = batch
    hidden = np.maximum(inputs @ params["0.weight"].T + params["0.bias"], 0)
    logits = hidden @ params["2.weight"].T + params["2.bias"]
    loss = float(params["scale"] * np.mean(np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(labels)), labels]))
    return {
        "acc": float(np.mean(logits.argmax(-1) == labels)),
        "twice": 2 * loss,
        "count": float(labels[0]),
        "right": float(logits[0].argmax() == labels[0]),
        "weight": float(params["0.weight"][1, 2]),
        "scale": float(params["scale"]),
        "logit": float(logits[1, 0]),
        "same": loss,
    }


def test_metrics_are_those_of_the_batch_before_the_update() -> None:
    eager, captured = steps(measured)
    for batch in BATCHES:
        want = expected(eager.params, batch)
        eager(batch)
        captured(batch)
        assert eager.metrics == captured.metrics
        assert list(eager.metrics) == list(want)
        assert eager.metrics == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize(
    "recipe", [{}, {"clip_norm": 0.1}, {"accumulate": 2}, {"accumulate": 3, "clip_value": 0.01}], ids=str
)
def test_metrics_change_no_bit(recipe: dict[str, Any]) -> None:
    n = recipe.get("accumulate", 1)
    runs: list[list[Any]] = []
    for loss in (plain, measured):
        for step in steps(loss, **recipe):
            told = []
            for i in range(0, 6, n):
                batch = BATCHES[i] if n == 1 else tuple(BATCHES[i : i + n])
                told.append((step(batch).tobytes(), bits(step.consumed), step.digest()))
            runs.append(told)
    assert runs[0] == runs[1] == runs[2] == runs[3]


def test_accumulated_metrics_are_means_over_the_micro_batches() -> None:
    eager, captured = steps(measured, SGD(0.0), accumulate=3)
    batch = tuple(BATCHES[:3])
    eager(batch)
    captured(batch)
    assert eager.metrics == captured.metrics
    single, _ = steps(measured, SGD(0.0))
    each: list[dict[str, float]] = []
    for micro in batch:
        single(micro)
        each.append(single.metrics)
    assert eager.metrics == {name: (each[0][name] + each[1][name] + each[2][name]) / 3 for name in each[0]}


def test_a_step_with_metrics_keeps_every_promise() -> None:
    _, captured = steps(measured)
    captured(BATCHES[0])
    report = captured.verify(replays=3)
    assert report.ok, str(report)


def test_metrics_stand_in_the_graph_as_outputs() -> None:
    _, captured = steps(measured)
    assert [name for name in captured.graph.outputs if name.startswith("metric ")] == [
        f"metric {name} 0" for name in expected(PARAMS, BATCHES[0])
    ]
    _, without = steps(plain)
    assert without.metrics == {}
    assert not any(name.startswith("metric") for name in without.graph.outputs)


def test_a_metric_that_is_not_finite_ends_nothing() -> None:
    for step in steps(lambda p, batch: (plain(p, batch), {"log": ops.log(p["scale"] * 0.0)})):
        step(BATCHES[0])
        assert step.metrics == {"log": -np.inf}


# A model with a state.

STATE = {"mean": np.zeros(3, np.float32)}


def stateful(p: Any, batch: Any, ctx: Any) -> Any:
    ctx.update("mean", ctx.state["mean"] * 0.5 + ops.reduce_mean(batch[0], 0) * 0.5)
    return plain(p, batch), ctx.state, {"first": ctx.state["mean"][0]}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_beside_a_new_state(accumulate: int) -> None:
    recipe: dict[str, Any] = {"accumulate": accumulate}
    example = BATCHES[0] if accumulate == 1 else (BATCHES[0], BATCHES[1])
    eager = EagerStep(stateful, PARAMS, Recipe(Adam(0.05), **recipe), STATE)
    captured = capture(stateful, PARAMS, Adam(0.05), example, model_state=STATE, **recipe)
    for _ in range(3):
        eager(example)
        captured(example)
        assert eager.metrics == captured.metrics
        assert eager.digest() == captured.digest()
        if accumulate == 1:
            assert eager.metrics == {"first": float(eager.model_state["mean"][0])}


# What is refused.

Arrays = dict[str, npt.NDArray[Any]]


def refusal(loss: Any, state: Arrays | None = None) -> str:
    """The text with which eager and captured steps refuse what a loss function returns: the same."""
    texts = set[str]()
    for make in (
        lambda: EagerStep(loss, PARAMS, Recipe(SGD(0.1)), state)(BATCHES[0]),
        lambda: capture(loss, PARAMS, SGD(0.1), BATCHES[0], model_state=state),
    ):
        with pytest.raises(DgrrError) as caught:
            make()
        texts.add(f"{type(caught.value).__name__}: {caught.value}")
    (text,) = texts
    return text


TAKEN = (
    "DomainError: loss_fn: metric {!r}: expected a name of its own, not step, epoch, loss, lr, gradient_norm, seconds "
    "or validation_…; choose another"
)
REFUSED: list[tuple[Any, str]] = [
    (
        lambda p: (p["scale"], {"acc": 0.5}),
        "DomainError: loss_fn: metric 'acc': expected a scalar Var, got float; compute it with ops",
    ),
    (
        lambda p: (p["scale"], {"rows": p["0.bias"]}),
        "ShapeError: loss_fn: metric 'rows': expected a scalar, got shape (4,); take its mean(), or, if it is the "
        "model's state, give the trainer model_state",
    ),
    (
        lambda p: (p["scale"], {"other": Tape().const(np.array(1.0))}),
        "TapeError: loss_fn: metric 'other': expected a Var of the loss's tape, got one of another; compute it from p "
        "and batch",
    ),
    (lambda p: (p["scale"], {"loss": p["scale"]}), TAKEN.format("loss")),
    (lambda p: (p["scale"], {"validation_acc": p["scale"]}), TAKEN.format("validation_acc")),
    (
        lambda p: (p["scale"], p["scale"]),
        "GradientError: loss_fn: expected it to return a loss or (loss, metrics), got (Var, Var)",
    ),
    (
        lambda p: (p["scale"],),
        "GradientError: loss_fn: expected it to return a loss or (loss, metrics), got (Var)",
    ),
    (
        lambda p: (p["scale"], {"mean": p["scale"]}, {}),
        "DomainError: loss_fn: expected the new state of a model without one, got 'mean'; return metrics behind it: "
        "(loss, ctx.state, metrics)",
    ),
]


@pytest.mark.parametrize(("loss", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_metric(loss: Any, text: str) -> None:
    assert refusal(lambda p, batch: loss(p)) == text
    assert refusal(lambda p, batch, ctx: loss(p)) == text


def test_metrics_where_a_new_state_is_expected() -> None:
    assert refusal(lambda p, batch, ctx: (p["scale"], {"acc": p["scale"]}), STATE) == (
        "DomainError: loss_fn: expected the new state of 'mean', got 'acc'; return metrics behind it: (loss, "
        "ctx.state, metrics)"
    )
