"""CALLS: what a step has called, written before its STEP, in every file that is made of its trace."""

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest

from dgrr.base.runs.called_op import CalledOp
from dgrr.base.runs.keep import Keep
from dgrr.trace import Trace, open_recorder, open_trace, recover, resume_recorder, validate
from dgrr.trace.v2.repair.rollback import rollback_v2

from ..format.minimal import Minimal
from ..read.test_op_frames import followed_by
from .test_told_frames import go_on, run_of

CALLS = 134
D = bytes(range(16))


def calls(k: int) -> tuple[CalledOp, ...]:
    """Those of a step: one that gives something, one of the same texts that draws."""
    place = f"net.py:{k}: y = x * {k}.0"
    one = CalledOp("aten.mul.Tensor", f"other={k}.0", (D, D[::-1]), (D,), scope="fc1", place=place)
    return one, CalledOp("aten.mul.Tensor", "", (D,), (), "backward", "fc1", place, draws=True)


def recorded(path: Path, steps: int = 4, **options: Any) -> Path:
    given: dict[str, Any] = {"salt": bytes(16), "created_at": 0, "keyframe_every": 2} | options
    with open_recorder(Keep(path, **given), run_of()) as recorder:
        for k in range(steps):
            recorder.calls(0, calls(k)[:1])
            recorder.calls(1, calls(k)[1:])
            go_on(recorder, k + 1, None)
    return path


def told(trace: Trace) -> list[tuple[CalledOp, ...]]:
    return [view.calls() for view in trace]


