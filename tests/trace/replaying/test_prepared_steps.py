"""Replay by captured steps: what agrees is proven by them alone, what differs is said in the words of op by op."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.run import RuleGroup, Run
from dgrr.runtime import SGD, Adam, Keep, Trainer
from dgrr.runtime.optim import Cosine, StepDecay, WarmUp
from dgrr.tape import NUMERICS, ops
from dgrr.trace import CompletedStep, Report, Verdict, at, open_recorder, open_trace, replay
from dgrr.trace.comparing.computed import run_from
from dgrr.trace.replaying.captured_steps import CapturedSteps, Launched
from dgrr.trace.replaying.recomputed import Recomputed
from dgrr.trace.v2.format import step as declared
from dgrr.trace.v2.format.constants import TensorRole
from dgrr.trace.v2.format.digest import state_root
from dgrr.trace.v2.repair.forge import forge_gradient

from ...fuzz.surgery import STEP, File

PARTS = (TensorRole.PARAM, TensorRole.STATE)

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.standard_normal((3, 2)), "b": np.zeros(2)}
BATCHES = [(RNG.standard_normal((4, 3)), RNG.standard_normal((4, 2))) for _ in range(12)]


def loss_fn(p: Any, batch: Any) -> Any:
    x, y = batch
    error = x @ p["w"] + p["b"] - y
    return (error * error).mean()


def noisy(p: Any, batch: Any, ctx: Any) -> Any:
    """Which draws random numbers by the count of steps, and keeps a state."""
    x, y = batch
    error = x * ops.cast(ctx.random.bernoulli(0.5, x.shape), "float64") @ p["w"] + p["b"] - y
    return (error * error).mean(), {"seen": ctx.state["seen"] + ops.reduce_mean(x)}


def shown(p: Any, batch: Any) -> Any:
    """With a metric that is not finite."""
    loss = loss_fn(p, batch)
    return loss, {"twice": loss * 2.0, "all": loss / 0.0}


OPTIONS: dict[str, dict[str, Any]] = {
    "digest": {"keep": {"record": "digest"}},
    "grads": {},
    "sha256": {"keep": {"record": "digest", "digest": "sha256"}},
    "eager": {"mode": "eager"},
    "chain": {"accumulate": 2},
    "tree": {"accumulate": 3, "order": "tree"},
    "norm": {"clip_norm": 0.05},
    "metrics": {"loss_fn": shown},
    "value": {"clip_value": 0.01, "clip_norm": 1.0},
    "frozen": {"frozen": ["b"]},
    "averages": {"ema": 0.9},
    "groups": {"optimizer": {"b": SGD(0.1, momentum=0.9), "*": Adam(0.01)}},
    "rates": {"optimizer": {"b": SGD(0.1), "*": Adam(WarmUp(Cosine(0.1, steps=9), steps=3))}},
    "state": {"loss_fn": noisy, "model_state": {"seen": np.zeros(())}, "seed": 7},
}


def train(
    path: Path,
    *,
    loss_fn: Any = loss_fn,
    optimizer: Any = None,
    batches: Any = BATCHES,
    keep: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    trace = Keep(path, **keep or {})
    Trainer(loss_fn, PARAMS, optimizer or Adam(0.01), trace=trace, **options).fit(batches, progress=False)
    return path


@pytest.fixture
def by_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are computed op by op."""
    made, real = list[int](), Recomputed._op_by_op

    def noted(self: Recomputed, view: Any, *given: Any) -> Any:
        made.append(view.step)
        return real(self, view, *given)

    monkeypatch.setattr(Recomputed, "_op_by_op", noted)
    return made


@pytest.mark.parametrize("name", OPTIONS)
def test_captured_steps_prove_all_alone(name: str, tmp_path: Path, by_parts: list[int]) -> None:
    options = OPTIONS[name]
    path, given = train(tmp_path / "t", **options), options.get("loss_fn", loss_fn)
    report = replay(path, loss_fn=given, batches=BATCHES)
    assert {report.structure, report.chain, report.update, report.gradient, report.data} == {"proven"}, report
    assert by_parts == []
    other = replay(path, loss_fn=given, batches=BATCHES, mode="eager")
    assert str(report) == str(other) and len(by_parts) == report.steps


