"""Replay with the model: gradients and data re-executed, and what differs named."""

from collections.abc import Callable
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr import runtime
from dgrr.runtime import Adam, Dataset
from dgrr.tape import NUMERICS, ops
from dgrr.trace import CompletedStep, Verdict, open_trace, replay, validate
from dgrr.trace.v2.repair.forge import forge_gradient

from ...keeping import recorder_of

RecordRun = Callable[..., Path]

ANEW = "pass those of the run from its beginning, freshly made if they can be iterated only once"


def loss_fn(p: Any, batch: Any) -> Any:
    x, y = batch
    error = ops.linear(x, p["w"], p["b"]) - y
    return (error * error).mean()


def other_loss_fn(p: Any, batch: Any) -> Any:
    return loss_fn(p, batch) * 2


def batches(dtype: type = np.float32) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((4, 3)).astype(dtype), rng.standard_normal((4, 2)).astype(dtype)) for _ in range(3)]


def train(path: Path, *, steps: int = 7, dtype: type = np.float32, clip: float = 0, **options: Any) -> Path:
    rule = Adam(1e-2)
    params = {"w": np.full((2, 3), 0.1, dtype), "b": np.zeros(2, dtype)}
    state = rule.init(params)
    options = {"record": "grads", "numerics": NUMERICS} | options
    with recorder_of(
        path,
        params=params,
        state=state,
        rule=rule.rule,
        hyperparameters=list(rule.hyperparameters()),
        **options,
    ) as recorder:
        for step in range(steps):
            batch = batches(dtype)[step % 3]
            loss, grads = runtime.gradients(loss_fn, params, batch)
            scale = None
            if clip:
                grads, _, factor = runtime.clip_by_global_norm(grads, clip)
                scale = (clip, factor)
            rule.step(params, grads, state)
            recorder.step(
                CompletedStep(
                    step=step,
                    loss=np.asarray(loss),
                    hyper=rule.hyperparameters(),
                    grads=grads,
                    params=params,
                    state=state,
                    batch=batch,
                    clip=scale,
                )
            )
    return path


