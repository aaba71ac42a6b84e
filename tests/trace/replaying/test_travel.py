"""Every past step is rebuilt to the bit, from every record mode; what is another one is named."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Keep, Trainer
from dgrr.runtime.ir.step_tape import tape_of
from dgrr.runtime.optim import StepDecay, ops_rule
from dgrr.tape import NUMERICS, DomainError, nn, ops
from dgrr.trace import (
    CompletedStep,
    InvalidTraceError,
    NotRecordedError,
    RebuildError,
    Run,
    TraceRecorder,
    Verdict,
    at,
    open_recorder,
    open_trace,
)
from dgrr.trace.replaying import travel
from dgrr.trace.v2.read.reader import TraceReader
from dgrr.trace.v2.repair.forge import forge_gradient

from ...keeping import kept

MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.ReLU(), nn.Dropout(0.25), nn.Linear(4, 2))
RNG = np.random.default_rng(5)
BATCHES = [
    (RNG.standard_normal((6, 3)).astype(np.float32), RNG.standard_normal((6, 2)).astype(np.float32)) for _ in range(5)
]
STEPS = 7
"""Of two micro-batches: five batches are two steps and a rest that is left out, so four epochs."""

MODES = ("digest", "grads", "full")
ANEW = "pass those of the run from its beginning, freshly made if they can be iterated only once"


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    x, target = batch
    noisy = x + ctx.random.normal(x.shape, np.float32) * 0.125
    return ops.mse_loss(MODEL(p, noisy, ctx), target), ctx.state


class Watched:
    """The loss function, and how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, p: Any, batch: Any, ctx: Any) -> Any:
        self.calls += 1
        return loss_fn(p, batch, ctx)


class Kept:
    """A run: its trace, every step as the trainer had it, and the states before them and at the end."""

    def __init__(self, path: Path, mode: Any, keyframe_every: int = 3, **options: Any) -> None:
        self.path = path
        self.options: dict[str, Any] = {"record": mode, "keyframe_every": keyframe_every, **options}
        self.before: list[dict[str, Any]] = []
        self.done: list[CompletedStep] = []

    def open_recorder(self, run: Run) -> Any:
        self.keep(run.params, run.state, run.model_state)
        return Keeping(self, open_recorder(Keep(self.path, **self.options), run))

    def keep(self, params: Any, state: Any, model_state: Any) -> None:
        self.before.append(deepcopy({"params": params, "state": state, "model_state": model_state}))


class Keeping:
    """Records the steps of a run, and keeps them."""

    def __init__(self, run: Kept, recorder: TraceRecorder) -> None:
        self.run, self.recorder = run, recorder

    def wants_tape(self, step: int) -> bool:
        return True

    def step(self, done: CompletedStep) -> None:
        self.recorder.step(done)
        self.run.keep(done.params, done.state, done.model_state)
        self.run.done.append(deepcopy(done))

    def commit(self) -> None:
        self.recorder.commit()

    def seal(self) -> None:
        self.recorder.seal()

    def close(self) -> None:
        self.recorder.close()


def train(path: Path, mode: str, **options: Any) -> Kept:
    """A run with everything in it: micro-batches, clipping, dropout, noise, a state of the model, a schedule."""
    kept = Kept(path, mode, **options)
    recipe: dict[str, Any] = {"accumulate": 2, "clip_norm": 0.5, "clip_value": 0.25, "seed": 9}
    rule = Adam(StepDecay(1e-2, every=2, factor=0.5))
    Trainer(loss_fn, MODEL.init(seed=1), rule, model_state=MODEL.init_state(), trace=kept, mode="eager", **recipe).fit(
        BATCHES, steps=STEPS, progress=False
    )
    return kept


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    folder = tmp_path_factory.mktemp("runs")
    return {mode: train(folder / f"{mode}.dgrr", mode) for mode in MODES}


def raw(arrays: Any) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(a.dtype), a.shape, a.tobytes()) for name, a in arrays.items()}