LONG = [BATCHES[i % 12] for i in range(100)]


def said(path: Path, **given: Any) -> tuple[Report, Report]:
    return replay(path, **given), replay(path, **given, mode="eager")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Launched]:
    """The launches of several steps."""
    made, real = list[Launched](), CapturedSteps.several

    def noted(self: CapturedSteps, stretch: Any) -> Launched | None:
        found = real(self, stretch)
        made.extend([found] if found is not None else [])
        return found

    monkeypatch.setattr(CapturedSteps, "several", noted)
    return made


LAUNCHED = ["digest", "grads", "norm", "metrics", "value", "frozen", "averages", "groups", "state"]


@pytest.mark.parametrize("name", LAUNCHED)
def test_many_steps_are_one_launch(name: str, tmp_path: Path, launched: list[Launched], by_parts: list[int]) -> None:
    options = OPTIONS[name]
    path, given = train(tmp_path / "t", batches=LONG, **options), options.get("loss_fn", loss_fn)
    report = replay(path, loss_fn=given, batches=LONG)
    assert (report.verdict, report.gradient, report.data) == (Verdict.OK, "proven", "proven"), report
    assert sum(each.steps for each in launched) >= report.steps - 12 and by_parts == []
    assert max(each.steps for each in launched) >= 16 and all(each.agree for each in launched)
    assert str(report) == str(replay(path, loss_fn=given, batches=LONG, mode="eager"))


@pytest.mark.parametrize("every", [1, 5])
def test_states_that_are_due_now_and_then(every: int, tmp_path: Path, launched: list[Launched]) -> None:
    path = train(tmp_path / "t", batches=LONG, keep={"record": "digest", "state_every": every})
    assert replay(path, loss_fn=loss_fn, batches=LONG).update == "proven"
    assert sum(each.steps for each in launched) > 50


def test_rates_that_change_now_and_then_end_launches(tmp_path: Path, launched: list[Launched]) -> None:
    path = train(tmp_path / "t", batches=LONG, optimizer=SGD(StepDecay(0.1, every=20, factor=0.5)))
    assert replay(path, loss_fn=loss_fn, batches=LONG).ok
    assert sum(each.steps for each in launched) > 40 and max(each.steps for each in launched) < 20


@pytest.mark.parametrize("kind", ["digest", "grads"])
def test_a_value_that_is_not_finite_amid_a_launch(
    kind: str, tmp_path: Path, launched: list[Launched], by_parts: list[int]
) -> None:
    """Its front is not one that a launch makes."""
    batches = [(x * 1e200, y) if i == 70 else (x, y) for i, (x, y) in enumerate(LONG)]
    path = train(tmp_path / "t", batches=batches[:71], on_nonfinite="record", keep={"record": kind})
    assert replay(path, loss_fn=loss_fn, batches=batches).ok
    assert launched and by_parts == []


@pytest.mark.parametrize("step", [0, 1, 40, 63, 64, 98, 99])
@pytest.mark.parametrize("what", ["loss", "batch"])
def test_the_step_that_differs_is_named(what: str, step: int, tmp_path: Path) -> None:
    path = train(tmp_path / "t", batches=LONG)

    def other(p: Any, batch: Any, ctx: Any) -> Any:
        return loss_fn(p, batch) * (ops.cast(ctx.step == step, "float64") * float(what == "loss") + 1.0)

    batches = [(x + (what == "batch" and i == step), y) for i, (x, y) in enumerate(LONG)]
    fast, slow = said(path, loss_fn=other, batches=batches)
    assert (fast.verdict, fast.findings[0].step) == (Verdict.GRADIENT if what == "loss" else Verdict.DATA, step)
    assert fast.findings == slow.findings


def test_batches_that_end_too_soon(tmp_path: Path) -> None:
    path = train(tmp_path / "t", batches=LONG)
    fast, slow = said(path, loss_fn=loss_fn, batches=iter(LONG[:70]))
    assert (fast.verdict, fast.findings[0].step) == (Verdict.DATA, 70)
    assert fast.findings == slow.findings or slow.findings[0].step == 0


