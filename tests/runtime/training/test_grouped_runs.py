"""Runs whose parameters have several rules, or are frozen: the same bits in every mode, recorded, replayed, resumed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, AdamW, CheckpointError, Keep, Trainer
from dgrr.runtime.optim import Cosine
from dgrr.runtime.training.step_runner import StepMode
from dgrr.tape import GradientError, nn, ops
from dgrr.trace import Verdict, at, diff_with_model, open_trace, replay, state_after, validate
from dgrr.trace.v2.repair.forge import forge_gradient

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
RULES = {"*.bias": SGD(Cosine(0.1, steps=8), momentum=0.9), "*": AdamW(1e-2)}
FROZEN = ["0.*"]
MODES: tuple[StepMode, ...] = ("eager", "capture", "replay")


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def batches() -> list[Any]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal((6, 3)).astype(np.float32), rng.integers(0, 2, 6)) for _ in range(4)]


def trainer(**options: Any) -> Trainer:
    given: dict[str, Any] = {"frozen": FROZEN, "clip_norm": 0.5, **options}
    return Trainer(loss_fn, MODEL.init(0), given.pop("rules", RULES), **given)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of six steps."""
    path = tmp_path_factory.mktemp("run") / "run.dgrr"
    trainer(trace=path).fit(batches(), steps=6, progress=False)
    return path


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"frozen": ()}])
def test_every_mode_has_the_same_bits(options: dict[str, Any]) -> None:
    ends = {trainer(mode=mode, **options).fit(batches(), steps=4, progress=False).state_digest for mode in MODES}
    assert len(ends) == 1


def test_what_is_frozen_stays_and_the_rest_moves() -> None:
    done, start = trainer(), MODEL.init(0)
    done.fit(batches(), progress=False)
    still = [name for name, array in done.params.items() if array.tobytes() == start[name].tobytes()]
    assert still == ["0.weight", "0.bias"]
    assert not [name for name in done.state if "/0." in name]


def test_the_norm_is_that_of_all_groups() -> None:
    together = trainer(rules=SGD(0.1)).fit(batches(), progress=False).history["gradient_norm"]
    apart = trainer(rules={"*.bias": SGD(0.1), "*": SGD(0.1)}).fit(batches(), progress=False).history["gradient_norm"]
    np.testing.assert_array_equal(apart, together)


def test_the_trace_has_the_groups(run: Path) -> None:
    with open_trace(run) as trace:
        names = [t.name for t in trace.schema.tensors]
        groups = {g.rule: [names[i] for i in g.tensors] for g in trace.schema.groups}
        assert list(groups) == ["sgd@1", "adamw@1", "frozen@1"]
        assert groups["sgd@1"] == ["2.bias", "4.bias", "step", "momentum/2.bias", "momentum/4.bias"]
        assert groups["frozen@1"] == ["0.weight", "0.bias"]
        assert list(trace[0].gradients()) == ["2.weight", "2.bias", "4.weight", "4.bias"]
        assert (trace[4].hyper["lr"], trace[4].hyper["lr#1"]) == (0.05, 0.01)
        assert len(trace[0].corrections) == 2


def test_every_update_and_gradient_is_proven(run: Path) -> None:
    assert validate(run).ok
    assert replay(run).update == "proven"
    report = replay(run, loss_fn=loss_fn, batches=batches())
    assert (report.update, report.gradient, report.data) == ("proven",) * 3, report


def test_a_digest_trace_is_executed_again(tmp_path: Path) -> None:
    trainer(trace=Keep(tmp_path / "t", record="digest", ops="first")).fit(batches(), progress=False)
    report = replay(tmp_path / "t", loss_fn=loss_fn, batches=batches())
    assert (report.update, report.gradient) == ("proven", "proven"), report


def test_op_digests_are_those_of_an_eager_run(tmp_path: Path) -> None:
    for mode in MODES[::2]:
        trainer(mode=mode, trace=Keep(tmp_path / mode, ops="first")).fit(batches(), steps=1, progress=False)
    with open_trace(tmp_path / "eager") as a, open_trace(tmp_path / "replay") as b:
        one, other = a.ops(0), b.ops(0)
        assert one is not None
        assert other is not None
        assert (one.nodes, one.values, one.grads) == (other.nodes, other.values, other.grads)


@pytest.mark.parametrize("name", ["2.bias", "4.weight"])
def test_an_altered_gradient_of_either_group_is_found(run: Path, tmp_path: Path, name: str) -> None:
    forge_gradient(run, tmp_path / "forged", 2, name)
    assert validate(tmp_path / "forged").ok
    report = replay(tmp_path / "forged")
    assert report.verdict is Verdict.UPDATE
    assert report.findings[0].tensor == name