def bits(arrays: Any) -> list[bytes | None]:
    return [None if a is None else a.tobytes() for a in arrays]


# ------------------------------------------------------------------ what is rebuilt


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("mode", MODES)
def test_every_step_is_what_training_had(runs: dict[str, Kept], mode: str, step: int) -> None:
    """Every value and every gradient of every node, by a second account: the tapes that the trainer handed over."""
    run = runs[mode]
    past, done = at(run.path, step, loss_fn, BATCHES), run.done[step]
    made = tape_of(past.passes, past.params)
    assert done.tape is not None and len(made.values) > 20
    assert made.nodes == done.tape.nodes
    assert bits(made.values) == bits(done.tape.values)
    assert bits(made.grads) == bits(done.tape.grads)
    assert raw(past.consumed) == raw(done.grads)
    assert past.loss.tobytes() == done.loss.tobytes()
    for part, arrays in run.before[step].items():
        assert raw(getattr(past, part)) == raw(arrays), part
    assert (past.step, past.keyframe, len(past.tapes)) == (step, step // 3 * 3, 2)


def test_the_runs_use_what_they_are_about(runs: dict[str, Kept]) -> None:
    """Clipping and the schedule did something, or their being rebuilt would say nothing."""
    done = runs["digest"].done
    assert all(one.clip is not None and one.clip[1] < 1 for one in done)
    assert len({one.hyper["lr"] for one in done}) == 4
    state = runs["digest"].before
    assert len({one["model_state"]["1.running_mean"].tobytes() for one in state}) == STEPS + 1


@pytest.mark.long
def test_states_that_are_not_digested_after_every_step(tmp_path: Path) -> None:
    run = train(tmp_path / "t", "digest", state_every=2)
    for step, keyframe in [(3, 0), (4, 4), (5, 4)]:
        past = at(run.path, step, loss_fn, BATCHES)
        assert past.keyframe == keyframe, "three, rounded up to a multiple of two"
        assert raw(past.params) == raw(run.before[step]["params"])


def test_a_run_that_was_cut_off(runs: dict[str, Kept], tmp_path: Path) -> None:
    with open_trace(runs["digest"].path) as whole:
        assert len(whole) == STEPS
    (tmp_path / "torn").write_bytes(runs["digest"].path.read_bytes()[:-700])
    with open_trace(tmp_path / "torn", mode="tolerate_tail") as torn:
        last = len(torn) - 1
    assert 0 < last < STEPS - 1
    assert raw(at(tmp_path / "torn", last, loss_fn, BATCHES).consumed) == raw(runs["digest"].done[last].grads)


def test_an_open_trace_and_steps_from_the_end(runs: dict[str, Kept]) -> None:
    with open_trace(runs["digest"].path) as trace:
        past = trace.at(-1, loss_fn, BATCHES)
        assert past.step == STEPS - 1
        assert raw(at(trace, 6, loss_fn, BATCHES).consumed) == raw(past.consumed)
        assert trace[0].step == 0, "it is still open"


def test_every_view_opens(runs: dict[str, Kept]) -> None:
    past = at(runs["digest"].path, 4, loss_fn, BATCHES)
    assert past.tape is past.tapes[0] is past.passes[0].tape
    weight = past.grads["0.weight"]
    assert weight is not None and weight.numpy().tobytes() == past.passes[0].grads["0.weight"].tobytes()
    assert len(past.grads.table(name="0.weight")) == 1
    assert past.tape.explain("0.weight", past.grads).title.startswith("from node 0 (leaf '0.weight')")
    assert past.tape.to_dot(past.grads).startswith("digraph")
    assert repr(past) == (
        f"<step 4 of {runs['digest'].path} before its update: loss {past.loss}, {len(past.tape)} nodes, "
        "2 micro-batches; look at .table(), .tape, .grads, .params, .state, .model_state>"
    )


@pytest.mark.parametrize("micro_batch", [0, 1])
def test_the_table_has_every_node(runs: dict[str, Kept], micro_batch: int) -> None:
    past = at(runs["grads"].path, 1, loss_fn, BATCHES)
    table, tape = past.table(micro_batch), past.tapes[micro_batch]
    assert [row["id"] for row in table] == list(range(len(tape)))
    (row,) = [row for row in table if row["name"] == "0.weight"]
    grad = past.passes[micro_batch].grads["0.weight"]
    assert row["gradient norm"] == pytest.approx(np.linalg.norm(grad.astype(np.float64)))
    assert row["value norm"] == pytest.approx(np.linalg.norm(past.params["0.weight"].astype(np.float64)))
    assert {row["gradient norm"] for row in table if row["name"] == "step"} == {None}
    assert str(table).splitlines()[0].strip() == "step 1: values and gradients"


# ------------------------------------------------------------------ what is computed


@pytest.mark.parametrize(
    ("mode", "computed"), [("digest", [0, 1, 2, 0, 1, 2, 0]), ("grads", [0] * 7), ("full", [0] * 7)]
)
def test_only_steps_behind_the_keyframe_are_computed(runs: dict[str, Kept], mode: str, computed: list[int]) -> None:
    """From a trace with gradients no step but the one that is asked for."""
    for step, others in enumerate(computed):
        watched = Watched()
        at(runs[mode].path, step, watched, BATCHES, mode="eager")
        assert watched.calls == 2 * (others + 1), step


def test_batches_are_read_up_to_the_step(runs: dict[str, Kept]) -> None:
    read = list[int]()

    class Reading:
        def __iter__(self) -> Iterator[Any]:
            for number, batch in enumerate(BATCHES):
                read.append(number)
                yield batch

    at(runs["digest"].path, 4, loss_fn, Reading())
    assert read == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1], "three epochs, of two steps each"


