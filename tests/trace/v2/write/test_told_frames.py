"""NOTES and VALIDATION: what is told of a run beside its steps, in every file that is made of its trace."""

import json
import platform
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.keep import Keep
from dgrr.base.runs.run import RuleGroup, Run
from dgrr.trace import (
    CompletedStep,
    InvalidTraceError,
    Trace,
    TraceRecorder,
    TraceWriteError,
    compare,
    open_recorder,
    open_trace,
    recover,
    resume_recorder,
    validate,
)
from dgrr.trace.v2.repair.rollback import rollback_v2

from ..format.minimal import Minimal
from ..read.test_op_frames import followed_by
from ..repair.test_recover import bounds_of, flipped

VALIDATION, NOTES = 132, 133
CONFIG: dict[str, Any] = {"lr": 0.5, "layers": [64, 10], "data": "digits"}
W = np.array([1.0, -2.0])


def run_of(step: int = 0) -> Run:
    return Run({"w": W - step}, {}, [RuleGroup("sgd@1", ("lr",))], numerics=1)


def go_on(recorder: TraceRecorder, until: int, validate_every: int | None = 2) -> None:
    for k in range(recorder.steps, until):
        told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {"w": W + k}, "params": {"w": W - k - 1}, "state": {}}
        recorder.step(CompletedStep(step=k, loss=np.array(1.0 / (k + 1)), batch=W, **told))
        if validate_every is not None and not (k + 1) % validate_every:
            recorder.validation(figures(k))


def figures(k: int) -> dict[str, float]:
    return {"validation_loss": 2.0 / (k + 1), "validation_acc": k / 8}


def recorded(path: Path, steps: int = 6, validate_every: int | None = 2, **options: Any) -> Path:
    given: dict[str, Any] = {"salt": bytes(16), "created_at": 10**18, "keyframe_every": 2, "notes": CONFIG} | options
    with open_recorder(Keep(path, **given), run_of()) as recorder:
        go_on(recorder, steps, validate_every)
    return path


def told(trace: Trace) -> tuple[list[tuple[int, dict[str, Any]]], dict[int, dict[str, float]]]:
    return [(steps, noted.notes) for steps, noted in trace.noted()], trace.validations()


ALL = ([(0, CONFIG)], {k: figures(k) for k in (1, 3, 5)})


