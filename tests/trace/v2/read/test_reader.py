"""Opening and reading traces."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import (
    CompletedStep,
    InvalidTraceError,
    Limits,
    NotRecordedError,
    UnsealedTraceWarning,
    open_trace,
    validate,
)
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.v2.write import writer

from ....keeping import recorder_of

pytestmark = pytest.mark.quick

RecordRun = Callable[..., Path]


@pytest.mark.parametrize("seal", [True, False])
def test_steps(record_run: RecordRun, seal: bool) -> None:
    with open_trace(record_run(seal=seal)) as trace:
        assert len(trace) == 6
        assert trace.sealed is seal
        assert trace.loss.dtype == np.float32
        assert trace.loss.tolist() == [np.float32(1 / (k + 1)) for k in range(6)]
        view = trace[-1]
        assert (view.step, view.loss, view.clip, view.micro_batches) == (5, np.float32(1 / 6), None, 1)
        assert view.hyper == {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
        assert list(trace[1].grad_digests) == ["w", "b"]
        assert list(trace[2].grad_digests) == ["w"]
        assert list(view.state_digests) == ["w", "b", "step", "corrections", "m/w", "m/b", "v/w", "v/b"]
        assert [v.step for v in trace[1:6:2]] == [1, 3, 5]
        assert [v.step for v in trace] == list(range(6))
        assert [(n, e.kind) for n, e in trace.events()] == [(0, "environment"), (2, "note")]
        with pytest.raises(IndexError, match="expected a step from 0 to 5, got 6"):
            trace[6]
        assert "6 steps" in repr(trace)
        assert repr(view) == "<step 5: loss np.float32(0.16666667), 1 gradients>"


def test_tensors(record_run: RecordRun) -> None:
    with open_trace(record_run("full.dgrr", record="full")) as full, open_trace(record_run()) as grads:
        assert grads.tensor("w", step=1).shape == (3, 2)
        assert np.array_equal(grads.tensor("w", step=1), full[1].grad("w"))
        assert np.array_equal(full.tensor("w", step=2, what="after"), full.tensor("w", step=3, what="before"))
        assert np.array_equal(grads.tensor("w", step=0, what="before"), full.tensor("w", step=0, what="before"))
        assert grads.tensor("b", step=0, what="before").tolist() == [0, 0]
        with pytest.raises(NotRecordedError, match="no gradient of 'b' is recorded at step 2"):
            grads.tensor("b", step=2)
        with pytest.raises(NotRecordedError, match="no gradient of 'm/w'"):
            grads.tensor("m/w", step=1)
        with pytest.raises(NotRecordedError, match="'w' after step 1 is not recorded .*state_after recomputes"):
            grads.tensor("w", step=1, what="after")
        with pytest.raises(NotRecordedError, match="expected a name such as w, b, step"):
            grads.tensor("x", step=1)
        with pytest.raises(NotRecordedError, match="no keyframe before step 1"):
            grads.keyframe(1)


def test_a_digest_trace_has_no_values(record_run: RecordRun) -> None:
    with open_trace(record_run(record="digest")) as trace:
        with pytest.raises(NotRecordedError, match="record mode 'digest'"):
            trace.tensor("w", step=1)
        with pytest.raises(NotRecordedError, match="holds no gradients"):
            trace.gradients(0)


def test_an_empty_run(record_run: RecordRun) -> None:
    path = record_run(steps=0)
    assert validate(path).ok
    with open_trace(path) as trace:
        assert (len(trace), trace.sealed, trace.loss.shape) == (0, True, (0,))
        with pytest.raises(IndexError):
            trace[0]


def test_the_partial_file_is_read_with_a_warning(record_run: RecordRun, tmp_path: Path) -> None:
    record_run(seal=False)
    with pytest.warns(UnsealedTraceWarning, match=r"run\.dgrr does not exist; reading the unfinished"):
        trace = open_trace(tmp_path / "run.dgrr")
    assert (len(trace), trace.sealed) == (6, False)
    trace.close()
    trace.close()
    record_run("other.dgrr")
    os.rename(tmp_path / "other.dgrr", tmp_path / "run.dgrr")
    with pytest.warns(UnsealedTraceWarning, match="exists too: a longer run, or a later one"):
        trace = open_trace(tmp_path / "run.dgrr")
    assert trace.sealed
    trace.close()
    assert validate(tmp_path / "missing").exit_code == 2
    with pytest.raises(TraceFileError, match="cannot open"):
        open_trace(tmp_path / "missing")


@pytest.mark.parametrize("seal", [True, False])
@pytest.mark.parametrize("record", ["digest", "grads", "full"])
def test_payloads_are_split_and_joined(tmp_path: Path, record: str, seal: bool) -> None:
    rng = np.random.default_rng(0)
    params = {"a": rng.standard_normal(3000), "b": rng.standard_normal((1, 7)), "c": np.zeros((0, 3))}
    arguments: dict[str, Any] = {"params": params, "state": {}}
    recorder = recorder_of(
        tmp_path / "t",
        record=record,
        rule="none@1",
        hyperparameters=[],
        numerics=1,
        largest_payload=4096,
        **arguments,
    )
    for step in range(3):
        recorder.step(
            CompletedStep(step=step, loss=np.array(0.0), hyper={}, grads=params, batch={"x": params["b"]}, **arguments)
        )
    recorder.seal() if seal else recorder.close()
    path = tmp_path / ("t" if seal else "t.partial")
    assert validate(path).verdict.value == ("ok" if seal else "unsealed")
    with open_trace(path, limits=Limits(block=100)) as trace:
        assert {n: a.tolist() for n, a in trace.keyframe(0).items()} == {n: p.tolist() for n, p in params.items()}
        if record != "digest":
            for name, value in params.items():
                assert np.array_equal(trace.tensor(name, step=2), value)
        if record == "full":
            assert np.array_equal(trace.tensor("a", step=1, what="after"), params["a"])
    data = path.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(data[: len(data) // 2 // 8 * 8])
    assert validate(cut).verdict.value in ("torn-tail", "unsealed")


def test_a_step_is_found_in_few_reads(record_run: RecordRun, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record_run(steps=2100, record="digest", optimizer="sgd", commit_every=None)
    reads: list[int] = []
    real = os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        reads.append(length)
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    with open_trace(path) as trace:
        opening = len(reads)
        assert trace[2050].step == 2050
        assert trace[1023].step == 1023
        assert trace[1024].step == 1024
        assert opening < 20
        assert len(reads) - opening < 40
        assert max(reads) < 20_000
        assert trace.last_keyframe(2099) == 0
    monkeypatch.undo()
    assert validate(path).ok


def test_a_keyframe_at_the_end_is_indexed(record_run: RecordRun) -> None:
    path = record_run(steps=1024, record="digest", optimizer="sgd", keyframe_every=512, commit_every=None)
    assert validate(path).ok
    with open_trace(path) as trace:
        assert [k for k in range(0, 1025, 256) if trace.has_keyframe(k)] == [0, 512, 1024]
        assert (trace.last_keyframe(1023), trace.last_keyframe(1024)) == (512, 1024)


def test_a_lying_index_is_found_out(record_run: RecordRun, tmp_path: Path) -> None:
    """The offset of one step in the INDEX is that of another, with CRCs and chain made right again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer.TraceWriter, "_index", _lying(writer.TraceWriter._index))  # pyright: ignore[reportPrivateUsage]
        path = record_run()
    with open_trace(path) as trace, pytest.raises(InvalidTraceError, match="expected STEP 0, found STEP 5"):
        trace[0]
    assert "an INDEX is not what the file makes it" in str(validate(path))


def _lying(real: Any) -> Any:
    def index(self: Any) -> None:
        self._step_offsets.reverse()
        real(self)

    return index


def test_limits_can_be_lowered(record_run: RecordRun) -> None:
    path = record_run()
    for limits, text in (
        (Limits(tensors=7), "at most 7 tensors, got 8"),
        (Limits(rank=1), "tensor 'w': rank at most 1, got 2"),
        (Limits(name_bytes=3), "names of tensors have 1 to 3 bytes, got 11"),
        (Limits(tensor_bytes=8), "tensor 'w': at most 8 bytes"),
        (Limits(schema_bytes=100), r"a front of \d+ bytes \(at most 100\)"),
        (Limits(json_depth=2), "JSON nested more than 2 deep"),
        (Limits(payload=500), r"a payload of \d+ bytes \(at most 500\)"),
    ):
        with pytest.raises(InvalidTraceError, match=text):
            open_trace(path, limits=limits)