def test_they_are_read(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    report = validate(path)
    assert report.ok and "recorded, not proven: calls of ops" in str(report)
    with open_trace(path) as trace:
        assert told(trace) == [calls(k) for k in range(4)]
        assert trace.calls(4) == () and trace.calls(-1) == calls(3)
        with pytest.raises(IndexError):
            trace.calls(5)


def test_an_older_reader_skips_them_and_the_run_is_the_same(tmp_path: Path) -> None:
    data = recorded(tmp_path / "t").read_bytes()
    with open_recorder(Keep(tmp_path / "plain", salt=bytes(16), created_at=0, keyframe_every=2), run_of()) as recorder:
        go_on(recorder, 4, None)
    plain = Minimal((tmp_path / "plain").read_bytes(), newest=133)
    old = Minimal(data, newest=133)
    assert [step.link for step in old.steps] == [step.link for step in plain.steps]
    assert CALLS not in plain.order


def test_a_second_reader_knows_them(tmp_path: Path) -> None:
    found = Minimal(recorded(tmp_path / "t").read_bytes()).calls
    for k in range(4):
        assert found[k] == [
            ([c.name, c.options, c.phase, c.scope, c.place], int(c.draws), [*c.inputs], [*c.outputs]) for c in calls(k)
        ]


def test_a_call_that_is_written_again_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    at_work = CalledOp("aten.mul.Tensor", raised=True)
    with open_recorder(Keep(tmp_path / "t"), run_of()) as recorder:
        recorder.calls(0, [calls(0)[0], at_work])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_trace(tmp_path / "t") as trace:
                assert trace.calls(0) == (calls(0)[0], at_work)
        recorder.calls(1, calls(0)[1:])
        go_on(recorder, 1, None)
    with open_trace(tmp_path / "t") as trace:
        assert trace.calls(0) == calls(0)


def test_a_resumed_step_has_the_calls_of_the_last_time(tmp_path: Path) -> None:
    with open_recorder(Keep(tmp_path / "t"), run_of()) as recorder:
        go_on(recorder, 1, None)
        recorder.calls(0, [*calls(1), *calls(2)])
        recorder.close()
    with resume_recorder(Keep(tmp_path / "t"), run_of(1), steps=1) as recorder:
        recorder.calls(0, calls(1))
        go_on(recorder, 2, None)
    with open_trace(tmp_path / "t") as trace:
        assert trace.calls(1) == calls(1)
    assert validate(tmp_path / "t").ok


def test_copies_have_them(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    recover(path, tmp_path / "new")
    rollback_v2(path, 2, tmp_path / "back")
    for name, steps in (("new", 4), ("back", 2)):
        with open_trace(tmp_path / name) as trace:
            assert told(trace) == [calls(k) for k in range(steps)]


def front(text: Any, digests: int, first: int = 0) -> bytes:
    data = text if isinstance(text, bytes) else json.dumps(text, separators=(",", ":"), sort_keys=True).encode()
    return struct.pack("<IIII", first, len(data), digests, 0) + data + D * digests


def said(*calls: Any, texts: Any = ("mul", "", "forward")) -> dict[str, Any]:
    return {"calls": list(calls), "texts": list(texts)}


ROW = [0, 1, 2, 1, 1, 0, 1, 1]
READ = "corrupt: CALLS 2: it cannot be read: "


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (front(said(ROW), 2), "unsealed"),
        (front(said(ROW, [*ROW[:6], 0, 0]), 2), "unsealed"),
        (front([], 0), READ + "expected an object with calls and texts"),
        (front(said(ROW) | {"more": 1}, 2), READ + "expected an object with calls and texts"),
        (front(said(ROW), 1), READ + "it has fewer digests than its calls"),
        (front(said(ROW), 3), READ + "the JSON is not canonical, or not that of the digests"),
        (front(said(ROW, texts=("mul", "", "forward", "x")), 2), READ + "the JSON is not canonical"),
        (front(said([1, 0, 2, 0, 0, 0, 1, 1], texts=("mul", "", "forward")), 2), READ + "the JSON is not canonical"),
        (front(said([*ROW[:4], 9, 0, 1, 1]), 2), READ + "list index out of range"),
        (front(said([*ROW[:5], 4, 1, 1]), 2), READ + "a call has not the fields of a call"),
        (front(said(ROW[:7]), 2), READ + "a call has not the fields of a call"),
        (front(said([*ROW[:7], -1]), 2), READ + "a call is not a list of numbers"),
        (front(said([*ROW[:7], True]), 2), READ + "a call is not a list of numbers"),
        (front(said({}), 2), READ + "a call is not a list of numbers"),
        (front(said([*ROW[:6], 1 << 40, 1]), 2), READ + "it has fewer digests than its calls"),
        (front({"calls": 3, "texts": []}, 0), READ),
        (front({"calls": [ROW], "texts": 3}, 2), READ),
        (front({"calls": [ROW], "texts": [1, 2, 3]}, 2), READ),
        (front(b"{", 0), READ),
        (front(said([[[[[[[[[]]]]]]]]]), 0), READ + "JSON nested more than 8 deep"),
        (front(said(), 0)[:12], "corrupt: CALLS 2: its front of 12 bytes ends inside 'form'"),
    ],
)
def test_calls_that_lie(tmp_path: Path, data: bytes, text: str) -> None:
    assert text in followed_by(tmp_path, (CALLS, data, 2))


@pytest.mark.parametrize(
    ("step", "text"), [(1, "corrupt: CALLS 1 after 2 steps"), (3, "corrupt: CALLS 3 after 2 steps"), (2, "unsealed")]
)
def test_calls_in_the_wrong_place(tmp_path: Path, step: int, text: str) -> None:
    assert text in followed_by(tmp_path, (CALLS, front(said(ROW), 2), step))


def test_too_much_for_one_frame(tmp_path: Path) -> None:
    with open_recorder(Keep(tmp_path / "t"), run_of()) as recorder:
        with pytest.raises(ValueError, match="calls: expected at most 4194304 bytes in all, got"):
            recorder.calls(0, [CalledOp("aten.cat.default", inputs=(D,) * (1 << 18))])
        recorder.calls(0, calls(0))
        go_on(recorder, 1, None)
    with open_trace(tmp_path / "t") as trace:
        assert trace.calls(0) == calls(0)
