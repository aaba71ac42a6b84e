"""Writers that die, disks that fail: what was written before stays readable, and nothing is claimed too early."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import CompletedStep, TraceRecorder, TraceWriteError, Verdict, open_trace, replay, validate
from dgrr.trace.v2.write.partial_file import PartialFile

from ....keeping import recorder_of

RecordRun = Callable[..., Path]
PARAMS = {"w": np.arange(8000.0)}


def begin(path: Path, **options: Any) -> TraceRecorder:
    options = {"record": "grads", "rule": "none@1", "hyperparameters": [], "numerics": 1} | options
    return recorder_of(path, params=PARAMS, state={}, **options)


def go_on(recorder: TraceRecorder, steps: int = 1) -> None:
    for _ in range(steps):
        recorder.step(
            CompletedStep(
                step=recorder.steps,
                loss=np.array(float(recorder.steps)),
                hyper={},
                grads=PARAMS,
                params=PARAMS,
                state={},
                batch=(np.zeros(1),),
            )
        )


WRITER = """
import sys
import numpy as np
from dgrr.runtime import SGD
from dgrr.trace import CompletedStep, Keep, RuleGroup, Run, open_recorder
rule = SGD(1e-2, momentum=0.9)
rng = np.random.default_rng(0)
params = {"w": rng.standard_normal(int(sys.argv[2]))}
state = rule.init(params)
run = Run(params, state, [RuleGroup(rule.rule, rule.names)], numerics=1)
recorder = open_recorder(Keep(sys.argv[1], commit_every=10, overwrite=True), run)
print("ready", flush=True)
for step in range(10**9):
    grads = {"w": rng.standard_normal(params["w"].shape)}
    rule.step(params, grads, state)
    recorder.step(CompletedStep(step=step, loss=np.array(0.5), hyper=rule.hyperparameters(), grads=grads, params=params,
        state=state, batch=(grads["w"],)))
    if step % 10 == 9 or params["w"].nbytes > 1 << 16:  # large frames are written at once
        print(step + 1, flush=True)
