"""Micro-batches added in a tree: the same bits in every mode, those of the definition, and in traces."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, CaptureError, Keep, Trainer, capture, state_digest
from dgrr.runtime.step.recipe import Recipe
from dgrr.runtime.training.saving.checkpoint import CheckpointError
from dgrr.runtime.training.step_runner import StepMode
from dgrr.tape import DomainError, nn, ops
from dgrr.trace import at, compare, open_trace, replay, validate
from dgrr.trace.cli.inspection import step_facts
from dgrr.trace.v2.format.constants import StepFlag
from dgrr.trace.v2.write import scalar_names
from dgrr.trace.v2.write.prepared import prepared_front

Array = npt.NDArray[Any]
RNG = np.random.default_rng(5)
MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Tanh(), nn.Dropout(0.25), nn.Linear(4, 1))
PARAMS, STATE = MODEL.init(0), MODEL.init_state()
BATCHES = [RNG.standard_normal((4, 3)).astype(np.float32) for _ in range(15)]
MODES: tuple[StepMode, ...] = ("eager", "capture", "replay")


def loss_fn(p: Any, x: Any, ctx: Any) -> Any:
    """A model with a state and draws."""
    y = MODEL(p, x, ctx)
    return ops.reduce_mean((y - ops.reduce_sum(x, 1, keepdims=True)) ** 2.0), ctx.state


def trained(mode: StepMode = "replay", *, order: Any = "tree", accumulate: int = 5, **options: Any) -> Trainer:
    kept = {"model_state": STATE, **options}
    trainer = Trainer(loss_fn, PARAMS, Adam(0.02), mode=mode, accumulate=accumulate, order=order, seed=4, **kept)
    trainer.fit(BATCHES, steps=15 // accumulate)
    return trainer


def digest(trainer: Trainer) -> str:
    return state_digest(trainer.params, trainer.state, trainer.model_state)


def test_every_mode_has_the_bits_of_the_others_and_not_those_of_a_chain() -> None:
    digests = {mode: digest(trained(mode)) for mode in MODES}
    assert len(set(digests.values())) == 1, digests
    assert digest(trained(order="chain")) not in digests.values()


@pytest.mark.parametrize("mode", MODES)
def test_gradients_loss_and_state_are_added_level_by_level_and_divided_once(mode: StepMode) -> None:
    def weighed(p: Any, x: Any, ctx: Any) -> Any:
        ctx.update("last", x * 3.0)
        return ops.reduce_sum(p["w"] * x), ctx.state

    xs = [np.array([v, -v], np.float32) for v in (1e8, 1.0, -1e8, 3.0, 0.5, 7.25, 1e-3)]
    state = {"last": np.zeros(2, np.float32), "kept": np.array([0.1], np.float32), "count": np.array(3)}
    params = {"w": np.ones(2, np.float32)}
    trainer = Trainer(weighed, params, SGD(1.0), mode=mode, accumulate=7, order="tree", model_state=state)
    trainer.fit(xs, steps=1)

    def mean(terms: list[Array]) -> Array:
        (a, b, c, d, e, f, g) = terms
        total: Array = ((a + b) + (c + d)) + ((e + f) + g)
        return total / np.float32(7)

    assert trainer.params["w"].tobytes() == (np.ones(2, np.float32) - mean(xs)).tobytes()
    assert trainer.model_state["last"].tobytes() == mean([x * np.float32(3) for x in xs]).tobytes()
    assert trainer.model_state["kept"].tobytes() == state["kept"].tobytes(), "an entry that nothing changes stays"
    assert trainer.model_state["count"] == 3
    chain = sum(xs[1:], xs[0]) / np.float32(7)
    assert mean(xs).tobytes() != chain.tobytes(), "the numbers tell a tree from a chain"


def test_running_statistics_are_the_mean_of_what_each_micro_batch_makes_of_them() -> None:
    trainer = trained(accumulate=3, model_state=STATE)
    assert trainer.model_state.keys() == STATE.keys()
    (mean,) = [name for name in STATE if name.endswith("running_mean")]
    one = Trainer(loss_fn, PARAMS, SGD(0.0), accumulate=3, order="tree", model_state=STATE, seed=4)
    one.fit(BATCHES[:3], steps=1)
    alone = list[Array]()
    for k in range(3):
        single = Trainer(loss_fn, PARAMS, SGD(0.0), model_state=STATE)
        single.fit(BATCHES[k : k + 1], steps=1)
        alone.append(single.model_state[mean])
    assert one.model_state[mean].tobytes() == (((alone[0] + alone[1]) + alone[2]) / np.float32(3)).tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_a_state_that_has_no_mean_is_refused_by_name(mode: StepMode) -> None:
    def counting(p: Any, x: Any, ctx: Any) -> Any:
        ctx.update("calls", ops.cast(ops.cast(ctx.state["calls"], "float64") + 1.0, "int64"))
        return ops.reduce_sum(p["w"] * x), ctx.state

    params, state = {"w": np.ones(2)}, {"calls": np.array(0)}
    for m in (1, 2):
        trainer = Trainer(counting, params, SGD(0.1), mode=mode, accumulate=m, order="tree", model_state=state)
        with pytest.raises(DomainError) as error:
            trainer.fit([np.ones(2)] * 2, steps=1)
        assert str(error.value) == (
            "order='tree': model state 'calls': expected float32 or float64, as it becomes the mean over the "
            "micro-batches, got int64; keep it in floats, or use order='chain'"
        )


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_other_parameters_in_another_micro_batch_are_refused(mode: StepMode) -> None:
    def routed(p: Any, batch: Any) -> Any:
        return ops.reduce_sum(p[next(iter(batch))] * next(iter(batch.values())))

    params = {"a": np.ones(2), "b": np.ones(2)}
    trainer = Trainer(routed, params, SGD(0.1), mode=mode, accumulate=2, order="tree")
    with pytest.raises(DomainError) as error:
        trainer.fit([{"a": np.ones(2)}, {"b": np.ones(2)}])
    assert str(error.value) == (
        "order='tree': micro-batch 1: expected gradients of the parameters 'a' as in the one before, got 'b'; let the "
        "loss of each depend on the same ones, or use order='chain'"
    )


def test_another_word_is_refused() -> None:
    with pytest.raises(DomainError, match="^order: expected 'chain' or 'tree', got 'ring'$"):
        Recipe(SGD(0.1), 2, order="ring")  # type: ignore[arg-type]


def test_a_trace_says_the_order_and_replay_follows_it(tmp_path: Path) -> None:
    path = tmp_path / "tree.dgrr"
    trained(trace=Keep(path, ops="first"))
    assert validate(path).ok
    with open_trace(path) as trace:
        assert [(view.micro_batches, view.order) for view in trace] == [(5, "tree")] * 3
        facts = {fact.name: fact for fact in step_facts(trace, trace[0])}
        assert facts["micro_batches"].text == "  micro-batches 5, added in a tree"
        assert facts["order"].value == "tree"
    report = replay(path, loss_fn=loss_fn, batches=BATCHES)
    assert report.ok and (report.update, report.gradient, report.data) == ("proven",) * 3, report
    assert str(report).endswith("\n  the 5 micro-batches of a step were added in a tree")
    chain = tmp_path / "chain.dgrr"
    trained(order="chain", trace=chain)
    assert replay(chain).notes == []
    with open_trace(chain) as trace:
        assert {view.order for view in trace} == {"chain"}
    found = compare(path, chain)
    assert found.step == 0 and found.settings["order"] == ("tree", "chain"), found
    assert found.cause is not None and found.cause.value == "rule"
    assert "order: tree -> chain" in str(found)


def test_a_run_goes_on_from_a_past_step_in_its_order(tmp_path: Path) -> None:
    whole = trained(trace=tmp_path / "tree.dgrr")
    past = at(tmp_path / "tree.dgrr", 1, loss_fn, BATCHES)
    assert past.continue_with(steps=2).state_digest == digest(whole)


def test_a_captured_tree_keeps_few_sums() -> None:
    """What the plan of a step needs grows with the depth of the tree, not with the micro-batches."""

    def wide(p: Any, x: Any) -> Any:
        return ops.reduce_sum(ops.tanh(p["w"] * x))

    def arena(count: int) -> int:
        batch = (np.ones(1 << 12),) * count
        step = capture(wide, {"w": np.ones(1 << 12)}, SGD(0.1), batch, accumulate=count, order="tree")
        return step.plan.arena_bytes

    two, thirty_two = arena(2), arena(32)
    assert thirty_two - two <= 5 * 8 * (1 << 12), "a sum for each level"


def test_a_trace_of_single_batches_is_the_same_in_both_orders(tmp_path: Path) -> None:
    for order in ("chain", "tree"):
        trained(order=order, accumulate=1, trace=tmp_path / order)
    found = compare(tmp_path / "chain", tmp_path / "tree")
    assert found.same, found


def test_a_trace_of_the_other_order_does_not_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lie.dgrr"
    with monkeypatch.context() as lying:
        for module in (prepared_front, scalar_names):
            lying.setattr(module, "step_flags", lambda **_: StepFlag(0))
        trained(trace=path)
    report = replay(path, loss_fn=loss_fn, batches=BATCHES)
    assert not report.ok and report.gradient == "failed"


def test_a_checkpoint_of_the_other_order_is_refused(tmp_path: Path) -> None:
    trained(checkpoint=tmp_path / "tree.ckpt")
    chain = Trainer(loss_fn, PARAMS, Adam(0.02), accumulate=5, model_state=STATE, seed=4)
    with pytest.raises(CheckpointError, match="order: it was saved with tree, this run has None"):
        chain.load(tmp_path / "tree.ckpt")


def test_what_is_captured_is_still_looked_at_again() -> None:
    scale = [1.0]

    def changing(p: Any, x: Any) -> Any:
        return ops.reduce_sum(p["w"] * x) * scale[0]

    trainer = Trainer(changing, {"w": np.ones(2)}, SGD(0.1), accumulate=2, order="tree")
    trainer.fit([np.ones(2)] * 2)
    scale[0] = 2.0
    with pytest.raises(CaptureError):
        trainer.fit([np.ones(2)] * 2)