def test_what_differs_before_batches_end_is_said_first(tmp_path: Path) -> None:
    path = train(tmp_path / "t", batches=LONG)

    def other(p: Any, batch: Any, ctx: Any) -> Any:
        return loss_fn(p, batch) * (ops.cast(ctx.step == 66, "float64") + 1.0)

    report = replay(path, loss_fn=other, batches=iter(LONG[:70]))
    assert (report.verdict, report.findings[0].step) == (Verdict.GRADIENT, 66)


def test_what_differs_is_said_in_the_same_words(tmp_path: Path, by_parts: list[int]) -> None:
    """From the last state that was kept: that before step 64."""
    path = train(tmp_path / "t", batches=LONG)

    def other(p: Any, batch: Any, ctx: Any) -> Any:
        return loss_fn(p, batch) * (ops.cast(ctx.step == 70, "float64") + 1.0)

    fast, slow = said(path, loss_fn=other, batches=LONG)
    assert by_parts == [*range(64, 71), *range(71)]
    assert (fast.verdict, fast.findings[0].step) == (Verdict.GRADIENT, 70)
    assert fast.findings == slow.findings


def test_another_batch_is_said_in_the_same_words(tmp_path: Path) -> None:
    path = train(tmp_path / "t", batches=LONG)
    fast, slow = said(path, loss_fn=loss_fn, batches=[*LONG[:67], *LONG[68:]])
    assert (fast.verdict, fast.findings[0].step) == (Verdict.DATA, 67)
    assert fast.findings == slow.findings


@pytest.mark.parametrize("record", ["digest", "grads"])
def test_a_forged_gradient_is_said_in_the_same_words(record: str, tmp_path: Path) -> None:
    path = train(tmp_path / "t", keep={"record": record})
    forge_gradient(path, tmp_path / "f", 4, "w")
    fast, slow = said(tmp_path / "f", loss_fn=loss_fn, batches=BATCHES)
    assert (fast.verdict, fast.findings[0].step) == (Verdict.GRADIENT, 4)
    assert fast.findings == slow.findings


def test_a_run_with_values_that_are_not_finite(tmp_path: Path, by_parts: list[int]) -> None:
    batches = [(x * 1e200, y) if i == 5 else (x, y) for i, (x, y) in enumerate(BATCHES)]
    path = train(tmp_path / "t", batches=batches, on_nonfinite="record")
    assert replay(path, loss_fn=loss_fn, batches=batches).ok
    assert by_parts == []


def test_batches_that_are_made_in_one_array(tmp_path: Path) -> None:
    """Kept steps are done again from copies."""

    def other(p: Any, batch: Any, ctx: Any) -> Any:
        return loss_fn(p, batch) * (ops.cast(ctx.step == 9, "float64") + 1.0)

    def one_array() -> Iterator[Any]:
        x, y = np.empty((4, 3)), np.empty((4, 2))
        for batch in BATCHES:
            x[...], y[...] = batch
            yield x, y

    path = train(tmp_path / "t")
    report = replay(path, loss_fn=other, batches=one_array())
    assert (report.verdict, report.findings[0].step) == (Verdict.GRADIENT, 9)


def test_a_model_that_reads_values_is_run_op_by_op(tmp_path: Path, by_parts: list[int]) -> None:
    def branches(p: Any, batch: Any) -> Any:
        loss = loss_fn(p, batch)
        return loss * 2.0 if loss.item() > 1.0 else loss

    path = train(tmp_path / "t", loss_fn=branches, mode="eager")
    assert replay(path, loss_fn=branches, batches=BATCHES).ok
    assert by_parts == [*range(12)]


def test_a_loss_function_with_a_state_of_its_own_is_run_op_by_op_alone(tmp_path: Path) -> None:
    class Growing:
        def __init__(self) -> None:
            self.factor = 1.0

        def __call__(self, p: Any, batch: Any) -> Any:
            self.factor *= 1.5
            return loss_fn(p, batch) * self.factor

    path = train(tmp_path / "t", loss_fn=Growing(), mode="eager")
    assert replay(path, loss_fn=Growing(), batches=BATCHES, mode="eager").ok
    assert replay(path, loss_fn=Growing(), batches=BATCHES).verdict is Verdict.GRADIENT


