"""A trace bisected against the model as it is now: what is computed, what is found, and what is claimed of it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Keep, Trainer
from dgrr.tape import ops
from dgrr.trace import (
    Cause,
    CompletedStep,
    NotRecordedError,
    Run,
    Verdict,
    bisect_with_model,
    diff_with_model,
    open_recorder,
    open_trace,
)
from dgrr.trace.comparing import bisect_model
from dgrr.trace.comparing.bisect_model import parts_of, search, spread
from dgrr.trace.replaying.execution import Execution
from dgrr.trace.v2.repair.rollback import rollback_v2
from dgrr.trace.v2.write.recorder import TraceRecorder

from ...keeping import recorder_of

STEPS, EVERY = 64, 4
"""A run of 16 parts."""

Parts = list[tuple[int, int]]


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((4, 3)), rng.standard_normal((4, 2))) for _ in range(3)]


def loss_fn(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"], p["b"]), batch[1])


def with_state(p: Any, batch: Any, ctx: Any) -> Any:
    ctx.update("mean", ctx.state["mean"] * 0.75)
    return loss_fn(p, batch), ctx.state


class Keyframes:
    """Makes the recorder of a trainer, with a keyframe every four steps."""

    def __init__(self, path: Path, **kept: Any) -> None:
        self.path, self.kept = path, kept

    def open_recorder(self, run: Run) -> TraceRecorder:
        return open_recorder(Keep(self.path, **{"keyframe_every": EVERY, **self.kept}), run)


Train = Callable[..., Path]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    def run(loss_fn: Callable[..., Any] = loss_fn, *, steps: int = STEPS, **options: Any) -> Path:
        names = ("record", "state_every", "ops", "keyframe_every", "digest")
        made = Keyframes(tmp_path / "t", **{name: options.pop(name) for name in names if name in options})
        params = {"w": np.full((2, 3), 0.1), "b": np.zeros(2)}
        options = {"mode": "eager", "optimizer": SGD(0.01, momentum=0.9)} | options
        Trainer(loss_fn, params, options.pop("optimizer"), trace=made, **options).fit(
            batches(), steps=steps, progress=False
        )
        return tmp_path / "t"

    return run


class Now:
    """What computes now: otherwise at the steps that are `wrong`. `computed` are the steps that it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong: Callable[[int], bool] = lambda step: False
        self.computed = list[int]()
        real = Execution.compute

        def compute(execution: Any, view: Any, *more: Any) -> Any:
            self.computed.append(view.step)
            made = real(execution, view, *more)
            if not self.wrong(view.step):
                return made
            return replace(made, grads={**made.grads, "b": np.nextafter(made.grads["b"], np.inf)})

        monkeypatch.setattr(Execution, "compute", compute)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    return Now(monkeypatch)


