"""What the matrix has found, each by itself."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.atomic_file import replacing
from dgrr.runtime import SGD, Keep, Trainer
from dgrr.trace import (
    CompletedStep,
    InvalidTraceError,
    RuleGroup,
    Run,
    TraceRecorder,
    TraceWriteError,
    Verdict,
    open_recorder,
    open_trace,
    recover,
    resume_recorder,
    validate,
)
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.v1.writer import WriterV1
from dgrr.trace.v2.format import frames
from dgrr.trace.v2.format.constants import HEADER_LENGTH

from .services import Fault, Hook, hooked

PARAMS = {"w": np.arange(5000.0)}
RUN = Run(PARAMS, {}, [RuleGroup("none@1")], numerics=1)
SEAL = b"\xdaGRF" + bytes([frames.SEAL.code])


def steps(recorder: TraceRecorder, count: int) -> None:
    for step in range(recorder.steps, count):
        loss, batch = np.array(1.0), (np.zeros(1),)
        recorder.step(CompletedStep(step=step, loss=loss, hyper={}, grads=PARAMS, params=PARAMS, state={}, batch=batch))


def record(path: Path, count: int = 3) -> bytes:
    with open_recorder(path, RUN) as recorder:
        steps(recorder, count)
    return path.read_bytes()


def refusing(refused: str, when: Callable[..., bool] = lambda *_: True) -> Hook:
    """A hook under which a service fails, if its arguments are such."""

    def hook(name: str, service: Callable[..., Any], *args: Any) -> Any:
        if name == refused and when(*args):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return service(*args)

    return hook


def test_header_and_what_precedes_a_seal_are_on_the_disk_before_more_is_written(tmp_path: Path) -> None:
    synced, written, checked = 0, 0, list[str]()

    def hook(name: str, service: Callable[..., Any], *args: Any) -> Any:
        nonlocal synced, written
        if name == "fsync":
            synced = written
        if name == "write":
            data = b"".join(map(bytes, args[1]))
            if 0 < written <= HEADER_LENGTH:
                checked.append("header")
                assert synced == written == HEADER_LENGTH
            if SEAL in data:
                checked.append("seal")
                assert synced == written + data.index(SEAL)
            written += len(data)
        return service(*args)

    with hooked(hook), open_recorder(Keep(tmp_path / "t", commit_every=None), RUN) as recorder:
        steps(recorder, 3)
    assert checked == ["header", "seal"]


def test_a_file_that_is_overwritten_is_empty_on_the_disk_first(tmp_path: Path) -> None:
    calls = list[str]()
    open_recorder(tmp_path / "t", RUN).close()

    def hook(name: str, service: Callable[..., Any], *args: Any) -> Any:
        calls.append(name)
        return service(*args)

    with hooked(hook):
        open_recorder(Keep(tmp_path / "t", overwrite=True), RUN).close()
    after = calls[calls.index("truncate") :]
    assert after[:2] == ["truncate", "fsync"]
    assert "write" not in calls[: calls.index("truncate")]


@pytest.mark.parametrize("service", ["lock", "write", "fsync", "replace"])
def test_a_recovery_that_fails_leaves_nothing(tmp_path: Path, service: str) -> None:
    data = record(tmp_path / "t")
    with hooked(refusing(service)), pytest.raises(TraceWriteError, match=r"new.*Input/output error"):
        recover(tmp_path / "t", tmp_path / "new")
    assert os.listdir(tmp_path) == ["t"]
    assert (tmp_path / "t").read_bytes() == data
    assert not recover(tmp_path / "t", tmp_path / "new").lossy


def test_a_recovery_whose_folder_cannot_be_synced_leaves_nothing(tmp_path: Path) -> None:
    record(tmp_path / "t")
    made = [0]

    def is_second_folder(descriptor: int) -> bool:
        made[0] += os.path.isdir(f"/proc/self/fd/{descriptor}")
        return made[0] == 2 and os.path.isdir(f"/proc/self/fd/{descriptor}")

    with hooked(refusing("fsync", is_second_folder)), pytest.raises(TraceWriteError, match="is whole and has its name"):
        recover(tmp_path / "t", tmp_path / "new")
    assert os.listdir(tmp_path) == ["t"]


def test_a_recovery_that_cannot_read_is_none(tmp_path: Path) -> None:
    data = record(tmp_path / "t")
    unreadable = refusing("pread", lambda _, length, offset: offset > len(data) // 2)
    with hooked(unreadable), pytest.raises(InvalidTraceError, match="t: cannot read: Input/output error") as caught:
        recover(tmp_path / "t", tmp_path / "new")
    assert caught.value.verdict is Verdict.IO
    assert os.listdir(tmp_path) == ["t"]


def test_a_resumption_that_cannot_read_changes_nothing(tmp_path: Path) -> None:
    """Whichever of its three passes it is in: from each reading on the disk gives nothing more."""
    partial = tmp_path / "t.partial"
    recorder = open_recorder(tmp_path / "t", RUN)
    steps(recorder, 2)
    recorder.close()
    partial.write_bytes(partial.read_bytes() + b"torn")
    before, calls = partial.read_bytes(), Fault(-1, "EIO", errno.EIO)
    with hooked(calls):
        resume_recorder(tmp_path / "t", RUN, steps=2).close()
    last = calls.names.index("truncate")
    partial.write_bytes(before)
    (tmp_path / "t.torn").unlink()
    readings = calls.names[:last].count("pread")
    for read in range(readings):
        done = count()
        broken = refusing("pread", lambda *_, done=done, read=read: next(done) >= read)
        with hooked(broken), pytest.raises(TraceWriteError, match="Input/output error"):
            resume_recorder(tmp_path / "t", RUN, steps=2)
        assert partial.read_bytes() == before
        assert os.listdir(tmp_path) == ["t.partial"]
    assert readings > 10
    resume_recorder(tmp_path / "t", RUN, steps=2).seal()


def test_errors_name_the_file(tmp_path: Path) -> None:
    record(tmp_path / "t")
    unreadable, text = refusing("pread", lambda _, length, offset: offset > 0), "t: Input/output error"
    with hooked(unreadable), pytest.raises(TraceFileError, match=f"cannot read {tmp_path}/{text}"):
        open_trace(tmp_path / "t")
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), mode="eager")
    for service in ("write", "fsync"):
        with hooked(refusing(service)), pytest.raises(OSError, match="Input/output error") as caught:
            trainer.save(tmp_path / "c")
        assert caught.value.filename == str(tmp_path / "c")
    with pytest.raises(OSError, match="^mine$"), replacing(tmp_path / "c"):
        raise OSError("mine")  # is left as it is
    assert os.listdir(tmp_path) == ["t"]


def test_a_close_that_loses_what_was_written_is_an_error(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path / "t", RUN)

    def closing(name: str, service: Callable[..., Any], *args: Any) -> Any:
        answer = service(*args)
        if name == "close":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return answer

    with hooked(closing), pytest.raises(TraceWriteError, match=r"t\.partial: cannot close it: Input/output error"):
        recorder.close()
    recorder.close()
    with hooked(closing), open_recorder(tmp_path / "t", RUN) as again:
        steps(again, 1)  # what is sealed is on the disk before
    assert validate(tmp_path / "t").ok


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_writer_that_cannot_begin_or_end_holds_no_file(tmp_path: Path) -> None:
    before = descriptors()
    wide = {f"tensor{i}": np.zeros(1) for i in range(1000)}  # a SCHEMA that is written at once
    with hooked(refusing("write")), pytest.raises(TraceWriteError, match="write failed"):
        open_recorder(tmp_path / "wide", replace(RUN, params=wide))
    recorder = open_recorder(tmp_path / "t", RUN)
    with hooked(refusing("fsync")), pytest.raises(TraceWriteError, match="fsync failed"), recorder:
        steps(recorder, 1)
    with hooked(refusing("write")), pytest.raises(TraceFileError, match="cannot write"):
        WriterV1(str(tmp_path / "v1"), 0, 0.1, 0)
    assert descriptors() == before
    assert os.listdir(tmp_path) == ["t.partial"]
