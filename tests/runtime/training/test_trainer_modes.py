"""Eager, captured anew and replayed: one run, to the bit, in parameters, losses and trace."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, AdamW, Dataset, Trainer, clip_by_global_norm, clip_by_value, gradients, state_digest
from dgrr.runtime.optim import Cosine, Rule, StepDecay, WarmUp
from dgrr.tape import DomainError, ShapeError, nn, ops
from dgrr.trace import open_trace, replay

Array = npt.NDArray[Any]
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
EPOCHS = 3
RNG = np.random.default_rng(5)
X = RNG.standard_normal((20, 3)).astype(np.float32)
DATA = {
    "cross_entropy": Dataset(X, RNG.integers(0, 2, 20)),
    "mse_loss": Dataset(X, RNG.standard_normal((20, 2)).astype(np.float32)),
}
RULES: list[Rule] = [
    SGD(0.1, momentum=0.5, nesterov=True),
    Adam(WarmUp(Cosine(0.05, steps=10, final=0.001), steps=3)),
    AdamW(StepDecay(0.02, every=4, factor=0.5), weight_decay=0.1),
]
RECIPES: list[dict[str, Any]] = [
    {},
    {"clip_norm": 0.3},
    {"accumulate": 2},
    {"accumulate": 2, "clip_value": 0.05, "clip_norm": 0.1},
]
MODES: list[dict[str, Any]] = [
    {"mode": "eager"},
    {"mode": "capture"},
    {"mode": "replay"},
    {"mode": "replay", "warmup": 0},
    {"mode": "replay", "warmup": 5},
]


def loss_of(name: str) -> Any:
    def loss_fn(p: Any, batch: Any) -> Any:
        inputs, targets = batch
        return getattr(ops, name)(MODEL(p, inputs), targets)

    return loss_fn


def steps_of(data: Dataset, n: int) -> Iterator[tuple[Any, ...]]:
    """The micro-batches of every step: batches of 6, 6, 6 and 2 samples, ``n`` at a time."""
    batches = data.batches(6, seed=3)
    for _ in range(EPOCHS):
        items = iter(batches)
        while together := tuple(islice(items, n)):
            yield together


def mean(arrays: Sequence[Array]) -> Array:
    """In numpy, whose additions and divisions are rounded correctly."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total / total.dtype.type(len(arrays)) if len(arrays) > 1 else total


def plain(name: str, rule: Rule, recipe: dict[str, Any]) -> tuple[list[bytes], str]:
    """Losses and digest of the same run, put together from its parts."""
    params, losses, scales = MODEL.init(0), list[bytes](), list[float]()
    state = rule.init(params)
    for micro in steps_of(DATA[name], recipe.get("accumulate", 1)):
        passes = [gradients(loss_of(name), params, batch) for batch in micro]
        grads = {key: mean([made[key] for _, made in passes]) for key in params}
        if "clip_value" in recipe:
            grads = clip_by_value(grads, recipe["clip_value"])
        if "clip_norm" in recipe:
            clipped = clip_by_global_norm(grads, recipe["clip_norm"])
            grads = clipped.grads
            scales.append(clipped.scale)
        rule.step(params, grads, state)
        losses.append(mean([loss for loss, _ in passes]).tobytes())
    assert min(scales, default=0.5) < 1, "some step is clipped"
    return losses, state_digest(params, state)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize(("name", "rule"), [*zip(["cross_entropy", "mse_loss", "cross_entropy"], RULES, strict=True)])