def test_keyframe_every_of_a_trainer(tmp_path: Path) -> None:
    def quick(p: Any, x: Any) -> Any:
        return (p["w"] * x).sum()

    def fit(name: str, **options: Any) -> Path:
        rule, path = SGD(0.5), tmp_path / name
        run = Trainer(quick, {"w": np.ones(2)}, rule, mode="eager", **kept(path, {"record": "digest", **options}))
        run.fit([np.ones(2)], steps=9, progress=False)
        return path

    for name, options, expected in [("few", {"keyframe_every": 4}, [0, 4, 8]), ("none", {}, [0])]:
        with open_trace(fit(name, **options)) as trace:
            assert [step for step in range(10) if trace.has_keyframe(step)] == expected
    assert at(tmp_path / "few", 7, quick, [np.ones(2)]).keyframe == 4


def test_a_resumed_run_keeps_its_keyframes(tmp_path: Path) -> None:
    def quick(p: Any, x: Any) -> Any:
        return (p["w"] * x).sum()

    def stop(trainer: Trainer, epoch: int, loss: float) -> bool:
        if epoch == 4:
            raise KeyboardInterrupt
        return False

    def trainer(*callbacks: Any) -> Trainer:
        files: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 3}
        options: dict[str, Any] = {"keyframe_every": 4, "mode": "eager", "record": "digest", "callbacks": callbacks}
        return Trainer(quick, {"w": np.ones(2)}, SGD(0.5), **files, **kept(tmp_path / "t", options))

    with pytest.raises(KeyboardInterrupt):
        trainer(stop).fit([np.ones(2)], epochs=9, progress=False)
    second = trainer()
    second.load(tmp_path / "c")
    second.fit([np.ones(2)], epochs=9, progress=False)
    with open_trace(tmp_path / "t") as trace:
        assert [step for step in range(10) if trace.has_keyframe(step)] == [0, 4, 8]
    assert at(tmp_path / "t", 7, quick, [np.ones(2)]).keyframe == 4