"""


def test_a_killed_writer_leaves_a_good_prefix(tmp_path: Path) -> None:
    random.seed(0)
    for size in (10, 20_000):
        path = tmp_path / f"{size}.dgrr"
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(size)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            partial = Path(f"{path}.partial")
            for _ in range(4):  # a copy of the file at any moment is what a kill at that moment leaves
                time.sleep(random.uniform(0.01, 0.1))
                snapshot = tmp_path / "snapshot"
                snapshot.write_bytes(partial.read_bytes())
                assert validate(snapshot).verdict in (Verdict.UNSEALED, Verdict.TORN_TAIL)
            written = [int(writer.stdout.readline())]
            writer.send_signal(signal.SIGKILL)
            written += [int(line) for line in writer.stdout.read().split()]
        report = replay(partial)
        assert report.verdict in (Verdict.UNSEALED, Verdict.TORN_TAIL)
        assert report.update == "proven"
        assert report.steps >= max(written)
        assert not path.exists()


def test_everything_written_before_a_close_is_there(tmp_path: Path) -> None:
    recorder = begin(tmp_path / "t")
    go_on(recorder, 3)
    recorder.close()
    recorder.close()
    report = validate(tmp_path / "t.partial")
    assert (report.verdict, report.steps) == (Verdict.UNSEALED, 3)
    with pytest.raises(TraceWriteError, match="takes no more data: it was closed"):
        go_on(recorder)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.writev

    def one_at_a_time(descriptor: int, buffers: list[memoryview]) -> int:
        return real(descriptor, [buffers[0][:1000]])

    monkeypatch.setattr(os, "writev", one_at_a_time)
    with begin(tmp_path / "t") as recorder:
        go_on(recorder, 3)
    assert validate(tmp_path / "t").ok


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("written", [0, 1, 100, 10_000])
def test_a_failed_write_stops_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, written: int
) -> None:
    recorder = begin(tmp_path / "t")
    go_on(recorder, 2)
    real = os.writev
    left = [written]
    calls: list[int] = []

    def failing(descriptor: int, buffers: list[memoryview]) -> int:
        calls.append(1)
        if not left[0]:
            raise OSError(code, os.strerror(code))
        count = real(descriptor, [buffers[0][: left[0]]])
        left[0] -= count
        return count

    monkeypatch.setattr(os, "writev", failing)
    with pytest.raises(TraceWriteError, match=f"write failed: {os.strerror(code)}. The writer has stopped"):
        go_on(recorder)
    attempts = len(calls)
    for attempt in (lambda: go_on(recorder), recorder.seal, lambda: recorder.event("note", "x")):
        with pytest.raises((TraceWriteError, ValueError)):
            attempt()
    recorder.close()
    assert len(calls) == attempts  # nothing was tried again
    assert not (tmp_path / "t").exists()
    report = validate(tmp_path / "t.partial")
    assert report.verdict is (Verdict.TORN_TAIL if written else Verdict.UNSEALED)
    assert report.steps == 2


def test_a_failed_fsync_writes_no_commit_and_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = begin(tmp_path / "t", commit_every=4)
    go_on(recorder, 3)
    calls: list[int] = []

    def failing(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(TraceWriteError, match="fsync failed"):
        go_on(recorder)
    with pytest.raises(TraceWriteError, match="takes no more data: fsync failed"):
        recorder.seal()
    recorder.close()
    assert len(calls) == 1
    monkeypatch.undo()
    assert not (tmp_path / "t").exists()
    data = (tmp_path / "t.partial").read_bytes()
    assert validate(tmp_path / "t.partial").steps == 4
    assert b"\xdaGRF\x04" not in data


@pytest.mark.parametrize(("call", "verdict"), [("fsync", Verdict.UNSEALED), ("replace", Verdict.OK)])
def test_a_seal_that_fails_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, verdict: Verdict
) -> None:
    recorder = begin(tmp_path / "t")

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(TraceWriteError, match="Input/output error"):
        recorder.seal()
    monkeypatch.undo()
    recorder.close()
    assert not (tmp_path / "t").exists()
    assert validate(tmp_path / "t.partial").verdict is verdict  # a SEAL, as a COMMIT, is written after an fsync


def test_a_commit_follows_its_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    real_sync, real_write = os.fsync, os.writev

    def sync(descriptor: int) -> None:
        log.append("sync")
        real_sync(descriptor)

    def write(descriptor: int, buffers: list[memoryview]) -> int:
        log.extend("commit" for b in buffers for _ in range(bytes(b).count(b"\xdaGRF\x04")))
        log.append("write")
        return real_write(descriptor, buffers)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "writev", write)
    with begin(tmp_path / "t", commit_every=2) as recorder:
        log.clear()
        go_on(recorder, 4)
        assert [w for w in log if w != "write"] == ["sync", "commit", "sync", "commit"]
        go_on(recorder)
        recorder.commit()
        assert [w for w in log if w != "write"] == ["sync", "commit"] * 3
    none = begin(tmp_path / "n", commit_every=None)
    log.clear()
    go_on(none, 10)
    assert set(log) == {"write"}
    none.close()


def test_a_run_that_ended_before_its_first_step_is_begun_anew(tmp_path: Path) -> None:
    begin(tmp_path / "t").close()
    begin(tmp_path / "t").close()
    with begin(tmp_path / "t") as again:
        go_on(again, 2)
    assert (validate(tmp_path / "t").steps, (tmp_path / "t.partial").exists()) == (2, False)


@pytest.mark.parametrize("content", [b"no trace", b"DGRS", bytes(100)])
def test_another_file_of_that_name_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.partial").write_bytes(content)
    with pytest.raises(TraceWriteError, match=r"t\.partial exists"):
        begin(tmp_path / "t")
    assert (tmp_path / "t.partial").read_bytes() == content


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    recorder = begin(tmp_path / "t")
    for overwrite in (False, True):
        with pytest.raises(TraceWriteError, match="another writer is at work on"):
            begin(tmp_path / "t", overwrite=overwrite)
    go_on(recorder)
    recorder.commit()
    with pytest.raises(TraceWriteError, match=r"t\.partial exists: its run is unfinished, or still going on"):
        begin(tmp_path / "t")
    recorder.close()
    with pytest.raises(TraceWriteError, match="overwrite=True"):
        begin(tmp_path / "t")
    with begin(tmp_path / "t", overwrite=True) as again:
        go_on(again, 2)
    assert (validate(tmp_path / "t").steps, (tmp_path / "t.partial").exists()) == (2, False)
    finished = (tmp_path / "t").read_bytes()
    with pytest.raises(TraceWriteError) as caught:
        begin(tmp_path / "t")
    assert str(caught.value) == (
        f"trace: {tmp_path / 't'} is finished, and is not overwritten: choose another path, or pass overwrite=True to "
        "replace it"
    )
    assert not (tmp_path / "t.partial").exists()
    with begin(tmp_path / "t", overwrite=True) as last:
        go_on(last, 3)
        assert (tmp_path / "t").read_bytes() == finished
    assert validate(tmp_path / "t").steps == 3
    with pytest.raises(TraceWriteError, match="cannot create .*No such file"):
        begin(tmp_path / "missing" / "t")


def test_a_folder_is_synced_at_creation_and_at_the_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[str] = []
    real = os.fsync

    def sync(descriptor: int) -> None:
        target = os.readlink(f"/proc/self/fd/{descriptor}")
        folders.append(Path(target).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    file = PartialFile.create(tmp_path / "t", overwrite=False)
    file.write([b"x"])
    file.publish()
    assert folders == [tmp_path.name, "t.partial", tmp_path.name]


def test_a_file_that_shrinks_while_it_is_read_is_reported(record_run: RecordRun) -> None:
    path = record_run(steps=60)
    with open_trace(path) as trace:
        os.truncate(path, 1000)
        with pytest.raises(Exception, match="the file was cut while it was read"):
            trace[30]
