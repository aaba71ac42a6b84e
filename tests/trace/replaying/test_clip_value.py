"""Runs clipped by value: the bound is a rule of the schema; in older traces it is the text of an EVENT."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer, clip_by_value, gradients
from dgrr.tape import NUMERICS, ops
from dgrr.trace import CompletedStep, Verdict, open_trace, replay, validate
from dgrr.trace.v2.format.limits import Limits
from dgrr.trace.v2.format.schema import CLIPPING, Group, Schema

from ...keeping import recorder_of, resumed

BOUND = 0.05
RNG = np.random.default_rng(3)
BATCHES = [(RNG.standard_normal((4, 3)), RNG.standard_normal((4, 2))) for _ in range(3)]
PARAMS = {"w": np.full((2, 3), 0.1)}


def loss_fn(p: Any, batch: Any) -> Any:
    x, y = batch
    return ops.mse_loss(ops.linear(x, p["w"]), y)


def train(path: Path, *, event: str | None = None, altered: float | None = None, **options: Any) -> Path:
    """Clips by BOUND; ``event`` is what an older writer wrote of it, ``altered`` a bound put into the steps."""
    rule, params = SGD(0.1), {name: array.copy() for name, array in PARAMS.items()}
    state = rule.init(params)
    law: dict[str, Any] = {"rule": rule.rule, "hyperparameters": list(rule.names), "numerics": NUMERICS}
    with recorder_of(path, record="grads", params=params, state=state, **law, **options) as recorder:
        if event is not None:
            recorder.event("clip_value", event)
        if altered is not None:
            recorder._fronts.names = recorder._fronts.names._replace(bound=(altered,))
            recorder._prepared = None
        for step, batch in enumerate(BATCHES):
            loss, grads = gradients(loss_fn, params, batch)
            grads = clip_by_value(grads, BOUND)
            rule.step(params, grads, state)
            hyper, parts = rule.hyperparameters(), {"grads": grads, "params": params, "state": state}
            recorder.step(CompletedStep(step=step, loss=np.asarray(loss), hyper=hyper, batch=batch, **parts))
    return path


def re_executed(path: Path) -> Any:
    return replay(path, loss_fn=loss_fn, batches=BATCHES)


def test_the_bound_is_a_rule_of_the_schema(tmp_path: Path) -> None:
    Trainer(loss_fn, PARAMS, SGD(0.1), trace=tmp_path / "t", clip_value=BOUND).fit(BATCHES)
    with open_trace(tmp_path / "t") as trace:
        assert trace.schema.groups[0] == CLIPPING
        assert [view.clip_value for view in trace] == [BOUND] * 3
        assert trace[0].hyper == {"clip_value": BOUND, **SGD(0.1).hyperparameters()}
        assert [event.text for _, event in trace.events() if event.kind == "clip_value"] == ["0.05"]
        by_trainer = [view.link for view in trace]
    assert re_executed(tmp_path / "t").ok
    assert replay(tmp_path / "t").ok
    with open_trace(train(tmp_path / "by hand", clip_value=BOUND)) as trace:
        assert [view.link for view in trace] == by_trainer


def test_a_run_that_is_not_clipped_has_no_such_rule(tmp_path: Path) -> None:
    Trainer(loss_fn, PARAMS, SGD(0.1), trace=tmp_path / "t").fit(BATCHES)
    with open_trace(tmp_path / "t") as trace:
        assert [group.rule for group in trace.schema.groups] == ["sgd@1"]
        assert trace[0].clip_value is None


@pytest.mark.parametrize("options", [{"clip_value": BOUND}, {"event": "0.05"}], ids=["schema", "event"])
def test_re_execution_clips(tmp_path: Path, options: Any) -> None:
    report = re_executed(train(tmp_path / "t", **options))
    assert (report.verdict, report.update, report.gradient) == (Verdict.OK, "proven", "proven")


@pytest.mark.parametrize("options", [{"clip_value": 0.06}, {"event": "0.06"}, {}], ids=["schema", "event", "nothing"])
def test_another_bound_is_answered_gradient(tmp_path: Path, options: Any) -> None:
    path = train(tmp_path / "t", **options)
    assert re_executed(path).verdict is Verdict.GRADIENT
    assert replay(path).ok


@pytest.mark.parametrize("text", ["x", "-1.0", "nan"])
def test_an_event_that_is_no_bound_is_corrupt(tmp_path: Path, text: str) -> None:
    report = re_executed(train(tmp_path / "t", event=text))
    assert report.verdict is Verdict.CORRUPT
    assert report.findings[0].text == f"the bound of clipping by value is {text!r}"


@pytest.mark.parametrize("bound", [-1.0, np.nan])
def test_a_step_that_holds_no_bound_is_corrupt(tmp_path: Path, bound: float) -> None:
    report = validate(train(tmp_path / "t", clip_value=BOUND, altered=bound))
    assert report.verdict is Verdict.CORRUPT
    assert f"STEP 0: the bound of clipping by value is {bound}" in report.findings[0].text


def test_a_reader_without_the_rule_reads_on_and_calls_it_unproven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reader does with any rule that it does not know, and so did those before this one."""
    path = train(tmp_path / "t", clip_value=BOUND)
    monkeypatch.setattr(Schema, "clips_by_value", False)
    assert validate(path).ok
    report = replay(path)
    assert (report.verdict, report.structure, report.chain) == (Verdict.UNPROVEN, "proven", "proven")
    assert "the rule 'clip_value@1' is not known to this library" in str(report)


@pytest.mark.parametrize(
    "group", [Group("clip_value@1", ("lr",), 0, ()), Group("clip_value@1", ("clip_value",), 1, ())]
)
def test_the_rule_has_one_form_and_one_place(group: Group) -> None:
    last = Group("sgd@1", ("lr",), 0, ())
    Schema((), (CLIPPING, last)).check(Limits())
    for groups in ((group, last), (last, CLIPPING)):
        with pytest.raises(ValueError, match="rule 'clip_value@1': expected the first group"):
            Schema((), groups).check(Limits())


def test_a_run_is_resumed_with_its_rules(tmp_path: Path) -> None:
    rule = SGD(0.1)
    state = rule.init(PARAMS)
    run: dict[str, Any] = {"params": PARAMS, "state": state, "rule": rule.rule, "numerics": NUMERICS}
    run["hyperparameters"] = list(rule.names)
    recorder_of(tmp_path / "t", clip_value=BOUND, **run).close()
    with pytest.raises(
        ValueError, match=r"rule: the trace was begun with \['clip_value@1', 'sgd@1'\], got \['sgd@1'\]"
    ):
        resumed(tmp_path / "t", steps=0, **run)
    resumed(tmp_path / "t", steps=0, clip_value=BOUND, **run).seal()
    assert validate(tmp_path / "t").ok
