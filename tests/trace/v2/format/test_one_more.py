"""A frame type that only this test declares: what reads, saves, copies, shows, fuzzes or documents frames knows it."""

import re
import runpy
import struct
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.keep import Keep
from dgrr.base.runs.run import RuleGroup, Run
from dgrr.trace import CompletedStep, open_recorder, open_trace, recover, validate
from dgrr.trace.cli.answer import part
from dgrr.trace.cli.inspection import step_facts
from dgrr.trace.v2.format.fields import F64, TEXT, U32, Field, Texts, zero
from dgrr.trace.v2.format.frame_type import FramePlace, FrameType
from dgrr.trace.v2.format.frames import FRAMES
from dgrr.trace.v2.format.of_step import OPS
from dgrr.trace.v2.read.scan import Walk
from dgrr.trace.v2.repair.forge import forge_gradient
from dgrr.trace.v2.repair.rollback import rollback_v2

from ..read.test_damage import frame_bounds
from ..read.test_op_frames import followed_by

ROOT = Path(__file__).parents[4]

MARKS = FrameType(
    200,
    "MARKS",
    FramePlace.AFTER,
    "marks that somebody gave step k",
    (
        Field("n", U32, None, "number n of marks", counts="marks", at_most=lambda bounds: 9),
        zero(U32),
        Field("marks", F64, "n", "the marks"),
        Texts("by", TEXT, "n", "who gave them"),
    ),
    lambda here, said: dict(zip(said["by"], said["marks"], strict=True)),
    largest=200,
    told="marks",
    shown=dict,
)


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is written for the type."""
    monkeypatch.setitem(FRAMES, MARKS.code, MARKS)


def recorded(path: Path, steps: int = 6, record: Any = "grads") -> Path:
    """A run whose steps are marked, a keyframe before every second."""
    w = np.array([1.0, -2.0])
    run = Run({"w": w}, {}, [RuleGroup("sgd@1", ("lr",))], numerics=1)
    with open_recorder(Keep(path, record=record, keyframe_every=2), run) as recorder:
        writer = recorder._writer  # pyright: ignore[reportPrivateUsage]
        for k in range(steps):
            told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {"w": w + k}, "params": {"w": w - k}, "state": {}}
            recorder.step(CompletedStep(step=k, loss=np.array(1.0), batch=w, metrics={"a": 1.0}, **told))
            front = MARKS.front(writer.layout).encode(marks=[0.5, float(k)], by=["ann", "béa"])
            writer.told(MARKS, front)
    return path


def marks(path: Path) -> list[Any]:
    with open_trace(path) as trace:
        facts: list[Any] = [part("step", step_facts(trace, view)).value for view in trace]
        return [each.get("marks") for each in facts]


def given(*steps: int) -> list[Any]:
    return [{"ann": 0.5, "béa": float(k)} for k in steps]


def test_it_is_read_shown_and_told(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    assert validate(path).ok
    assert "recorded, not proven: marks, metrics" in str(validate(path))
    assert marks(path) == given(*range(6))
    with open_trace(path) as trace:
        assert trace[3].shown() == {"marks": given(3)[0], "metrics": {"a": 1.0}}


def front(count: int = 1, name: bytes = b"ann", rest: bytes = b"") -> bytes:
    return struct.pack("<IIdI", count, 0, 0.5, len(name)) + name + rest


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([(200, front(), 1)], "unsealed"),
        ([(200, front(), 0)], "corrupt: MARKS 0 after 2 steps"),
        ([(200, front(), 1)] * 2, "corrupt: MARKS 1 after 2 steps"),
        ([(200, front(2), 1)], "corrupt: MARKS 1: its front of 23 bytes ends inside 'marks'"),
        ([(200, front(rest=b"x"), 1)], "corrupt: MARKS 1: its front has 24 bytes, 23 follow from its fields"),
        ([(200, front(name=b"\xff"), 1)], "corrupt: MARKS 1: 'by': 'utf-8' codec"),
        ([(200, bytes(201), 1)], "corrupt: a front of 201 bytes (at most 200)"),
    ],
)
def test_the_walk_knows_it(tmp_path: Path, frames: Any, text: str) -> None:
    assert text in followed_by(tmp_path, *frames)


@pytest.mark.parametrize(("code", "text"), [(127, "unsupported"), (128, "unsealed")])
def test_of_types_that_nobody_declares_those_from_128_on_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, text: str
) -> None:
    monkeypatch.delitem(FRAMES, OPS.code)
    monkeypatch.setattr(Walk, "_ops", lambda *_: None)
    assert text in followed_by(tmp_path, (code, b"", 1))


def test_it_is_copied_and_forged(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    rollback_v2(path, 3, tmp_path / "child")
    forge_gradient(path, tmp_path / "forged", 2, "w")
    assert marks(tmp_path / "child") == given(0, 1, 2)
    assert marks(tmp_path / "forged") == given(*range(6))


def test_it_is_saved_from_damage_and_counted_where_it_is_lost(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    data = bytearray(path.read_bytes())
    starts = [start for start, _ in frame_bounds(path.read_bytes()) if data[start + 4] == MARKS.code]
    data[starts[1] + 60] ^= 1
    (tmp_path / "hurt").write_bytes(data)
    found = recover(tmp_path / "hurt", tmp_path / "new")
    assert (found.lost_frames, found.lost_steps) == ({"MARKS": 1}, ())
    assert marks(tmp_path / "new") == [*given(0), None, *given(2, 3, 4, 5)]
    with open_trace(tmp_path / "hurt", mode="salvage") as trace:
        assert [view.shown().get("marks") for view in trace] == [*given(0), None, *given(2, 3, 4, 5)]
    data = bytearray(path.read_bytes())
    data[starts[4] + 60] ^= 1
    (tmp_path / "other").write_bytes(data)
    assert recover([tmp_path / "hurt", tmp_path / "other"], tmp_path / "both").verdict.value == "ok"
    assert marks(tmp_path / "both") == given(*range(6))


def test_the_fuzzer_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fields are changed where they begin, and other frames are taken for it."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "fuzz"))
    mutate: Any = runpy.run_path(str(ROOT / "tests" / "fuzz" / "mutate.py"))
    file = mutate["File"].parse(recorded(tmp_path / "t").read_bytes())
    (first, *_) = [frame for frame in file.frames if frame.kind == MARKS.code]
    assert mutate["fields_at"](file, first) == {"n": 0, "zero": 4}
    file.frames = [frame for frame in file.frames if frame.kind != MARKS.code]
    for seed in range(300):
        mutate["move_frames"](changed := deepcopy(file), Random(seed))
        if MARKS.code in {frame.kind for frame in changed.frames}:
            return
    raise AssertionError("no frame was taken for one of the type")


def test_the_page_knows_it() -> None:
    docs: Any = runpy.run_path(str(ROOT / "docs" / "generate_trace_format.py"))
    assert (
        "| 200 | MARKS | k: between STEP k and STEP k+1, at most once |  | marks that somebody gave step k |"
        in docs["types"]()
    )
    assert "| 8 | `n` × f64 | `marks` | the marks |" in docs["fields"](MARKS)
    page = (ROOT / "docs" / "trace_format.md").read_text()
    assert docs["page"](page) != page


def test_no_list_of_types_stands_beside_the_declarations() -> None:
    """METRICS asks nothing of the file: beside its declaration it is named where it is written, step by step and in
    launches, and where it is read."""
    sources = [*(ROOT / "trace").rglob("*.py"), ROOT / "tests" / "fuzz" / "mutate.py"]
    naming = {
        path.name
        for path in sources
        if re.search(r"\bMETRICS\b", re.sub(r'""".*?"""', "", path.read_text(), flags=re.S))
    }
    written = {"recorder.py", "prepared_frames.py", "prepared_metrics.py"}
    assert naming == {"of_step.py", "frames.py", *written, "recorded.py"}