def test_past_steps_are_rebuilt(run: Path) -> None:
    past = at(run, 4, loss_fn, batches())
    assert list(past.consumed) == ["2.weight", "2.bias", "4.weight", "4.bias"]
    assert past.params["0.bias"].tobytes() == MODEL.init(0)["0.bias"].tobytes()
    whole = trainer()
    whole.fit(batches(), steps=4, progress=False)
    for name, array in {**whole.params, **whole.state}.items():
        assert state_after(run, 3)[name].tobytes() == array.tobytes(), name


def test_the_run_is_trained_anew_to_find_a_difference(run: Path) -> None:
    assert diff_with_model(run, loss_fn, batches()).same
    assert diff_with_model(run, loss_fn, batches(), params=MODEL.init(0)).same
    found = diff_with_model(run, lambda p, b: loss_fn(p, b) * 2.0, batches())
    assert (found.same, found.step) == (False, 0)


def test_a_run_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = trainer(trace=tmp_path / "whole").fit(batches(), steps=6, progress=False)
    first = trainer(trace=tmp_path / "t", callbacks=[Stop(tmp_path / "c")])
    with pytest.raises(InterruptedError):
        first.fit(batches(), steps=6, progress=False)
    second = trainer(trace=tmp_path / "t")
    second.load(tmp_path / "c")
    assert second.fit(batches(), steps=6, progress=False).state_digest == whole.state_digest
    with open_trace(tmp_path / "whole") as a, open_trace(tmp_path / "t") as b:
        assert a[5].link == b[5].link


class Stop:
    """Saves after three steps and ends the run in bad order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_step(self, run: Trainer, step: int, loss: float) -> None:
        if step == 2:
            run.save(self.path)
            raise InterruptedError


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"frozen": ()}, "frozen: it was saved with ['0.*'], this run has None"),
    ({"frozen": ["0.*", "4.*"]}, "frozen: it was saved with ['0.*'], this run has ['0.*', '4.*']"),
    ({"rules": {"*": AdamW(1e-2)}}, "rule: it was saved with {'*.bias': SGD("),
    ({"rules": {"2.*": RULES["*.bias"], "*": RULES["*"]}}, "rule: it was saved with {'*.bias': SGD("),
]


@pytest.mark.parametrize(("options", "text"), OTHERS)
def test_other_patterns_are_another_run(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    saved = trainer()
    saved.fit(batches(), progress=False)
    saved.save(tmp_path / "c")
    with pytest.raises(CheckpointError) as caught:
        trainer(**options).load(tmp_path / "c")
    assert text in str(caught.value)


def test_rates_are_shown_by_pattern() -> None:
    done = trainer()
    assert done.lr == {"*.bias": 0.1, "*": 0.01}
    history = done.fit(batches(), progress=False).history
    assert done.lr == {"*.bias": 0.05, "*": 0.01}
    assert history.columns[:5] == ("step", "epoch", "loss", "lr *.bias", "lr *")
    assert history["lr *.bias"][0] == 0.1
    assert history.epochs["lr *"].tolist() == [0.01]
    assert trainer(rules=SGD(0.5)).lr == 0.5


def test_a_loss_of_frozen_parameters_alone() -> None:
    with pytest.raises(GradientError, match="depends on no leaf"):
        trainer(rules=SGD(0.1), frozen=["*"], mode="eager").fit(batches(), progress=False)


def by_predicates() -> dict[str, Any]:
    """The same groups by predicates, which are new objects in each call, as in another process."""
    rule, rest = RULES.values()
    return {
        "rules": {MODEL.having("bias"): rule, lambda name, value: True: rest},
        "frozen": [lambda n, v: n[:2] == "0."],
    }


@pytest.mark.parametrize("mode", MODES)
def test_predicates_give_the_bits_of_patterns(mode: StepMode) -> None:
    ends = [trainer(mode=mode, **how).fit(batches(), progress=False).state_digest for how in ({}, by_predicates())]
    assert ends[0] == ends[1]


def test_a_run_by_predicates_is_recorded_and_resumed(tmp_path: Path, run: Path) -> None:
    whole, path = trainer(**by_predicates(), trace=tmp_path / "a.dgrr"), tmp_path / "a.ckpt"
    result = whole.fit(batches(), steps=4, progress=False)
    assert replay(tmp_path / "a.dgrr").update == "proven"
    assert result.history.columns[3:5] == ("lr having('bias')", "lr lambda")
    assert whole.lr == {"having('bias')": pytest.approx(0.05), "lambda": 0.01}
    with open_trace(tmp_path / "a.dgrr") as trace, open_trace(run) as by_patterns:
        assert trace.schema.groups == by_patterns.schema.groups
    half = trainer(**by_predicates())
    half.fit(batches(), steps=2, progress=False)
    half.save(path)
    again = trainer(**by_predicates())
    again.load(path)
    ends = [each.fit(batches(), steps=2, progress=False).state_digest for each in (half, again)]
    assert ends[0] == ends[1]
    other = {**by_predicates(), "frozen": [lambda name, value: name == "0.bias"]}
    with pytest.raises(CheckpointError, match="rule: it was saved with"):
        trainer(**other).load(path)
