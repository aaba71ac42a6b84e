"""Recorded runs: how a recorder is found, what it is told, and that the trace agrees with the run."""

import subprocess
import sys
from dataclasses import fields
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.base.runs.completed_step import CompletedStep
from dgrr.base.runs.keep import Mode
from dgrr.runtime import SGD, Adam, Keep, NonFiniteError, RecorderError, Trainer, gradients, state_digest
from dgrr.runtime.optim import Rule
from dgrr.runtime.training import recorder_protocol
from dgrr.tape import NUMERICS, DomainError, nn, ops
from dgrr.trace import NotRecordedError, RuleGroup, Run, TraceWriteError, open_recorder, open_trace, replay

Arrays = dict[str, npt.NDArray[Any]]
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
STEPS = 5


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def batch_of(number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(number)
    return rng.standard_normal((6, 3)).astype(np.float32), rng.integers(0, 2, 6)


BATCHES = [batch_of(k) for k in range(STEPS)]


def bits(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


class Plain:
    """The same run as plain steps: every loss and gradient, the state after every step."""

    def __init__(self, rule: Rule, steps: int = STEPS) -> None:
        self.params = MODEL.init(0)
        self.state = rule.init(self.params)
        self.losses, self.grads, self.after = list[bytes](), list[dict[str, bytes]](), list[dict[str, bytes]]()
        for batch in BATCHES[:steps]:
            loss, grads = gradients(loss_fn, self.params, batch)
            rule.step(self.params, grads, self.state)
            self.losses.append(loss.tobytes())
            self.grads.append(bits(grads))
            self.after.append({**bits(self.params), **bits(self.state)})

    @property
    def digest(self) -> str:
        return state_digest(self.params, self.state)


# How a recorder is found and what it is told.


class Registered:
    """An entry point, what it names, and a recorder, in one: it writes down what it is told."""

    def __init__(self) -> None:
        self.opened: list[tuple[Keep, Run]] = []
        self.calls: list[Any] = []
        self.refuses_seal = False

    def load(self) -> "Registered":
        return self

    def open_recorder(self, keep: Keep, run: Run) -> "Registered":
        self.opened.append((keep, run))
        return self

    def wants_tape(self, step: int) -> bool:
        return False

    def step(self, done: CompletedStep) -> None:
        told = {f.name: getattr(done, f.name) for f in fields(CompletedStep)}
        parts = {part: bits(told[part]) for part in ("grads", "params", "state")}
        self.calls.append({**told, **parts, "loss": told["loss"].tobytes()})

    def event(self, kind: str, text: str) -> None:
        self.calls.append((kind, text))

    def commit(self) -> None:
        self.calls.append("commit")

    def seal(self) -> None:
        self.calls.append("seal")
        if self.refuses_seal:
            raise TraceWriteError("no space left")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Registered:
    """The only recorder there is."""
    made = Registered()
    monkeypatch.setattr(recorder_protocol, "entry_points", lambda group: [made] if group == "dgrr.recorder" else [])
    return made


def recorded_fit(batches: list[Any], rule: Rule | None = None) -> Trainer:
    trainer = Trainer(loss_fn, MODEL.init(0), rule or Adam(0.01), trace="run.dgrr", record="digest", seed=7)
    trainer.fit(batches)
    return trainer


def test_the_installed_package_registers_the_recorder_of_traces(tmp_path: Path) -> None:
    trainer = Trainer(loss_fn, MODEL.init(0), SGD(0.1), trace=tmp_path / "run.dgrr")
    trainer.fit(BATCHES[:1])
    assert (tmp_path / "run.dgrr").read_bytes()[:4] == b"DGRR"


def test_a_recorder_is_opened_with_the_start_of_the_run(registered: Registered) -> None:
    recorded_fit(BATCHES)
    ((keep, run),) = registered.opened
    assert keep == Keep("run.dgrr", record="digest")
    names, state = tuple(MODEL.init(0)), tuple(Adam().init(MODEL.init(0)))
    assert (tuple(run.params), tuple(run.state), run.model_state) == (names, state, {})
    (group,) = run.rules
    assert (group.rule, set(group.tensors or ())) == ("adam@1", {*names, *state})
    assert group.hyperparameters == ("lr", "beta1", "beta2", "eps", "weight_decay")
    assert (run.numerics, run.seed, run.clip_value, run.on_nonfinite) == (NUMERICS, 7, None, "stop")
    assert run.parent is None


@pytest.mark.parametrize("rule", [SGD(0.1, momentum=0.5), Adam(0.01)], ids=str)
def test_a_recorder_is_told_every_update(registered: Registered, rule: Rule) -> None:
    recorded_fit(BATCHES, rule)
    plain = Plain(rule)
    *steps, last = registered.calls
    assert last == "seal"
    assert [told["step"] for told in steps] == list(range(STEPS))
    assert [told["loss"] for told in steps] == plain.losses
    assert [told["grads"] for told in steps] == plain.grads
    assert [{**told["params"], **told["state"]} for told in steps] == plain.after
    assert all(told["hyper"] == rule.hyperparameters() for told in steps)
    assert all(told["batch"] is batch for told, batch in zip(steps, BATCHES, strict=True))


NAN = (np.full((6, 3), np.nan, np.float32), np.zeros(6, np.int64))
NO_MODEL = (np.zeros((6, 9), np.float32), np.zeros(6, np.int64))


@pytest.mark.parametrize(("bad", "error", "end"), [(NAN, NonFiniteError, "seal"), (NO_MODEL, ValueError, "close")])
def test_a_run_that_fails_ends_its_trace(registered: Registered, bad: Any, error: type[Exception], end: str) -> None:
    with pytest.raises(error):
        recorded_fit([*BATCHES[:2], bad])
    *steps, last = registered.calls
    assert [told["step"] for told in steps] == [0, 1]
    assert last == end


@pytest.mark.parametrize("batches", [BATCHES[:2], [*BATCHES[:2], NAN]])
def test_a_trace_that_cannot_be_sealed_is_closed(registered: Registered, batches: Any) -> None:
    registered.refuses_seal = True
    with pytest.raises(TraceWriteError):
        recorded_fit(batches)
    assert registered.calls[-2:] == ["seal", "close"]


def test_no_recorder_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_protocol, "entry_points", lambda group: [])
    with pytest.raises(RecorderError) as caught:
        recorded_fit(BATCHES)
    assert str(caught.value) == (
        "trace: expected one installed package that records traces, got none; install dgrr (pip install dgrr), or give "
        "the Trainer a recorder: trace=open_recorder(…)"
    )


class Other:
    """A distribution that offers a recorder too."""

    name = "other-traces"


def test_two_packages_that_record_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (ours,) = entry_points(group="dgrr.recorder")
    theirs = EntryPoint("any", "other.traces:Files", "dgrr.recorder")
    vars(theirs).update(dist=Other())
    for found in ([ours, theirs], [theirs, ours]):
        monkeypatch.setattr(recorder_protocol, "entry_points", lambda group, found=found: found)
        with pytest.raises(RecorderError) as caught:
            recorded_fit(BATCHES)
        assert str(caught.value) == (
            "trace: expected one installed package that records traces, got dgrr (dgrr.trace), other-traces "
            "(other.traces:Files); uninstall all but one, or give the Trainer a recorder: trace=open_recorder(…)"
        )


def test_a_recorder_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is told what a recorder that was found is told, and none is looked for."""
    Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=tmp_path / "found").fit(BATCHES)
    monkeypatch.setattr(recorder_protocol, "entry_points", lambda group: pytest.fail("looked"))
    rule, params = Adam(0.01), MODEL.init(0)
    run = Run(params, rule.init(params), [RuleGroup(rule.rule, rule.names)], numerics=NUMERICS)
    given = open_recorder(tmp_path / "given", run)
    trainer = Trainer(loss_fn, params, rule, trace=given)
    trainer.fit(BATCHES)
    with open_trace(tmp_path / "found") as one, open_trace(tmp_path / "given") as other:
        assert other.sealed
        assert [view.link for view in one] == [view.link for view in other]
    with pytest.raises(
        DomainError,
        match=r"^fit: argument 'trace': expected a path, in which a second fit goes on, got a recorder, which",
    ):
        trainer.fit(BATCHES)


def test_a_recorder_that_was_given_is_closed_on_an_error(registered: Registered) -> None:
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(), trace=registered)
    with pytest.raises(ValueError, match="linear"):
        trainer.fit([*BATCHES[:2], NO_MODEL])
    assert (registered.opened, registered.calls[-1]) == ([], "close")


def test_a_trace_is_a_path_or_a_recorder() -> None:
    with pytest.raises(DomainError) as caught:
        Trainer(loss_fn, MODEL.init(0), Adam(), trace=5)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "Trainer: argument 'trace': expected a path; a Keep; a recorder: an object with wants_tape, step, commit, seal "
        "and close; or an object with open_recorder, which makes one; got 5"
    )


@pytest.mark.parametrize("trace", [Keep("run.dgrr"), Registered()], ids=["keep", "recorder"])
def test_what_is_kept_is_said_once(trace: Any) -> None:
    cure = "say it in Keep(…, record='grads')" if isinstance(trace, Keep) else "leave it out"
    with pytest.raises(DomainError) as caught:
        Trainer(loss_fn, MODEL.init(0), Adam(), trace=trace, record="grads")
    assert str(caught.value) == (
        "Trainer: argument 'record': expected None with a 'trace' that says what it keeps, got 'grads'; " + cure
    )


@pytest.mark.parametrize("record", ["digest", "grads", "full"])
def test_what_is_kept_and_where_reaches_the_recorder(registered: Registered, record: Any) -> None:
    keep = Keep(
        "run.dgrr", record=record, ops=[1], keyframe_every=7, keyframe_budget=9, digest="sha256", overwrite=True
    )
    Trainer(loss_fn, MODEL.init(0), Adam(), trace=keep).fit(BATCHES[:1])
    ((told, _),) = registered.opened
    assert told == keep


def test_without_a_trace_no_recorder_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_protocol, "entry_points", lambda group: pytest.fail("looked"))
    Trainer(loss_fn, MODEL.init(0), Adam()).fit(BATCHES)


def test_the_runtime_trains_without_the_trace_package() -> None:
    program = (
        "import sys\n"
        "import numpy as np\n"
        "from dgrr.runtime import SGD, Trainer\n"
        "fit = Trainer(lambda p, x: (p['w'] * x).sum(), {'w': np.ones(2)}, SGD(0.5)).fit([np.ones(2)] * 2)\n"
        "assert fit.losses.tolist() == [2.0, 1.0]\n"
        "print([name for name in sys.modules if name.startswith('dgrr.trace')])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")


# The trace agrees with the run.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.dgrr"


@pytest.mark.parametrize("rule", [SGD(0.1, momentum=0.5), Adam(0.01)], ids=str)
def test_a_trace_holds_the_losses_and_gradients_of_the_run(path: Path, rule: Rule) -> None:
    result = Trainer(loss_fn, MODEL.init(0), rule, trace=path, seed=2**64 - 1).fit(BATCHES)
    plain = Plain(rule)
    with open_trace(path) as trace:
        assert trace.sealed
        assert trace.header.seed == 2**64 - 1
        assert trace.loss.tobytes() == result.losses.tobytes() == b"".join(plain.losses)
        assert [bits(trace.gradients(step)) for step in range(len(trace))] == plain.grads
        assert trace.tensor("2.bias", step=3, what="grad").tobytes() == plain.grads[3]["2.bias"]
        start = MODEL.init(0)
        assert bits(trace.keyframe(0)) == {**bits(start), **bits(rule.init(start))}
        assert all(view.hyper == rule.hyperparameters() for view in trace)


def shown_loss(p: Any, batch: Any) -> Any:
    """The loss, and two metrics."""
    logits = MODEL(p, batch[0])
    return ops.cross_entropy(logits, batch[1]), {
        "accuracy": ops.cast(ops.argmax(logits, axis=-1) == batch[1], "float32").mean(),
        "mean": logits.mean(),
    }


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("mode", ["replay", "eager"])
def test_a_trace_tells_the_metrics_of_each_step(path: Path, mode: Any, accumulate: int) -> None:
    """Those that the history has; beside a run without them no link is another."""
    asked: dict[str, Any] = {"mode": mode, "accumulate": accumulate}
    result = Trainer(shown_loss, MODEL.init(0), SGD(0.1), trace=path, **asked).fit(BATCHES)
    other = path.with_name("other.dgrr")
    Trainer(loss_fn, MODEL.init(0), SGD(0.1), trace=other, **asked).fit(BATCHES)
    with open_trace(path) as trace, open_trace(other) as without:
        assert [*trace.metrics(0)] == ["accuracy", "mean"]
        for name in trace.metrics(0):
            assert [view.metrics()[name] for view in trace] == result.history[name].tolist()
        assert [view.link for view in trace] == [view.link for view in without]
        assert without.metrics(-1) == {}
    report = replay(path, loss_fn=shown_loss, batches=iter(BATCHES))
    assert (report.ok, report.gradient) == (True, "proven")


def test_digests_alone_leave_out_the_gradients(path: Path) -> None:
    result = Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=path, record="digest").fit(BATCHES)
    with open_trace(path) as trace:
        assert trace.loss.tobytes() == result.losses.tobytes()
        with pytest.raises(NotRecordedError):
            trace.gradients(0)


def test_recording_changes_no_bit(tmp_path: Path) -> None:
    plain = Plain(Adam(0.01))
    modes: list[Mode] = ["digest", "grads"]
    results = [Trainer(loss_fn, MODEL.init(0), Adam(0.01)).fit(BATCHES)]
    results += [
        Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=str(tmp_path / mode), record=mode).fit(BATCHES)
        for mode in modes
    ]
    assert {result.losses.tobytes() for result in results} == {b"".join(plain.losses)}
    assert {result.state_digest for result in results} == {plain.digest}


def test_a_parameter_that_the_loss_ignores_has_no_gradient_in_the_trace(path: Path) -> None:
    params = {**MODEL.init(0), "unused": np.ones(3, np.float32)}
    trainer = Trainer(loss_fn, params, Adam(0.01), trace=path)
    trainer.fit(BATCHES)
    assert trainer.params["unused"].tolist() == [1, 1, 1]
    with open_trace(path) as trace:
        assert [list(trace.gradients(step)) for step in range(STEPS)] == [list(MODEL.init(0))] * STEPS


def test_a_run_without_steps_has_an_empty_trace(path: Path) -> None:
    Trainer(loss_fn, MODEL.init(0), Adam(), trace=path).fit(BATCHES, steps=0)
    with open_trace(path) as trace:
        assert (len(trace), trace.sealed) == (0, True)
        assert bits(trace.keyframe(0)) == {**bits(MODEL.init(0)), **bits(Adam().init(MODEL.init(0)))}


def test_a_non_finite_step_seals_the_good_prefix(path: Path) -> None:
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=path)
    with pytest.raises(NonFiniteError, match=r"^fit: step 3: the first non-finite value is node 4 \(leaf\)"):
        trainer.fit([*BATCHES[:3], NAN])
    plain = Plain(Adam(0.01), steps=3)
    assert state_digest(trainer.params, trainer.state) == plain.digest
    assert list(path.parent.iterdir()) == [path]
    with open_trace(path) as trace:
        assert trace.sealed
        assert trace.loss.tobytes() == b"".join(plain.losses)


def test_another_error_leaves_the_good_prefix_readable(path: Path) -> None:
    with pytest.raises(ValueError, match="linear"):
        Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=path).fit([*BATCHES[:2], NO_MODEL])
    partial = Path(f"{path}.partial")
    assert list(path.parent.iterdir()) == [partial]
    with open_trace(partial, mode="tolerate_tail") as trace:
        assert not trace.sealed
        assert trace.loss.tobytes() == b"".join(Plain(Adam(0.01), steps=2).losses)


def test_a_trace_that_cannot_be_begun_trains_nothing(path: Path) -> None:
    partial = Path(f"{path}.partial")
    partial.write_bytes(b"another run")
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=path)
    with pytest.raises(TraceWriteError, match="run.dgrr.partial"):
        trainer.fit(BATCHES)
    assert trainer.steps == 0
    assert bits(trainer.params) == bits(MODEL.init(0))
    assert partial.read_bytes() == b"another run"


def test_a_program_that_is_corrected_records_where_it_failed(tmp_path: Path) -> None:
    def failing(p: Any, batch: Any) -> Any:
        return loss_fn(p, (batch[0].clip(0), batch[1]))

    with pytest.raises(AttributeError):
        Trainer(failing, MODEL.init(0), SGD(0.1), trace=tmp_path / "t.dgrr").fit(BATCHES, progress=False)
    Trainer(loss_fn, MODEL.init(0), SGD(0.1), trace=tmp_path / "t.dgrr").fit(BATCHES, progress=False)
    with open_trace(tmp_path / "t.dgrr") as trace:
        assert len(trace) == STEPS