@pytest.mark.parametrize("given", [0, -1, 1.5])
def test_keyframe_every_is_a_number_of_steps(given: Any) -> None:
    with pytest.raises(DomainError) as caught:
        Keep("t", keyframe_every=given)
    expected = "expected a whole number of at least 1, or a timedelta above 0"
    assert str(caught.value) == f"Keep: argument 'keyframe_every': {expected}, got {given!r}"


# ------------------------------------------------------------------ what is another one


def refused(*args: Any, **options: Any) -> RebuildError:
    with pytest.raises(RebuildError) as caught:
        at(*args, **options)
    assert str(caught.value) == f"trace.at: {caught.value.finding}"
    return caught.value


@pytest.mark.parametrize(("step", "first"), [(0, 0), (2, 0), (5, 3)])
def test_another_batch(runs: dict[str, Kept], step: int, first: int) -> None:
    error = refused(runs["digest"].path, step, loss_fn, BATCHES[::-1])
    assert str(error) == f"trace.at: data: step {first}: the batch is not the one that was recorded; {ANEW}"
    assert (error.finding.verdict, error.finding.step) == (Verdict.DATA, first)


def test_another_batch_after_the_right_one(runs: dict[str, Kept]) -> None:
    error = refused(runs["digest"].path, 1, loss_fn, [*BATCHES[:2], *BATCHES[:3]])
    assert str(error) == "trace.at: data: step 1: the batch is not the one that was recorded"


@pytest.mark.parametrize("mode", ["digest", "grads"])
def test_batches_that_end(runs: dict[str, Kept], mode: str) -> None:
    error = refused(runs[mode].path, 2, loss_fn, iter(BATCHES))
    assert str(error) == f"trace.at: data: step 2: there are no more batches; {ANEW}"


def test_another_model(runs: dict[str, Kept]) -> None:
    def other(p: Any, batch: Any, ctx: Any) -> Any:
        loss, state = loss_fn(p, batch, ctx)
        return loss * 2.0, state

    for mode, first in [("digest", 3), ("grads", 4)]:
        error = refused(runs[mode].path, 4, other, BATCHES)
        assert (error.finding.verdict, error.finding.step, error.finding.tensor) == (Verdict.GRADIENT, first, "loss")


def test_another_gradient_names_the_tensor(runs: dict[str, Kept], tmp_path: Path) -> None:
    forge_gradient(runs["digest"].path, tmp_path / "forged", 4, "4.weight")
    error = refused(tmp_path / "forged", 5, loss_fn, BATCHES)
    expected = "re-execution gives another gradient; element and values: not recorded"
    assert str(error) == f"trace.at: gradient: step 4, '4.weight': {expected}"
    assert raw(at(tmp_path / "forged", 3, loss_fn, BATCHES).consumed) == raw(runs["digest"].done[3].grads)


def test_gradients_that_make_another_state(runs: dict[str, Kept], tmp_path: Path) -> None:
    """A forged gradient that is recorded is not executed again on the way; the state that it makes is another one."""
    forge_gradient(runs["grads"].path, tmp_path / "forged", 3, "4.weight")
    error = refused(tmp_path / "forged", 5, loss_fn, BATCHES)
    expected = "the state rebuilt from the keyframe before step 3 is another one"
    assert str(error) == f"trace.at: update: step 3, '4.weight': {expected}"


def test_a_keyframe_that_is_not_the_state(runs: dict[str, Kept], monkeypatch: pytest.MonkeyPatch) -> None:
    def another(trace: TraceReader, step: int) -> dict[str, Any]:
        return {name: a + (name == "0.bias") for name, a in keyframe(trace, step).items()}

    keyframe = TraceReader.keyframe
    monkeypatch.setattr(TraceReader, "keyframe", another)
    error = refused(runs["grads"].path, 3, loss_fn, BATCHES)
    assert str(error) == "trace.at: update: step 2, '0.bias': the keyframe behind it holds another state"


