"""Replay: the update law from the file alone, and forgers caught."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam
from dgrr.tape import NUMERICS
from dgrr.trace import (
    CompletedStep,
    InvalidTraceError,
    NotRecordedError,
    Verdict,
    open_trace,
    replay,
    state_after,
    validate,
)
from dgrr.trace.v2.repair.forge import forge_gradient

from ...keeping import recorder_of

RecordRun = Callable[..., Path]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("record", ["grads", "full"])
@pytest.mark.parametrize("state_every", [1, 4])
def test_updates_are_proven_from_the_file_alone(
    record_run: RecordRun, optimizer: str, dtype: type, record: str, state_every: int
) -> None:
    report = replay(record_run(optimizer=optimizer, dtype=dtype, record=record, state_every=state_every))
    assert report.ok
    assert report.update == "proven"
    assert (report.gradient, report.data) == ("not proven", "not proven")


def test_a_digest_trace_is_unproven_without_a_model(record_run: RecordRun) -> None:
    report = replay(record_run(record="digest"))
    assert (report.verdict, report.exit_code, report.update) == (Verdict.UNPROVEN, 6, "not proven")
    assert "pass the model" in str(report)


@pytest.mark.parametrize("state_every", [1, 4])
@pytest.mark.parametrize("digest", ["xxh3-128", "sha256"])
@pytest.mark.parametrize("record", ["grads", "full"])
def test_a_forged_gradient_is_answered_update(
    record_run: RecordRun, tmp_path: Path, state_every: int, digest: str, record: str
) -> None:
    path = record_run(state_every=state_every, digest=digest, record=record, steps=6)
    forged = tmp_path / "forged.dgrr"
    for step in range(6):
        for name in ("w", "b") if step % 3 != 2 else ("w",):
            forge_gradient(path, forged, step, name)
            assert validate(forged).ok  # the forger made every digest, CRC and chain agree
            report = replay(forged)
            assert (report.verdict, report.exit_code, report.update) == (Verdict.UPDATE, 5, "failed")
            finding = report.findings[0]
            first_due = step if state_every == 1 else min(step // 4 * 4 + 3, 5)
            assert finding.step == first_due
            assert finding.tensor in (
                name,
                f"m/{name}",
            )  # Adam's first step moves a param by lr, whatever g is
            recorded = record == "full" and (state_every == 1 or first_due == 3)
            assert ("ULP apart" in finding.text) == recorded
            assert ("element and values: not recorded" in finding.text) != recorded


def test_forging_what_is_not_there(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run()
    for step, name in ((2, "b"), (99, "w"), (0, "nothing")):
        with pytest.raises(NotRecordedError, match="forge_gradient: there is no gradient of"):
            forge_gradient(path, tmp_path / "f.dgrr", step, name)


def test_an_unknown_rule_is_unproven(tmp_path: Path) -> None:
    params = {"w": np.zeros(2)}
    with recorder_of(
        tmp_path / "t.dgrr",
        record="grads",
        params=params,
        state={},
        rule="tiger@1",
        hyperparameters=["lr"],
        numerics=NUMERICS,
    ) as recorder:
        recorder.step(
            CompletedStep(
                step=0,
                loss=np.array(1.0),
                hyper={"lr": 1.0},
                grads=params,
                params=params,
                state={},
                batch=(params["w"],),
            )
        )
    report = replay(tmp_path / "t.dgrr")
    assert (report.verdict, report.update) == (Verdict.UNPROVEN, "not proven")
    assert "the rule 'tiger@1' is not known" in str(report)


def test_a_wrong_hyperparameter_or_correction_is_answered_update(tmp_path: Path) -> None:
    """A recorder that lies: the state does not follow from what it says was used."""
    for lie in ("lr", "corrections", "refused"):
        rule = Adam(1e-2)
        params = {"w": np.ones(2)}
        state = rule.init(params)
        hyper = rule.hyperparameters()
        with recorder_of(
            tmp_path / lie,
            record="grads",
            params=params,
            state=state,
            rule=rule.rule,
            hyperparameters=list(hyper),
            numerics=NUMERICS,
        ) as recorder:
            grads = {"w": np.array([1.0, -1.0])}
            rule.step(params, grads, state)
            if lie == "corrections":
                state["corrections"][0] += 1
            hyper["lr"] = {"lr": 0.5, "refused": -1.0}.get(lie, 1e-2)
            recorder.step(
                CompletedStep(
                    step=0,
                    loss=np.array(1.0),
                    hyper=hyper,
                    grads=grads,
                    params=params,
                    state=state,
                    batch=(params["w"],),
                )
            )
        report = replay(tmp_path / lie)
        assert report.verdict is Verdict.UPDATE
        expected = {"lr": "step 0, 'w'", "corrections": "bias corrections", "refused": "the rule refuses"}[lie]
        assert expected in str(report)


def test_unsealed_and_torn_traces_are_replayed_as_far_as_they_go(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run(seal=False)
    report = replay(path)
    assert (report.verdict, report.update, report.steps) == (Verdict.UNSEALED, "proven", 6)
    (tmp_path / "torn").write_bytes(path.read_bytes()[:-100])
    report = replay(tmp_path / "torn")
    assert (report.verdict, report.update, report.steps) == (Verdict.TORN_TAIL, "proven", 5)


def test_an_update_failure_decides_before_a_missing_seal(record_run: RecordRun, tmp_path: Path) -> None:
    forged = tmp_path / "forged.dgrr"
    forge_gradient(record_run(), forged, 1, "w")
    (tmp_path / "torn").write_bytes(forged.read_bytes()[:-100])
    report = replay(tmp_path / "torn")
    assert [finding.verdict for finding in report.findings] == [Verdict.UPDATE, Verdict.TORN_TAIL]


def test_steps_without_a_recorded_state_are_not_proven(record_run: RecordRun) -> None:
    report = replay(record_run(seal=False, state_every=4))
    assert [f.verdict for f in report.findings] == [Verdict.UNPROVEN, Verdict.UNSEALED]
    assert "no state is recorded after steps 4 to 5" in str(report)


def test_damage_is_reported_and_not_replayed(record_run: RecordRun, tmp_path: Path) -> None:
    data = bytearray(record_run().read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad").write_bytes(data)
    report = replay(tmp_path / "bad")
    assert (report.verdict, report.update) == (Verdict.CORRUPT, "not proven")
    assert replay(tmp_path / "missing").verdict is Verdict.IO


def test_a_tolerance_applies_to_recorded_values_only(tmp_path: Path, record_run: RecordRun) -> None:
    with pytest.raises(ValueError, match="digests have no tolerance"):
        replay(record_run("a.dgrr"), ulp_tol=1)
    assert replay(record_run("b.dgrr", keyframe_every=3), ulp_tol=1).ok
    assert replay(record_run("c.dgrr", record="full"), ulp_tol=1).ok
    rule = SGD(0.5)
    for off, verdict in ((1, Verdict.OK), (3, Verdict.UPDATE)):
        params = {"w": np.ones(2)}
        state = rule.init(params)
        with recorder_of(
            tmp_path / "off.dgrr",
            record="full",
            params=params,
            state=state,
            rule=rule.rule,
            hyperparameters=list(rule.hyperparameters()),
            numerics=NUMERICS,
            overwrite=True,
        ) as recorder:
            for step in range(3):
                grads = {"w": np.full(2, 0.25)}
                rule.step(params, grads, state)
                for _ in range(off):
                    params["w"][1] = np.nextafter(params["w"][1], 9.0)
                recorder.step(
                    CompletedStep(
                        step=step,
                        loss=np.array(1.0),
                        hyper=rule.hyperparameters(),
                        grads=grads,
                        params=params,
                        state=state,
                        batch=(params["w"],),
                    )
                )
        assert replay(tmp_path / "off.dgrr").verdict is Verdict.UPDATE
        assert replay(tmp_path / "off.dgrr", ulp_tol=2).verdict is verdict


@pytest.mark.parametrize("keyframe_every", [2, 4096])
def test_states_are_recomputed_from_the_nearest_keyframe(record_run: RecordRun, keyframe_every: int) -> None:
    path = record_run("grads.dgrr", keyframe_every=keyframe_every)
    full = record_run("full.dgrr", record="full")
    with open_trace(full) as trace:
        for step in range(6):
            found = state_after(path, step)
            assert list(found) == [t.name for t in trace.schema.tensors]
            for name, array in found.items():
                assert np.array_equal(array, trace.tensor(name, step=step, what="after"))
    with pytest.raises(IndexError, match="expected a step from 0 to 5, got 6"):
        state_after(path, 6)
    with pytest.raises(NotRecordedError, match="holds no gradients"):
        state_after(record_run("digest.dgrr", record="digest"), 0)
    with pytest.raises(InvalidTraceError):
        state_after(Path(__file__), 0)