def test_another_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^replay: mode: expected 'replay' or 'eager', got 'fast'$"):
        replay(tmp_path / "t", mode="fast")  # type: ignore[arg-type]


def test_a_run_that_goes_on_from_another(tmp_path: Path, by_parts: list[int]) -> None:
    """Whose count of steps does not begin at 0, nor its rates."""
    path = train(tmp_path / "t", **OPTIONS["rates"])
    at(path, 4, loss_fn, BATCHES).continue_with(OPTIONS["rates"]["optimizer"], steps=5, trace=tmp_path / "c")
    by_parts.clear()
    assert replay(tmp_path / "c", loss_fn=loss_fn, batches=BATCHES[4:]).ok
    assert by_parts == []


# ------------------------------------------------------------------ by recorded gradients


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "digest" and name != "sha256"])
def test_recorded_gradients_are_applied_by_one_update(name: str, tmp_path: Path, by_parts: list[int]) -> None:
    """Once a step of the kind was done op by op; where rates change, of fixed rates and of those told."""
    path = train(tmp_path / "t", **OPTIONS[name])
    report = replay(path)
    assert (report.update, report.verdict) == ("proven", Verdict.OK), report
    assert by_parts == ([0, 1] if name == "rates" else [0])
    other = replay(path, mode="eager")
    assert str(report) == str(other)


@pytest.mark.parametrize("digest", ["xxh3-128", "sha256"])
@pytest.mark.parametrize("record", ["grads", "full"])
def test_a_forged_update_is_said_in_the_same_words(record: str, digest: str, tmp_path: Path) -> None:
    path = train(tmp_path / "t", keep={"record": record, "digest": digest})
    forge_gradient(path, tmp_path / "f", 4, "w")
    fast, slow = said(tmp_path / "f")
    assert (fast.verdict, fast.findings[0].step, fast.findings[0].tensor) == (Verdict.UPDATE, 4, "w")
    assert fast.findings == slow.findings


def recorded(path: Path, rates: list[float], decays: list[float] | None = None) -> Path:
    """A run by the numbers of each step, whatever they are."""
    params, grads = {"w": np.ones(3)}, {"w": np.array([1.0, -2.0, 0.5])}
    state = SGD(0.1).init(params)
    run = Run(params, state, [RuleGroup("sgd@1", SGD.names)], numerics=NUMERICS)
    with open_recorder(Keep(path, record="grads"), run) as recorder:
        for step, rate in enumerate(rates):
            rule = SGD(0.1, weight_decay=0.0 if decays is None else decays[step])
            hyper = {**rule.hyperparameters(), "lr": rate}
            params["w"] = params["w"] - rate * (grads["w"] + hyper["weight_decay"] * params["w"])
            state["step"] = np.asarray(state["step"] + 1)
            told: dict[str, Any] = {"loss": np.array(1.0), "hyper": hyper, "grads": grads, "batch": np.ones(1)}
            recorder.step(CompletedStep(step=step, params=params, state=state, **told))
    return path


def test_rates_are_told_and_other_numbers_are_not(tmp_path: Path, by_parts: list[int]) -> None:
    path = recorded(tmp_path / "rates", [0.5, 0.5, 0.25, 0.125, 0.125, 1.0])
    assert replay(path).ok and by_parts == [0, 2]
    by_parts.clear()
    path = recorded(tmp_path / "decays", [0.5] * 6, [0.0, 0.0, 0.5, 0.5, 0.25, 0.25])
    assert replay(path).ok and by_parts == [0, 2, 3, 4, 5]


