"""Runs whose model keeps a state and draws: recorded, replayed, re-executed, resumed, forged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Trainer
from dgrr.tape import ops
from dgrr.trace import open_trace, replay, validate
from dgrr.trace.replaying.replay_state import state_after
from dgrr.trace.v2.verdict import Verdict

PARAMS = {"w": np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]], np.float32)}
STATE = {"mean": np.zeros(3, np.float32), "calls": np.zeros(2)}
RNG = np.random.default_rng(3)
BATCHES = [
    (RNG.standard_normal((4, 3)).astype(np.float32), RNG.standard_normal((4, 2)).astype(np.float32)) for _ in range(6)
]


def loss_fn(p: Any, batch: Any, ctx: Any, momentum: float = 0.25) -> Any:
    x, target = batch
    ctx.update("mean", ctx.state["mean"] * 0.75 + ops.reduce_mean(x, 0) * momentum)
    ctx.update("calls", ctx.state["calls"] + 1.0)
    x = ctx.random.dropout(x - ctx.state["mean"], 0.5)
    return ops.mse_loss(ops.linear(x, p["w"]), target), ctx.state


def forgetful(p: Any, batch: Any, ctx: Any) -> Any:
    """The same loss and gradients up to the state: it takes the mean in, but slower."""
    loss, state = loss_fn(p, batch, ctx)
    return loss, {**state, "calls": state["calls"] + 1.0}


def trainer(path: Path | None, **options: Any) -> Trainer:
    return Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE, seed=11, trace=path, **options)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("record", ["grads", "digest"])
def test_a_recorded_run_is_proved(tmp_path: Path, record: Any, accumulate: int) -> None:
    path = tmp_path / "run.dgrr"
    run = trainer(path, record=record, accumulate=accumulate)
    run.fit(BATCHES, epochs=2, progress=False)
    assert validate(path).ok
    report = replay(path, loss_fn=loss_fn, batches=BATCHES)
    assert report.ok, str(report)
    assert (report.update, report.gradient, report.data) == ("proven",) * 3
    with open_trace(path) as trace:
        assert [t.name for t in trace.schema.tensors][-2:] == ["mean", "calls"]
        assert trace.schema.buffers == 2
        assert len(trace[0].buffer_digests) == 2
    if record == "grads":
        assert replay(path).ok
        after = state_after(path, 12 // accumulate - 1)
        for name, array in {**run.params, **run.state, **run.model_state}.items():
            assert after[name].tobytes() == array.tobytes()


def test_values_of_buffers_are_read_back(tmp_path: Path) -> None:
    run = trainer(tmp_path / "run.dgrr")
    run.fit(BATCHES, progress=False)
    with open_trace(tmp_path / "run.dgrr") as trace:
        assert [trace.tensor("calls", step=k, what="after").tolist() for k in range(6)] == [
            [k + 1.0, k + 1.0] for k in range(6)
        ]


def test_a_model_that_makes_another_state_is_found(tmp_path: Path) -> None:
    path = tmp_path / "run.dgrr"
    trainer(path).fit(BATCHES, progress=False)
    report = replay(path, loss_fn=forgetful, batches=BATCHES)
    (finding,) = report.findings
    assert (finding.verdict, finding.step, finding.tensor) == (Verdict.GRADIENT, 0, "calls")
    assert finding.text.startswith("re-execution gives another state of the model; element [0]: recorded 1.0")


def test_in_a_trace_of_digests_too(tmp_path: Path) -> None:
    path = tmp_path / "run.dgrr"
    trainer(path, record="digest").fit(BATCHES, progress=False)
    (finding,) = replay(path, loss_fn=forgetful, batches=BATCHES).findings
    assert (finding.verdict, finding.step, finding.tensor) == (Verdict.GRADIENT, 0, "calls")
    assert finding.text == "re-execution gives another state of the model; element and values: not recorded"


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    """The seed in the header keys the draws: a trace that claims another one fails re-execution."""
    path = tmp_path / "run.dgrr"
    Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE, seed=12, trace=path).fit(BATCHES, progress=False)
    assert replay(path, loss_fn=loss_fn, batches=BATCHES).ok
    with open_trace(path) as trace:
        assert trace.header.seed == 12
    links = []
    for seed in (11, 12):
        name = tmp_path / f"{seed}.dgrr"
        Trainer(loss_fn, PARAMS, Adam(1e-2), model_state=STATE, seed=seed, trace=name).fit(BATCHES, progress=False)
        with open_trace(name) as trace:
            links.append(trace[-1].link)
    assert links[0] != links[1]


class Stopping:
    """Ctrl-C after step 7."""

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool:
        if step == 7:
            raise KeyboardInterrupt
        return False

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool:
        return False

    def on_end(self, trainer: Trainer, result: Any) -> None: ...


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole.dgrr").fit(BATCHES, epochs=2, progress=False)

    files = {"checkpoint": tmp_path / "c.npz", "checkpoint_every": 3}
    first = trainer(tmp_path / "run.dgrr", callbacks=[Stopping()], **files)
    with pytest.raises(KeyboardInterrupt):
        first.fit(BATCHES, epochs=2, progress=False)
    second = trainer(tmp_path / "run.dgrr", **files)
    second.load(tmp_path / "c.npz")
    assert second.steps == 6
    assert second.model_state["calls"].tolist() == [6.0, 6.0]
    result = second.fit(BATCHES, epochs=2, progress=False)
    assert result.state_digest == whole.state_digest
    with open_trace(tmp_path / "whole.dgrr") as one, open_trace(tmp_path / "run.dgrr") as other:
        assert [view.link for view in one] == [view.link for view in other]