def test_every_mode_gives_the_same_run(tmp_path: Path, name: str, rule: Rule, recipe: dict[str, Any]) -> None:
    losses, digest = plain(name, rule, recipe)
    traces = list[Any]()
    for i, mode in enumerate(MODES):
        path = tmp_path / f"{i}.dgrr"
        trainer = Trainer(loss_of(name), MODEL.init(0), rule, trace=path, **mode, **recipe)
        result = trainer.fit(DATA[name].batches(6, seed=3), epochs=EPOCHS)
        assert [loss.tobytes() for loss in result.losses] == losses
        assert result.state_digest == digest == state_digest(trainer.params, trainer.state)
        traces.append(contents(path))
    assert all(trace == traces[0] for trace in traces)
    report = replay(tmp_path / "2.dgrr", loss_fn=loss_of(name), batches=DATA[name].batches(6, seed=3))
    assert (report.verdict.value, report.update, report.gradient, report.data) == ("ok", *["proven"] * 3)


def contents(path: Path) -> Any:
    """State chain, fronts and gradients of a sealed trace."""
    with open_trace(path) as trace:
        assert trace.seal is not None
        grads = [{n: g.tobytes() for n, g in trace.gradients(step).items()} for step in range(len(trace))]
        return trace.seal.link, trace.seal.final, [view.record for view in trace], grads


def test_a_trace_names_threshold_scale_and_micro_batches(tmp_path: Path) -> None:
    trainer = Trainer(loss_of("mse_loss"), MODEL.init(0), RULES[1], trace=tmp_path / "t.dgrr", **RECIPES[3])
    trainer.fit(DATA["mse_loss"].batches(6, seed=3), epochs=EPOCHS)
    with open_trace(tmp_path / "t.dgrr") as trace:
        assert [group.rule for group in trace.schema.groups] == ["clip_value@1", RULES[1].rule]
        for view in trace:
            assert view.clip_value == 0.05
            assert view.micro_batches == 2
            assert view.clip is not None
            threshold, scale = view.clip
            assert threshold == 0.1
            assert 0 < scale < 1
            assert view.hyper == {"clip_value": 0.05, **RULES[1].hyperparameters(view.step + 1)}
            squares = sum(np.square(g, dtype=np.float64).sum() for g in trace.gradients(view.step).values())
            assert np.sqrt(squares) == pytest.approx(0.1, rel=1e-4)


def recorded(path: Path, **recipe: Any) -> Path:
    trainer = Trainer(loss_of("mse_loss"), MODEL.init(0), SGD(0.1), trace=path, **recipe)
    trainer.fit(DATA["mse_loss"].batches(6, seed=3))
    return path


def test_re_execution_on_other_micro_batches_fails(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.dgrr", accumulate=2)
    batches = list(DATA["mse_loss"].batches(6, seed=3))
    report = replay(path, loss_fn=loss_of("mse_loss"), batches=batches[1:])
    assert (report.verdict.value, report.data) == ("data", "failed")


# The arrays of a trainer.


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_arrays_keep_identity_and_address(mode: dict[str, Any]) -> None:
    trainer = Trainer(loss_of("mse_loss"), MODEL.init(0), Adam(0.01), **mode)
    params, state = trainer.params, trainer.state
    arrays = [*params.values(), *state.values()]
    addresses = [a.ctypes.data for a in arrays]
    before = [a.tobytes() for a in arrays]
    trainer.fit(DATA["mse_loss"].batches(6, seed=3), epochs=2)
    assert trainer.params is params
    assert trainer.state is state
    now = [*trainer.params.values(), *trainer.state.values()]
    assert all(a is b for a, b in zip(now, arrays, strict=True))
    assert [a.ctypes.data for a in now] == addresses
    assert all(a.tobytes() != b for a, b in zip(now, before, strict=True))


# When the loss function is run.


@pytest.mark.parametrize(
    ("mode", "calls"),
    [
        ({"mode": "eager"}, 8),
        ({"mode": "capture"}, 16 + 1),
        ({}, 4 + 5),
        ({"warmup": 2}, 2 + 4 + 4),
        ({"warmup": 3}, 3 + 4 + 4),
        ({"warmup": 9}, 8),
    ],
    ids=str,
)
def test_how_often_the_loss_function_is_run(mode: dict[str, Any], calls: int) -> None:
    """Eight steps of two shapes: a captured step runs it twice for each shape, then to see that it is the same."""
    came = list[tuple[int, ...]]()

    def loss_fn(p: Any, batch: Any) -> Any:
        came.append(batch[0].shape)
        return loss_of("mse_loss")(p, batch)

    Trainer(loss_fn, MODEL.init(0), Adam(0.01), **mode).fit(DATA["mse_loss"].batches(6), epochs=2)
    assert len(came) == calls


def test_another_shape_is_an_error_where_asked() -> None:
    trainer = Trainer(loss_of("mse_loss"), MODEL.init(0), Adam(0.01), on_shape_change="error")
    with pytest.raises(ShapeError) as caught:
        trainer.fit(DATA["mse_loss"].batches(6))
    assert str(caught.value) == (
        "step: batch: expected batch[0] float32[6, 3], batch[1] float32[6, 2] as captured, "
        "got batch[0] float32[2, 3], batch[1] float32[2, 2]"
    )
    assert trainer.steps == 3


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"mode": "graph"}, "argument 'mode': expected one of 'eager', 'capture', 'replay', got 'graph'"),
    ({"on_shape_change": "x"}, "argument 'on_shape_change': expected one of 'recapture', 'error', got 'x'"),
    ({"warmup": -1}, "argument 'warmup': expected a whole number of at least 0, got -1"),
    ({"warmup": 0.5}, "argument 'warmup': expected a whole number of at least 0, got 0.5"),
    ({"checkpoint_every": 2}, "argument 'checkpoint_every': expected a checkpoint to save to beside it, got none"),
    (
        {"checkpoint": "x", "checkpoint_every": 0},
        "argument 'checkpoint_every': expected a whole number of at least 1, got 0",
    ),
]