def test_they_are_read(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    assert validate(path).ok
    assert "recorded, not proven: notes, validation" in str(validate(path))
    with open_trace(path) as trace:
        assert (told(trace), trace.notes) == (ALL, CONFIG)
        ((steps, noted),) = trace.noted()
        assert (steps, noted.time) == (0, "2001-09-09T01:46:40Z")
        assert noted.host["name"] == platform.node()
        assert {"dgrr", "numpy", "numba", "python", "cpu", "system"} <= noted.host.keys()
        assert [view.validation() for view in trace] == [{}, figures(1), {}, figures(3), {}, figures(5)]
        assert trace[1].shown() == {"validation": figures(1)}
        assert trace.validation(-1) == figures(5)


def test_a_second_reader_knows_them_and_an_older_one_skips_them(tmp_path: Path) -> None:
    data = recorded(tmp_path / "t").read_bytes()
    new, old = Minimal(data), Minimal(data, newest=131)
    assert [step.validation for step in new.steps] == [{}, figures(1), {}, figures(3), {}, figures(5)]
    ((steps, noted),) = new.notes
    assert (steps, noted["notes"], noted["time"]) == (0, CONFIG, "2001-09-09T01:46:40Z")
    assert [step.link for step in old.steps] == [step.link for step in new.steps]
    assert not any(step.validation for step in old.steps)


def test_without_notes_there_is_no_such_frame(tmp_path: Path) -> None:
    """Nothing of the host or the clock is in a file that was not asked for it: its bytes are those of the run."""
    options: dict[str, Any] = {"notes": None, "validate_every": None}
    data = recorded(tmp_path / "t", **options).read_bytes()
    assert set(Minimal(data).order).isdisjoint({VALIDATION, NOTES})
    assert recorded(tmp_path / "again", **options).read_bytes() == data
    with open_trace(tmp_path / "t") as trace:
        assert (trace.notes, trace.noted(), trace.validations(), trace.validation(0)) == ({}, [], {}, {})


def test_of_no_notes_the_host_and_the_time_are_noted(tmp_path: Path) -> None:
    with open_trace(recorded(tmp_path / "t", notes={})) as trace:
        ((steps, noted),) = trace.noted()
        assert (steps, trace.notes, noted.notes, noted.host["name"]) == (0, {}, {}, platform.node())


def test_two_recordings_with_notes_differ_in_them_and_not_in_the_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorded(tmp_path / "one")
    assert recorded(tmp_path / "same").read_bytes() == one.read_bytes()  # one machine, one time, one salt
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    other = recorded(tmp_path / "other", notes=CONFIG | {"data": "faces"}, validate_every=None)
    bare = recorded(tmp_path / "bare", notes=None, validate_every=None)
    assert len({path.read_bytes() for path in (one, other, bare)}) == 3
    ends: list[Any] = []
    for path in (one, other, bare):
        with open_trace(path) as trace:
            assert trace.seal is not None
            ends.append((trace.seal.link, trace.seal.final))
        assert compare(one, path).same
    assert ends[0] == ends[1] == ends[2]


# ------------------------------------------------------------------ of one trace another


def test_a_resumed_run_notes_once_more(tmp_path: Path) -> None:
    path = tmp_path / "t"
    keep = Keep(path, notes=CONFIG, created_at=0)
    recorder = open_recorder(keep, run_of())
    go_on(recorder, 4)
    recorder.close()
    with resume_recorder(Keep(path, notes=CONFIG | {"lr": 0.25}), run_of(2), steps=2) as recorder:
        recorder.validation({"validation_loss": 9.0})  # the one that is there stands
        go_on(recorder, 6)
    assert validate(path).ok
    with open_trace(path) as trace:
        assert told(trace) == ([(0, CONFIG), (2, CONFIG | {"lr": 0.25})], ALL[1])
        first, second = [noted.time for _, noted in trace.noted()]
        assert (first, second > "2020") == ("1970-01-01T00:00:00Z", True)
        assert trace.notes["lr"] == 0.25
    with resume_recorder(Keep(path), run_of(6), steps=6) as recorder:  # finished, and goes on without notes
        go_on(recorder, 8)
    with open_trace(path) as trace:
        assert told(trace) == ([(0, CONFIG), (2, CONFIG | {"lr": 0.25})], ALL[1] | {7: figures(7)})


def test_a_run_that_was_killed_before_its_validation_is_validated_then(tmp_path: Path) -> None:
    recorder = open_recorder(Keep(tmp_path / "t"), run_of())
    go_on(recorder, 2, None)
    recorder.close()
    with resume_recorder(Keep(tmp_path / "t"), run_of(2), steps=2) as recorder:
        recorder.validation(figures(1))
    with open_trace(tmp_path / "t") as trace:
        assert trace.validations() == {1: figures(1)}


def test_a_trace_that_was_rolled_back_has_those_up_to_there(tmp_path: Path) -> None:
    rollback_v2(recorded(tmp_path / "t"), 4, tmp_path / "child")
    assert validate(tmp_path / "child").ok
    with open_trace(tmp_path / "child") as trace:
        assert told(trace) == ([(0, CONFIG)], {1: figures(1), 3: figures(3)})


def test_damage_takes_the_frames_that_it_meets(tmp_path: Path) -> None:
    data = recorded(tmp_path / "t").read_bytes()
    for kind, name, left in (
        (NOTES, "NOTES", ([], ALL[1])),
        (VALIDATION, "VALIDATION", (ALL[0], {k: figures(k) for k in (3, 5)})),
    ):
        (tmp_path / "hurt").write_bytes(flipped(data, bounds_of(data, kind)[0][0] + 60))
        with open_trace(tmp_path / "hurt", mode="salvage") as trace:
            assert told(trace) == left
        (tmp_path / "new").unlink(missing_ok=True)
        found = recover(tmp_path / "hurt", tmp_path / "new")
        assert (found.lost_frames, [part.steps for part in found.parts]) == ({name: 1}, [6])
        with open_trace(tmp_path / "new") as trace:
            assert told(trace) == left


def test_notes_behind_one_step_are_told_apart(tmp_path: Path) -> None:
    """A run that was resumed twice behind step 1; each of its notes is a frame of its own, kept or lost."""
    path = recorded(tmp_path / "t", steps=2)
    for number in (1, 2):
        resume_recorder(Keep(path, notes={"attempt": number}), run_of(2), steps=2).seal()
    noted = [(0, CONFIG), (2, {"attempt": 1}), (2, {"attempt": 2})]
    with open_trace(path) as trace:
        assert told(trace)[0] == noted
    data = path.read_bytes()
    for lost in ([1], [2], [1, 2]):
        hurt = data
        for i in lost:
            hurt = flipped(hurt, bounds_of(data, NOTES)[i][0] + 60)
        (tmp_path / "hurt").write_bytes(hurt)
        (tmp_path / "new").unlink(missing_ok=True)
        assert recover(tmp_path / "hurt", tmp_path / "new").lost_frames == {"NOTES": len(lost)}
        with open_trace(tmp_path / "new") as trace:
            assert told(trace)[0] == [row for i, row in enumerate(noted) if i not in lost]
    rollback_v2(path, 2, tmp_path / "copy")
    copy = (tmp_path / "copy").read_bytes()
    for name, whole, i in (("a", data, 1), ("b", copy, 2)):
        (tmp_path / name).write_bytes(flipped(whole, bounds_of(whole, NOTES)[i][0] + 60))
    assert recover([tmp_path / "a", tmp_path / "b"], tmp_path / "both").lost_frames == {}
    with open_trace(tmp_path / "both") as trace:
        assert sorted(told(trace)[0], key=str) == sorted(noted, key=str)


def test_behind_a_lost_step_the_notes_come_first(tmp_path: Path) -> None:
    """The second stretch begins with the KEYFRAME before step 4; the step of the second validation is lost."""
    data = recorded(tmp_path / "t").read_bytes()
    (tmp_path / "hurt").write_bytes(flipped(data, bounds_of(data, 3)[3][0] + 60))
    found = recover(tmp_path / "hurt", tmp_path / "new")
    assert [(part.first, part.steps) for part in found.parts] == [(0, 3), (4, 2)]
    assert found.lost_frames == {"STEP": 1, "VALIDATION": 1}
    parts = [open_trace(part.path) for part in found.parts]
    assert [told(trace) for trace in parts] == [([(0, CONFIG)], {1: figures(1)}), ([(0, CONFIG)], {1: figures(5)})]
    for trace in parts:
        trace.close()


def test_halves_of_a_run_have_all_of_both(tmp_path: Path) -> None:
    data = recorded(tmp_path / "t").read_bytes()
    for name, kind in (("a", NOTES), ("b", VALIDATION)):
        (tmp_path / name).write_bytes(flipped(data, bounds_of(data, kind)[0][0] + 60))
    found = recover([tmp_path / "a", tmp_path / "b"], tmp_path / "new")
    assert found.verdict.value == "ok"
    with open_trace(tmp_path / "new") as trace:
        assert told(trace) == ALL


# ------------------------------------------------------------------ what is refused


def test_what_no_trace_can_hold(tmp_path: Path) -> None:
    with open_recorder(Keep(tmp_path / "t"), run_of()) as recorder:
        with pytest.raises(ValueError, match=r"recorder.validation: expected a step to be recorded before"):
            recorder.validation(figures(0))
        go_on(recorder, 1)
        for given, text in (
            ({}, "recorder.validation: figures: expected one at least, got none"),
            ({"": 0.5}, "recorder.validation: figures: names of figures have 1 to 255 bytes, got 0"),
            ({f"{i:0250}": 0.5 for i in range(251)}, "validation: expected at most 65536 bytes in all, got 65770"),
        ):
            with pytest.raises(ValueError, match=re.escape(text)):
                recorder.validation(given)
    assert validate(tmp_path / "t").ok


def test_a_large_note_needs_a_large_payload(tmp_path: Path) -> None:
    keep = Keep(tmp_path / "t", notes={"text": "x" * 5000}, largest_payload=4096)
    with pytest.raises(TraceWriteError, match="choose a largest_payload above it"):
        open_recorder(keep, run_of())


def noted_front(**changed: Any) -> bytes:
    return json.dumps({"notes": {}, "host": {"name": "h"}, "time": "2026-11-26T05:38:47Z", **changed}).encode()


READ = "corrupt: NOTES 2: it cannot be read: "


@pytest.mark.parametrize(
    ("front", "text"),
    [
        (noted_front(), "unsealed"),
        (b"", READ),
        (b"[]", READ + "expected an object with host, notes and time"),
        (noted_front(more=1), READ + "expected an object with host, notes and time"),
        (noted_front(notes=[]), READ + "expected host and notes to be objects, and time to be a text"),
        (noted_front(host={"threads": 0.5}), READ + "expected texts and whole numbers of the host"),
        (noted_front(time="now"), READ + "time data 'now' does not match format"),
        (noted_front(time="2026-11-26\x1b05:38:47Z"), READ + "time data '2026-11-26\\x1b05:38:47Z' does not match"),
        (noted_front(notes={"lr": float("nan")}), READ + "expected finite numbers, got NaN"),
        (noted_front().replace(b'"h"', b"1e999"), READ + "expected finite numbers, got 1e999"),
        (noted_front(notes={"a": [[[[[[[]]]]]]]}), READ + "JSON nested more than 8 deep"),
        (b"\xff", READ + "'utf-8' codec"),
        (b" " * (1 << 17) + noted_front(), "corrupt: a front of 131140 bytes (at most 131072)"),
    ],
)
def test_notes_that_lie(tmp_path: Path, front: bytes, text: str) -> None:
    assert text in followed_by(tmp_path, (NOTES, front, 2))


ONE = struct.pack("<IIdI1s", 1, 0, 0.5, 1, b"a")


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([(VALIDATION, ONE, 1)], "unsealed"),
        ([(VALIDATION, ONE, 0)], "corrupt: VALIDATION 0 after 2 steps"),
        ([(VALIDATION, ONE, 1)] * 2, "corrupt: VALIDATION 1 after 2 steps"),
        ([(VALIDATION, struct.pack("<II", 0, 0), 1)], "corrupt: VALIDATION 1: it has no figure, or a name twice"),
        ([(VALIDATION, ONE + b"x", 1)], "corrupt: VALIDATION 1: its front has 22 bytes, 21 follow from its fields"),
        ([(NOTES, noted_front(), 1)], "corrupt: NOTES 1 after 2 steps"),
        ([(NOTES, noted_front(), 2)] * 2, "unsealed"),
    ],
)
def test_frames_in_the_wrong_place(tmp_path: Path, frames: Any, text: str) -> None:
    assert text in followed_by(tmp_path, *frames)


def test_a_sealed_file_that_lies_is_refused_when_it_is_read(tmp_path: Path) -> None:
    data = recorded(tmp_path / "t").read_bytes()
    for kind, read in ((NOTES, Trace.noted), (VALIDATION, Trace.validations)):
        (tmp_path / "hurt").write_bytes(flipped(data, bounds_of(data, kind)[0][0] + 60))
        with open_trace(tmp_path / "hurt") as trace, pytest.raises(InvalidTraceError):
            read(trace)