def test_a_model_that_raises(runs: dict[str, Kept]) -> None:
    def broken(p: Any, batch: Any, ctx: Any) -> Any:
        raise KeyError("0.weights")

    error = refused(runs["digest"].path, 0, broken, BATCHES)
    assert str(error) == "trace.at: gradient: step 0: the model cannot be executed again: KeyError: '0.weights'"
    assert isinstance(error.__cause__, KeyError)


def test_ctrl_c_goes_its_way(runs: dict[str, Kept]) -> None:
    def stopped(p: Any, batch: Any, ctx: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at(runs["digest"].path, 0, stopped, BATCHES)


def test_another_numerics_version(runs: dict[str, Kept], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(travel, "NUMERICS", NUMERICS + 1)
    error = refused(runs["full"].path, 1, loss_fn, BATCHES)
    expected = f"recorded under numerics version {NUMERICS}, this library has {NUMERICS + 1}"
    assert str(error) == f"trace.at: numerics: step 1: {expected}: no step can be recomputed"


def test_a_rule_of_ones_own(tmp_path: Path) -> None:
    @ops_rule("plain@1")
    def Plain(p: Any, g: Any, *, lr: Any = 0.5) -> Any:  # noqa: N802
        return p - lr * g

    def quick(p: Any, x: Any) -> Any:
        return (p["w"] * x).sum()

    path, batches = tmp_path / "t", [np.array([1.0, 2.0])]
    rule: Any = Plain
    Trainer(quick, {"w": np.ones(2)}, rule(), mode="eager", trace=path).fit(batches, steps=3, progress=False)
    assert at(path, 2, quick, batches, rules=[rule]).params["w"].tolist() == [0.0, -1.0]
    error = refused(path, 2, quick, batches)
    assert error.finding.verdict is Verdict.UNPROVEN
    assert str(error).startswith(
        "trace.at: unproven: step 0: the rule 'plain@1' is not known to this library; pass its"
    )


# ------------------------------------------------------------------ what cannot be asked


@pytest.mark.parametrize(("given", "missing"), [((), "loss_fn"), ((loss_fn,), "batches")])
def test_a_model_that_is_missing(runs: dict[str, Kept], given: Any, missing: str) -> None:
    with pytest.raises(ValueError, match=missing) as caught:
        at(runs["full"].path, 0, *given)
    assert str(caught.value) == (
        f"trace.at: argument '{missing}': a trace holds no tape, so the step is recomputed: pass the loss "
        "function of the run, and its batches from the beginning"
    )


def test_a_bare_trace(tmp_path: Path) -> None:
    kept = train(tmp_path / "bare", "bare")
    with pytest.raises(NotRecordedError) as caught:
        at(kept.path, 0, loss_fn, BATCHES)
    assert str(caught.value) == (
        "trace.at: a trace of record mode 'bare' holds no states to start from; record the run with mode 'digest'"
    )


@pytest.mark.parametrize("step", [STEPS, -STEPS - 1])
def test_there_is_no_such_step(runs: dict[str, Kept], step: int) -> None:
    with pytest.raises(IndexError, match=f"trace: expected a step from 0 to 6, got {step}"):
        at(runs["full"].path, step, loss_fn, BATCHES)


def test_what_is_no_rule(runs: dict[str, Kept]) -> None:
    with pytest.raises(ValueError, match="expected classes of rules"):
        at(runs["full"].path, 0, loss_fn, BATCHES, rules=[3])  # type: ignore[list-item]


def test_a_damaged_keyframe(runs: dict[str, Kept], tmp_path: Path) -> None:
    data = runs["digest"].path.read_bytes()
    weights = runs["digest"].before[3]["params"]["0.weight"].tobytes()
    assert data.count(weights) == 1
    (tmp_path / "bad").write_bytes(data.replace(weights, weights[:-1] + bytes([weights[-1] ^ 1])))
    with pytest.raises(InvalidTraceError):
        at(tmp_path / "bad", 4, loss_fn, BATCHES)
    assert at(tmp_path / "bad", 2, loss_fn, BATCHES).keyframe == 0