@pytest.mark.parametrize(("options", "text"), REFUSED)
def test_arguments_of_a_trainer(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        Trainer(loss_of("mse_loss"), MODEL.init(0), Adam(), **options)
    assert str(caught.value) == f"Trainer: {text}"


# Several batches are one step.


def ones(n: int) -> list[Array]:
    return [np.full(2, float(k)) for k in range(n)]


def weighted(p: Any, batch: Any) -> Any:
    return (batch * p["w"]).sum()


@pytest.mark.parametrize(
    ("counts", "steps", "taken"),
    [({}, 2, 5), ({"epochs": 3}, 6, 15), ({"steps": 1}, 1, 2), ({"steps": 3}, 3, 7), ({"steps": 4, "epochs": 9}, 4, 9)],
)
def test_a_rest_of_too_few_batches_is_left_out(counts: dict[str, Any], steps: int, taken: int) -> None:
    came = list[float]()

    class Five:
        def __iter__(self) -> Iterator[Array]:
            for batch in ones(5):
                came.append(batch[0])
                yield batch

    result = Trainer(weighted, {"w": np.ones(2)}, SGD(0.0), accumulate=2).fit(Five(), **counts)
    assert result.losses.tolist() == [1.0, 5.0, 1.0, 5.0, 1.0, 5.0][:steps]  # 2 * (0 + 1) / 2, 2 * (2 + 3) / 2
    assert len(came) == taken


def test_an_epoch_needs_batches_for_one_step() -> None:
    trainer = Trainer(weighted, {"w": np.ones(2)}, SGD(0.0), accumulate=3)
    with pytest.raises(DomainError) as caught:
        trainer.fit(ones(2))
    assert str(caught.value) == (
        "fit: argument 'batches': expected at least 3 batches per epoch, got fewer; "
        "an iterator is used up after one epoch, so pass something that can be iterated again"
    )


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_parameter_that_the_loss_ignores_stays_when_accumulated(mode: Any) -> None:
    params = {"w": np.ones(2), "unused": np.ones(3)}
    trainer = Trainer(weighted, params, Adam(0.1), accumulate=2, mode=mode, warmup=0)
    trainer.fit(ones(4))
    assert trainer.params["unused"].tolist() == [1, 1, 1]
    assert trainer.steps == 2