@pytest.mark.parametrize("record", ["digest", "grads", "full"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_the_model_everything_is_proven(tmp_path: Path, record: str, dtype: type) -> None:
    path = train(tmp_path / "t.dgrr", record=record, dtype=dtype, digest="sha256", state_every=2)
    report = replay(path, loss_fn=loss_fn, batches=batches(dtype))
    assert report.ok, report
    assert {report.structure, report.chain, report.update, report.gradient, report.data} == {"proven"}


def test_clipped_gradients_are_re_executed(tmp_path: Path) -> None:
    path = train(tmp_path / "t.dgrr", clip=0.125)
    with open_trace(path) as trace:
        assert trace[0].clip is not None
        assert trace[0].clip[1] < 1
    assert replay(path, loss_fn=loss_fn, batches=batches()).ok


def test_a_forged_digest_trace_needs_the_model(tmp_path: Path) -> None:
    path = train(tmp_path / "t.dgrr", record="digest")
    forge_gradient(path, tmp_path / "f.dgrr", 4, "w")
    assert validate(tmp_path / "f.dgrr").ok
    assert replay(tmp_path / "f.dgrr").verdict is Verdict.UNPROVEN
    report = replay(tmp_path / "f.dgrr", loss_fn=loss_fn, batches=batches())
    assert (report.verdict, report.findings[0].step, report.findings[0].tensor) == (Verdict.GRADIENT, 4, "w")
    assert "not recorded" in report.findings[0].text


def test_another_model_is_answered_gradient(tmp_path: Path) -> None:
    path = train(tmp_path / "t.dgrr")
    report = replay(path, loss_fn=other_loss_fn, batches=batches())
    finding = report.findings[0]
    assert (report.verdict, report.gradient, finding.step, finding.tensor) == (
        Verdict.GRADIENT,
        "failed",
        0,
        "loss",
    )


def test_another_gradient_is_named_to_the_element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = train(tmp_path / "t.dgrr")
    real = runtime.evaluate
    calls = []

    def off_by_one_ulp(*args: Any) -> Any:
        made = real(*args)
        calls.append(1)
        if len(calls) != 3:
            return made
        grads = {n: g.copy() for n, g in made.grads.items()}
        grads["w"][1, 2] = np.nextafter(grads["w"][1, 2], np.float32(9))
        return changed(made, grads=grads)

    monkeypatch.setattr("dgrr.runtime.step.evaluate.evaluate", off_by_one_ulp)
    report = replay(path, loss_fn=loss_fn, batches=batches(), mode="eager")
    assert (report.verdict, report.findings[0].step, report.findings[0].tensor) == (Verdict.GRADIENT, 2, "w")
    assert "element [1, 2]: recorded " in report.findings[0].text
    assert "1 ULP apart" in report.findings[0].text
    calls.clear()
    calls.append(0)
    assert not replay(path, loss_fn=loss_fn, batches=batches(), mode="eager").ok


def test_another_batch_is_answered_data(tmp_path: Path) -> None:
    path = train(tmp_path / "t.dgrr")
    changed = batches()
    changed[1][0][0, 0] += 1
    report = replay(path, loss_fn=loss_fn, batches=changed)
    assert (report.verdict, report.data, report.findings[0].step) == (Verdict.DATA, "failed", 1)
    report = replay(path, loss_fn=loss_fn, batches=iter(batches()))
    assert (report.verdict, report.findings[0].step) == (Verdict.DATA, 3)
    assert report.findings[0].text == f"there are no more batches; {ANEW}"


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(("recorded", "given"), [("int64", "int32"), ("int32", "int64"), ("int64", "uint8")])
def test_labels_of_another_dtype_than_recorded_are_named_by_both(
    tmp_path: Path, recorded: str, given: str, accumulate: int
) -> None:
    def labelled(dtype: str) -> list[Any]:
        return [(x, np.array([0, 1, 1, 0], dtype)) for x, _ in batches()]

    def classify(p: Any, batch: Any) -> Any:
        return ops.cross_entropy(ops.linear(batch[0], p["w"]), batch[1])

    params, path = {"w": np.ones((2, 3), np.float32)}, tmp_path / "t.dgrr"
    trainer = runtime.Trainer(classify, params, Adam(1e-2), trace=path, accumulate=accumulate)
    trainer.fit(labelled(recorded), progress=False)
    assert replay(path, loss_fn=classify, batches=labelled(recorded)).ok
    report = replay(path, loss_fn=classify, batches=labelled(given))
    assert (report.verdict, report.findings[0].step) == (Verdict.DATA, 0)
    assert report.findings[0].text == (
        f"the batch is not the one that was recorded, but its numbers are, as {given} where {recorded} was recorded; "
        f"convert with .astype(np.{recorded})"
    )


def test_other_numbers_of_another_dtype_are_another_batch(tmp_path: Path) -> None:
    path = train(tmp_path / "t.dgrr")
    report = replay(path, loss_fn=loss_fn, batches=[(x + 1, y) for x, y in batches(np.float64)])
    assert report.findings[0].text == f"the batch is not the one that was recorded; {ANEW}"


def test_batches_that_a_fit_has_taken_are_those_of_the_run(tmp_path: Path) -> None:
    path, used = tmp_path / "t.dgrr", Dataset(*batches()[0]).batches(2, seed=0)
    params = {"w": np.ones((2, 3), np.float32), "b": np.zeros(2, np.float32)}
    runtime.Trainer(loss_fn, params, Adam(1e-2), trace=path).fit(used, epochs=2, progress=False)
    list(used)
    assert replay(path, loss_fn=loss_fn, batches=used).ok
    assert replay(path, loss_fn=loss_fn, batches=Dataset(*batches()[0]).batches(2, seed=0)).ok


def test_another_numerics_version_gates_gradients_only(tmp_path: Path) -> None:
    path = train(tmp_path / "t.dgrr", numerics=NUMERICS + 1)
    report = replay(path, loss_fn=loss_fn, batches=batches())
    assert (report.verdict, report.exit_code) == (Verdict.NUMERICS, 6)
    assert (report.update, report.gradient, report.data) == ("proven", "not proven", "proven")
    assert replay(path).ok


def test_arguments(record_run: RecordRun) -> None:
    path = record_run()
    with pytest.raises(ValueError, match="expected both loss_fn and batches"):
        replay(path, loss_fn=loss_fn)
    with pytest.raises(ValueError, match="ulp_tol: expected at least 0, got -1"):
        replay(path, ulp_tol=-1)