# ------------------------------------------------------------------ what is computed and found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"record": "digest", "optimizer": Adam(1e-2)},
        {"record": "full", "digest": "sha256"},
        {"record": "digest", "state_every": 2},
        {"clip_norm": 0.125},
        {"clip_value": 0.0625},
        {"accumulate": 2, "steps": 9},
        {"seed": 5},
        {"steps": 3},
        {"keyframe_every": 4096},
    ],
)
def test_the_same_model(train: Train, now: Now, options: dict[str, Any]) -> None:
    path = train(**options)
    found = bisect_with_model(path, loss_fn, batches(), mode="eager")
    steps = options.get("steps", STEPS)
    assert (found.same, found.sentence, found.uncomputed) == (True, f"equal to the bit: {steps} steps", []), found
    assert sorted(now.computed) == list(range(steps))
    parts = 1 if "keyframe_every" in options else -(-steps // EVERY)
    assert found.notes == [f"every step was computed, in parts from {parts} recorded states"]
    assert (found.a, found.b) == (str(path), "loss_fn, computed now")


def test_a_model_with_a_state(train: Train) -> None:
    path = train(with_state, model_state={"mean": np.ones(3)}, record="digest")
    assert bisect_with_model(path, with_state, batches()).same


def test_what_differs_always_is_found_at_the_first_step(train: Train, now: Now) -> None:
    path = train(record="digest")
    found = bisect_with_model(path, lambda p, batch: loss_fn(p, batch) * 2, batches())
    assert now.computed == [0]
    assert (found.verdict, found.cause, found.step, found.uncomputed) == (Verdict.DIVERGED, Cause.GRADIENT, 0, [])
    assert found.sentence.startswith("step 0 is the first that differs: from equal state and data it computes")
    assert "every step before it was computed, and agrees" in found.notes


@pytest.mark.parametrize("first", [1, 4, 6, 17, 31, 32, 50, 60, 63])
def test_what_differs_from_a_step_on_is_found_in_log_many_parts(train: Train, now: Now, first: int) -> None:
    path = train(record="digest")
    now.wrong = lambda step: step >= first
    found = bisect_with_model(path, loss_fn, batches())
    assert (found.cause, found.step, found.tensors[0].title) == (Cause.GRADIENT, first, "gradient of 'b'")
    parts = {step // EVERY for step in now.computed}
    assert len(parts) <= log2(STEPS / EVERY) + 2
    assert len(now.computed) == len(set(now.computed))  # none twice
    left = sorted(set(range(first)) - set(now.computed))
    assert [k for low, high in found.uncomputed for k in range(low, high + 1)] == left
    since = left[-1] + 1 if left else 0
    assert {since, first} <= {0, *now.computed}
    begun = f"step {first} is the first that differs: "
    assert found.sentence.startswith(f"from step {since} on, {begun}" if left else begun)
    assert ("not computed" in found.notes[-1]) == bool(left)


@pytest.mark.parametrize("only", [0, 3, 9, 30, 41, 63])
def test_what_differs_at_a_single_step_is_found(train: Train, now: Now, only: int) -> None:
    path = train(record="digest")
    now.wrong = lambda step: step == only
    found = bisect_with_model(path, loss_fn, batches())
    assert (found.verdict, found.step) == (Verdict.DIVERGED, only)


def test_no_step_is_called_the_first_while_one_before_it_is_not_computed(train: Train, now: Now) -> None:
    """Steps 21 and 63 differ: the last part is computed early, and the parts that are bisected hide step 21."""
    path = train(record="digest")
    now.wrong = lambda step: step in (21, 63)
    found = bisect_with_model(path, loss_fn, batches())
    assert found.step == 63
    assert found.uncomputed == [(4, 27), (32, 43), (48, 51)]
    assert found.sentence.startswith("from step 52 on, step 63 is the first that differs: ")
    assert found.notes[-1].startswith("not computed, and so perhaps different too: steps 4 to 27, 32 to 43, 48 to 51 (")
    assert found.to_dict()["uncomputed"] == [list(pair) for pair in found.uncomputed]
    assert diff_with_model(path, loss_fn, batches(), mode="eager").step == 21  # in order, to the first


def test_the_op_is_named_where_ops_are_recorded(train: Train) -> None:
    def model(activation: Any) -> Callable[..., Any]:
        return lambda p, batch: ops.mse_loss(activation(ops.linear(batch[0], p["w"], p["b"])), batch[1])

    path = train(model(ops.tanh), ops="every", steps=8)
    found = bisect_with_model(path, model(ops.sigmoid), batches())
    assert (found.cause, found.step, found.op and found.op.node.op) == (Cause.MODEL, 0, "sigmoid")
    path.unlink()

    def scaled(by: list[float]) -> Callable[..., Any]:
        return lambda p, batch: loss_fn(p, batch) * batch[0].tape.const(np.float64(by.pop(0)))

    path = train(scaled([1.0] * 99), ops="every", steps=8)
    found = bisect_with_model(path, scaled([1.0] * 6 + [2.0]), batches())  # steps 0 to 3, then 4, 5, 6
    assert (found.cause, found.step, found.op and (found.op.what, found.op.node.op)) == (
        Cause.GRADIENT,
        6,
        ("value", "leaf"),
    )
    assert found.tensors[0].title == "loss"
    assert found.tensors[0].recorded


def test_elements_of_a_part_are_shown_as_those_of_the_run(train: Train, now: Now) -> None:
    path = train(record="full")
    now.wrong = lambda step: step >= 6
    found = bisect_with_model(path, loss_fn, batches())
    assert (found.step, found.tensors[0].title, found.tensors[0].differing) == (6, "gradient of 'b'", 2)
    assert found.tensors[0].worst[0].ulp == 1
    assert found.losses is None  # of what is computed there is no curve
    assert found.settings == {}


def test_other_batches(train: Train) -> None:
    path = train(record="digest", steps=9)
    changed = batches()
    changed[2][0][0, 0] += 1
    found = bisect_with_model(path, loss_fn, changed)
    assert (found.cause, found.step) == (Cause.DATA, 2)
    changed = batches() + batches() + batches()
    changed[7][0][0, 0] += 1
    found = bisect_with_model(path, loss_fn, changed)
    assert (found.cause, found.step) == (Cause.DATA, 7)
    found = bisect_with_model(path, loss_fn, [])
    assert (found.cause, found.step) == (Cause.DATA, 0)
    assert found.sentence.startswith(
        "step 0 is the first that differs: there are no more batches; pass those of the run"
    )


def test_what_is_not_finite_now(train: Train) -> None:
    path = train(record="digest", steps=9)
    found = bisect_with_model(path, lambda p, batch: loss_fn(p, batch) * float("nan"), batches())
    assert (found.cause, found.step) == (Cause.GRADIENT, 0)
    assert found.sentence == "step 0 is the first that differs: computed now, 'loss' is not finite"


# ------------------------------------------------------------------ what is in the way


def test_another_numerics_version_computes_nothing(train: Train, now: Now, monkeypatch: pytest.MonkeyPatch) -> None:
    path = train(steps=5)
    monkeypatch.setattr(bisect_model, "NUMERICS", 99)
    found = bisect_with_model(path, loss_fn, batches())
    assert (found.verdict, found.cause, now.computed) == (Verdict.NUMERICS, Cause.NUMERICS, [])
    assert found.sentence.endswith(
        "and 99 promise no equal bits: compare with a tolerance, or record again; nothing was computed"
    )


def test_batches_that_cannot_be_iterated_again(train: Train) -> None:
    path = train(steps=1)
    expected = (
        "^bisect_with_model: batches: expected an iterable for several passes, such as a list, got a list_iterator$"
    )
    with pytest.raises(ValueError, match=expected):
        bisect_with_model(path, loss_fn, iter(batches()))
    with pytest.raises(ValueError, match="expected classes of rules"):
        bisect_with_model(path, loss_fn, batches(), rules=[Adam(1e-2)])  # type: ignore[list-item]


def test_a_trace_without_states(train: Train) -> None:
    path = train(record="bare", steps=5)
    expected = r"^bisect_with_model: the trace holds no states to start from: use diff_with_model\(…, params=…\)"
    with pytest.raises(NotRecordedError, match=expected):
        bisect_with_model(path, loss_fn, batches())


def test_files_that_say_too_little(train: Train, tmp_path: Path) -> None:
    assert bisect_with_model(tmp_path / "none", loss_fn, batches()).verdict is Verdict.IO
    path = train(steps=9)
    rollback_v2(path, 0, tmp_path / "empty")
    assert (
        "no step is recorded: nothing was computed" in bisect_with_model(tmp_path / "empty", loss_fn, batches()).notes
    )
    (tmp_path / "torn").write_bytes(path.read_bytes()[:-300])
    found = bisect_with_model(tmp_path / "torn", loss_fn, batches())
    assert found.same
    assert found.notes[0].startswith("a is damaged after step ")


def test_a_state_that_is_damaged_is_the_verdict(train: Train, tmp_path: Path) -> None:
    path = train(steps=9, record="digest")
    with open_trace(path) as trace:
        state = trace.keyframe(4)["w"].tobytes()
    data = bytearray(path.read_bytes())
    data[data.rindex(state) + 3] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    found = bisect_with_model(tmp_path / "damaged", loss_fn, batches())
    assert (found.verdict, str(tmp_path / "damaged") in found.sentence) == (Verdict.CORRUPT, True), found


def test_links_that_lie(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    path = train(steps=9)
    real = TraceRecorder.link_behind
    monkeypatch.setattr(TraceRecorder, "link_behind", lambda self, p, k: b"" if k == 6 else real(self, p, k))
    found = bisect_with_model(path, loss_fn, batches())
    assert (found.verdict, found.cause) == (Verdict.CHAIN, None)
    assert found.sentence.startswith("the link of step 6 is not that of what it links: ")


def test_link_behind_needs_a_step(tmp_path: Path) -> None:
    law: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1}
    start: dict[str, Any] = {"params": {"w": np.ones(2)}, "state": {"step": np.array(0)}}
    with recorder_of(tmp_path / "u", **start, **law) as recorder:
        begun = recorder.link
        with pytest.raises(ValueError, match="^recorder.link_behind: expected a step to be recorded before$"):
            recorder.link_behind(b"", 3)
        told: dict[str, Any] = {"loss": np.array(1.0), "hyper": {"lr": 0.1}, "grads": {"w": np.ones(2)}}
        recorder.step(CompletedStep(step=0, **told, **start, batch=np.ones(1)))
        assert recorder.link_behind(begun, 0) == recorder.link
        assert recorder.link_behind(begun, 1) != recorder.link


# ------------------------------------------------------------------ the order


def test_parts_begin_at_keyframes(train: Train) -> None:
    with open_trace(train(steps=10)) as trace:
        assert parts_of(trace) == [range(4), range(4, 8), range(8, 10)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 100])
def test_every_part_is_asked_for_once(count: int) -> None:
    assert sorted(spread(count)) == list(range(count))
    for first in range(count):
        asked: list[int] = []
        assert search(count, partial(_agrees, asked, first)) == first
        assert len(asked) == len(set(asked)) <= log2(count) + 3


def _agrees(asked: list[int], first: int, part: int) -> bool:
    asked.append(part)
    return part < first