def test_other_numbers_that_change_amid_launches(tmp_path: Path, launched: list[Launched], by_parts: list[int]) -> None:
    """All in powers of two, so that no order of operations shows. From the last state that was kept all is op by op."""
    params: dict[str, Any] = {"w": np.ones(1)}
    state = SGD(0.5, weight_decay=0.5).init(params)
    run = Run(params, state, [RuleGroup("sgd@1", SGD.names)], numerics=NUMERICS)
    with open_recorder(Keep(tmp_path / "t", record="digest"), run) as recorder:
        for step in range(75):
            decay = 0.0 if step < 70 else 0.5
            hyper = SGD(0.5, weight_decay=decay).hyperparameters()
            told: dict[str, Any] = {"hyper": hyper, "grads": {"w": np.array([2.0])}, "batch": (np.ones(1),)}
            loss = np.array(2.0 * params["w"][0])
            params["w"] = params["w"] - 0.5 * (2.0 + decay * params["w"])
            state["step"] = np.asarray(state["step"] + 1)
            recorder.step(CompletedStep(step=step, loss=loss, params=params, state=state, **told))
    report = replay(tmp_path / "t", loss_fn=lambda p, x: (p["w"] * 2.0).sum(), batches=[(np.ones(1),)])
    assert report.ok, report
    assert launched and by_parts == [*range(64, 75)]


@pytest.mark.parametrize("rate", [-0.5, np.nan, np.inf])
def test_a_rate_that_the_rule_refuses_is_said_in_the_same_words(rate: float, tmp_path: Path) -> None:
    with np.errstate(all="ignore"):
        path = recorded(tmp_path / "t", [0.5, 0.25, 0.125, rate, 0.5])
    fast, slow = said(path)
    assert (fast.verdict, fast.findings[0].step) == (Verdict.UPDATE, 3)
    assert "the rule refuses the recorded step" in fast.findings[0].text
    assert fast.findings == slow.findings


def test_a_gradient_of_a_frozen_param_is_refused(tmp_path: Path) -> None:
    path = train(tmp_path / "t", frozen=["b"])
    with open_trace(path) as trace:
        view, schema = trace[0], trace.schema
        params, state = ({t.name: trace.keyframe(0)[t.name] for t in schema.tensors if t.role is r} for r in PARTS)
        grads = {**view.gradients(), "b": np.ones(2)}
        with open_recorder(Keep(tmp_path / "f", record="grads"), run_from(trace, params, state, {})) as recorder:
            for step in range(3):
                told: dict[str, Any] = {"loss": view.record.loss, "hyper": view.hyper, "batch": np.ones(1)}
                given = view.gradients() if step == 0 else grads
                recorder.step(CompletedStep(step=step, grads=given, params=params, state=state, **told))
    fast, slow = said(tmp_path / "f")
    assert fast.verdict is Verdict.UPDATE and fast.findings == slow.findings


def forged_correction(path: Path, step: int) -> None:
    """Another bias correction in a step behind which no state is digested."""
    file = File.parse(path.read_bytes())
    with open_trace(path) as trace:
        at = declared.STEP.front(trace.layout).at["corrections"]
    frame = [frame for frame in file.frames if frame.kind == STEP][step]
    frame.front = frame.front[:at] + np.float64(0.5).tobytes() + frame.front[at + 8 :]
    file = File.parse(file.encode())
    link = [frame for frame in file.frames if frame.kind == STEP][-1].front[: file.digest_size]
    seal = file.frames[-1]
    seal.front = seal.front[:16] + link + seal.front[16 + len(link) :]
    path.write_bytes(file.encode())


def forged_end(path: Path) -> None:
    """Another final state in the SEAL."""
    file = File.parse(path.read_bytes())
    with open_trace(path) as trace:
        assert trace.seal is not None
        digests, at = [*trace.seal.final[:-1]], 16 + trace.layout.digest_size
        digests[1] = bytes(len(digests[1]))
        final = b"".join(digests) + state_root(trace.header.algorithm, digests)
    seal = file.frames[-1]
    seal.front = seal.front[:at] + final + seal.front[at + len(final) :]
    path.write_bytes(file.encode())


@pytest.mark.parametrize("forge", [lambda path: forged_correction(path, 6), forged_end], ids=["correction", "end"])
@pytest.mark.parametrize("model", [{}, {"loss_fn": loss_fn, "batches": BATCHES}], ids=["file", "model"])
def test_what_no_state_of_a_step_shows_is_said_in_the_same_words(forge: Any, model: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    Trainer(loss_fn, PARAMS, Adam(0.01), trace=Keep(path, state_every=5)).fit(BATCHES, progress=False)
    assert all(report.ok for report in said(path, **model))
    forge(path)
    fast, slow = said(path, **model)
    assert fast.verdict is Verdict.UPDATE and fast.findings == slow.findings
