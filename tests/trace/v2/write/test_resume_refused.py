"""What cannot be resumed is refused by name, and the unfinished file stays as it was."""

import errno
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import (
    CompletedStep,
    NonFiniteError,
    TraceRecorder,
    TraceWriteError,
    Verdict,
    open_trace,
    validate,
)

from ....keeping import recorder_of, resumed

STATE: dict[str, Any] = {"step": np.array(0), "corrections": np.array([0.5, 0.25])}
NAMES: dict[str, Any] = {"rule": "none@1", "hyperparameters": ["lr"], "numerics": 1, "record": "grads"}
STEPS = 6


def params_after(steps: int) -> dict[str, Any]:
    return {"w": np.full((2, 2), float(steps), np.float32), "b": np.zeros(2, np.float32)}


def begin(path: Path, **options: Any) -> TraceRecorder:
    return recorder_of(path, params=params_after(0), state=STATE, **(NAMES | options))


def resume(path: Path, steps: int, **changes: Any) -> TraceRecorder:
    told: dict[str, Any] = {"steps": steps, "params": params_after(steps), "state": STATE}
    return resumed(path, **(told | NAMES | changes))


def go_on(recorder: TraceRecorder) -> None:
    for step in range(recorder.steps, STEPS):
        after = params_after(step + 1)
        told: dict[str, Any] = {"loss": np.array(1.0), "hyper": {"lr": 0.5}, "grads": after, "batch": (np.arange(3),)}
        recorder.step(CompletedStep(step=step, params=after, state=STATE, **told))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The name of an unfinished trace of six steps, with a COMMIT after steps 2, 4 and 6."""
    recorder = begin(tmp_path / "t", commit_every=2)
    go_on(recorder)
    recorder.close()
    return tmp_path / "t"


def partial(path: Path) -> Path:
    return Path(f"{path}.partial")


def refused(path: Path, error: type[Exception], text: str, steps: int = STEPS, **changes: Any) -> None:
    """Resuming raises, the file is untouched, and the lock is given back."""
    before = partial(path).read_bytes(), partial(path).stat().st_mtime_ns
    with pytest.raises(error) as caught:
        resume(path, steps, **changes)
    assert text in str(caught.value)
    assert (partial(path).read_bytes(), partial(path).stat().st_mtime_ns) == before
    with partial(path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def frame_offsets(path: Path, type: int) -> list[int]:
    return [m.start() for m in re.finditer(rb"\xdaGRF" + bytes([type]), partial(path).read_bytes())]


def flip(path: Path, offset: int) -> None:
    data = bytearray(partial(path).read_bytes())
    data[offset] ^= 1
    partial(path).write_bytes(data)


def test_more_steps_than_there_are(path: Path) -> None:
    advice = "Resume from a checkpoint at or before step {}, or start again with overwrite=True"
    text = f"trace: cannot resume {path}.partial after {{}} steps: it holds {{}} whole steps{{}}. {advice}"
    refused(path, TraceWriteError, text.format(7, 6, "", 6), 7)
    last = frame_offsets(path, 3)[-1]
    os.truncate(partial(path), last + 100)
    torn = f"torn-tail: the file ends inside a frame, and nothing committed stands behind it (at byte {last})"
    refused(path, TraceWriteError, text.format(6, 5, f", then {torn}", 5), 6)
    resume(path, 5).close()


def test_damage_before_the_step(path: Path) -> None:
    step, commit = frame_offsets(path, 3)[2], frame_offsets(path, 4)[1]
    flip(path, step + 60)
    text = (
        f"trace: cannot resume {path}.partial after 5 steps: it holds 2 whole steps, then corrupt: the CRC of a front "
        f"is wrong, and data that was committed at byte {commit} stands behind it (at byte {step}). Resume from a "
        f"checkpoint at or before step 2, or start again with overwrite=True"
    )
    refused(path, TraceWriteError, text, 5)
    with resume(path, 2) as recorder:  # as the text says
        go_on(recorder)
    assert validate(path).ok


def test_frames_of_another_life_are_not_taken_for_steps(path: Path) -> None:
    data, (start, end) = partial(path).read_bytes(), frame_offsets(path, 3)[3:5]
    partial(path).write_bytes(data[:start] + data[end:])
    with pytest.raises(TraceWriteError, match=r"it holds 3 whole steps, then chain: frame \d+ where frame \d+ is exp"):
        resume(path, 5)


NO_STEP, NO_STATE = "it holds 5 whole steps, then torn-tail: ", "its beginning cannot be read "


@pytest.mark.parametrize(("type", "text"), [(2, NO_STATE), (3, NO_STEP)])
def test_a_body_that_is_not_what_its_digest_says_is_no_step(path: Path, type: int, text: str) -> None:
    """A power cut may leave the length of a file and not its data."""
    offset = frame_offsets(path, type)[-1]
    flip(path, offset + 48 + int.from_bytes(partial(path).read_bytes()[offset + 28 :][:4], "little"))
    os.truncate(partial(path), frame_offsets(path, 4)[-1])
    with pytest.raises(TraceWriteError, match=f"{text}.*the digest of 'w'"):
        resume(path, STEPS)


@pytest.mark.parametrize(
    ("start", "length", "damage"),
    [
        (b"", 0, "torn-tail: the file ends after 0 bytes, inside its header (at byte 0)"),
        (b"PNG", 1000, "corrupt: it begins with b'PNGR', expected b'DGRR' (at byte 0)"),
        (b"DGRR\x01", 1000, "unsupported: format version 1, expected 2 (at byte 4)"),
        (b"", 600, "torn-tail: the file ends inside a frame, and nothing committed stands behind it (at byte 256)"),
    ],
)
def test_a_beginning_that_cannot_be_read(path: Path, start: bytes, length: int, damage: str) -> None:
    partial(path).write_bytes(start + partial(path).read_bytes()[len(start) : length])
    text = f"its beginning cannot be read ({damage}); start again with overwrite=True"
    refused(path, TraceWriteError, f"trace: cannot resume {path}.partial after 0 steps: {text}", 0)


def test_a_disk_that_cannot_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, last = os.pread, frame_offsets(path, 3)[-1]

    def failing(descriptor: int, length: int, offset: int) -> bytes:
        if offset + length > last:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", failing)
    refused(path, TraceWriteError, f"{path}.partial: io: cannot read: Input/output error (at byte 0)", 5)


BEGUN = "the trace was begun with"
AGAIN = "resume with the arguments of its beginning, or begin a new trace"
RUN = "resume the run that began the trace, or begin a new trace"
NO_B = {"w": np.zeros((2, 2), np.float32)}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"steps": -1}, "steps: expected at least 0, got -1"),
        ({"record": "full"}, f"record: {BEGUN} 'grads', got 'full'; {AGAIN}"),
        ({"numerics": 2}, f"numerics: {BEGUN} 1, got 2; {AGAIN}"),
        ({"seed": 5}, f"seed: {BEGUN} 0, got 5; {AGAIN}"),
        ({"rule": "none@2"}, f"rule: {BEGUN} ['none@1'], got ['none@2']; {RUN}"),
        ({"hyperparameters": ["x"]}, f"hyperparameters: {BEGUN} [('lr',)], got [('x',)]; {RUN}"),
        ({"params": NO_B | {"b": np.zeros(2)}}, f"{BEGUN} param 'b' f32 (2,), got param 'b' f64 (2,); {RUN}"),
        ({"params": NO_B}, f"{BEGUN} param 'b' f32 (2,), got state 'step' i64 (); {RUN}"),
        ({"state": STATE | {"m": np.zeros(2)}}, f"{BEGUN} no more tensors, got state 'm' f64 (2,); {RUN}"),
    ],
)
def test_another_run(path: Path, changes: dict[str, Any], text: str) -> None:
    refused(path, ValueError, f"resume: {text}", **changes)


def test_another_state_names_the_first_tensor_that_differs(path: Path) -> None:
    with open_trace(partial(path)) as trace:
        recorded, given = (trace[step].state_digests["w"].hex() for step in (3, 4))
    text = (
        f"resume: 'w' is not what the trace says it was after 4 steps: expected the digest {recorded}, got {given}; "
        f"load the checkpoint of that step of this run"
    )
    refused(path, ValueError, text, 4, params=params_after(5))
    for name, steps, part in (("corrections", 4, "state"), ("b", 0, "params")):
        arrays = STATE if part == "state" else params_after(steps)
        text = f"resume: '{name}' is not what the trace says it was after {steps} steps"
        refused(path, ValueError, text, steps, **{part: arrays | {name: arrays[name] + arrays[name].dtype.type(1)}})
    resume(path, 4).close()


def test_a_state_is_compared_with_a_seal_too(tmp_path: Path) -> None:
    """A writer that was killed between the seal and the rename leaves a whole trace under the name of a part."""
    with begin(tmp_path / "t", state_every=4) as recorder:
        go_on(recorder)
    os.rename(tmp_path / "t", tmp_path / "t.partial")
    with pytest.raises(ValueError, match="'w' is not what the trace says it was after 6 steps"):
        resume(tmp_path / "t", 6, params=params_after(5))
    resume(tmp_path / "t", 5, params=params_after(1)).close()  # no digest of this state was recorded


def test_a_state_is_compared_with_its_step_where_a_seal_leaves_it_out(tmp_path: Path) -> None:
    recorder = begin(tmp_path / "t")
    go_on(recorder)
    with pytest.raises(NonFiniteError):
        recorder.step(
            CompletedStep(step=STEPS, loss=np.array(np.nan), hyper={}, grads={}, params={}, state={}, batch=())
        )
    recorder.seal()
    (tmp_path / "t").rename(tmp_path / "t.partial")
    refused(tmp_path / "t", ValueError, "'w' is not what the trace says it was", params=params_after(5))


def test_no_step_of_a_finished_trace_is_cut_off(tmp_path: Path) -> None:
    with begin(tmp_path / "t") as recorder:
        go_on(recorder)
    before = (tmp_path / "t").read_bytes()
    with pytest.raises(TraceWriteError) as caught:
        resume(tmp_path / "t", 1, params=params_after(1))
    assert str(caught.value) == (
        f"trace: cannot resume {tmp_path}/t after 1 steps: it is finished, with {STEPS} steps, and none of them is cut "
        f"off. Load a checkpoint of step {STEPS} to continue; to train on from step 1, use dgrr fork, or a trace of "
        "another name"
    )
    assert [(f.name, f.read_bytes()) for f in tmp_path.iterdir()] == [("t", before)]


def test_a_finished_trace_goes_on_from_its_last_state_alone(tmp_path: Path) -> None:
    with begin(tmp_path / "t") as recorder:
        go_on(recorder)
    before = (tmp_path / "t").read_bytes()
    with pytest.raises(ValueError, match="'w' is not what the trace says it was after .*expected the digest .*, got"):
        resume(tmp_path / "t", STEPS, params=params_after(1))
    assert [(f.name, f.read_bytes()) for f in tmp_path.iterdir()] == [("t", before)]


def test_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(TraceWriteError) as caught:
        resume(tmp_path / "t", 0)
    assert (
        str(caught.value) == f"trace: cannot resume {tmp_path}/t: there is no {tmp_path}/t.partial; begin a new trace"
    )
    with pytest.raises(TraceWriteError, match="it exists and is not a regular file"):
        resume(tmp_path, 0)
    (tmp_path / "u.partial").mkdir()
    with pytest.raises(TraceWriteError, match=r"cannot write .*u\.partial: it exists and is not a regular file"):
        resume(tmp_path / "u", 0)


def test_one_writer_at_a_time(path: Path) -> None:
    recorder = resume(path, STEPS)
    assert b'"step": 6' in partial(path).read_bytes()  # written at once
    with pytest.raises(TraceWriteError, match=r"another writer is at work on .*t\.partial: choose another path"):
        resume(path, STEPS)
    recorder.close()


def begin_anew(path: Path, steps: int) -> TraceRecorder:
    return begin(path, overwrite=True)


@pytest.mark.parametrize("again", [resume, begin_anew])
def test_a_file_that_gets_its_final_name_just_now_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch, again: Callable[[Path, int], TraceRecorder]
) -> None:
    before, real = partial(path).read_bytes(), fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        os.rename(partial(path), path)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(TraceWriteError, match=r"another process has just finished or replaced .*t\.partial; look"):
        again(path, STEPS)
    assert path.read_bytes() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, os.strerror(errno.EIO))], ids=["end", "EIO"])
def test_a_death_while_resuming_leaves_a_trace_to_resume(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """At whichever of the calls that change files: the torn tail is kept, then cut, and then the file grows again."""
    kept, cut = ["fsync", "fsync"], ["ftruncate", "fsync"]
    calls, log = [*kept, *cut, "writev", "fsync", "writev"], list[str]()
    torn = partial(path).read_bytes()[: frame_offsets(path, 4)[1] + 10]  # in the COMMIT after step 4
    for survived in range(len(calls)):
        partial(path).write_bytes(torn)
        log.clear()
        with monkeypatch.context() as patch:
            for name in set(calls):
                patch.setattr(os, name, dying(name, log, survived, error))
            with pytest.raises((KeyboardInterrupt, TraceWriteError)):
                resume(path, 4, commit_every=2)
        assert log == calls[: survived + 1]
        report = validate(partial(path))
        assert (report.verdict, report.steps) == (Verdict.UNSEALED if survived > 2 else Verdict.TORN_TAIL, 4)
        assert Path(f"{path}.torn").exists() == (survived > 0)
        Path(f"{path}.torn").unlink(missing_ok=True)
    with resume(path, 4, commit_every=2) as recorder:
        go_on(recorder)
    assert (validate(path).verdict, validate(path).steps) == (Verdict.OK, STEPS)


def test_a_torn_tail_that_cannot_be_kept_is_not_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial(path).write_bytes(partial(path).read_bytes()[:-5])
    Path(f"{path}.torn").mkdir()
    text = f"cannot keep what is cut off in {path}.torn: it exists and is not a regular file"
    refused(path, TraceWriteError, text, steps=4)


def dying(name: str, log: list[str], survived: int, error: BaseException) -> Callable[..., Any]:
    real: Callable[..., Any] = getattr(os, name)

    def call(*args: Any) -> Any:
        log.append(name)
        if len(log) > survived:
            raise error
        return real(*args)

    return call
