"""Steps that are recorded in launches: the same files as one by one, and where a launch ends."""

import copy
import dataclasses
import errno
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base import system
from dgrr.base.runs.completed_step import StepNumbers
from dgrr.tape.numerics.engine import machine
from dgrr.trace import CompletedStep, TraceRecorder, TraceWriteError, open_trace, validate

from ....fuzz.surgery import COMMIT, File
from .test_prepared import begun, completed, record_of, some

NO_NUMBERS = StepNumbers(None, {})


class Run:
    """A run whose arrays stay where they are, step by step."""

    def __init__(self, *, clipped: bool = False, metrics: tuple[str, ...] = (), big: bool = False) -> None:
        self.clipped = clipped
        scale = np.array(0.25) if clipped else None
        self.numbers = StepNumbers(scale, {name: np.array(0.5 + i) for i, name in enumerate(metrics)})
        rows = 3000 if big else 3
        self.params, self.grads = {"w": some(rows, 4), "b": some(4)}, {"w": some(rows, 4), "b": some(4)}
        self.state = {"m": some(rows, 4), "corrections": np.array([0.5, 0.25])}
        self.loss, self.batch = np.array(1.0, np.float32), (some(2, 3), np.arange(2))

    def done(self, step: int) -> CompletedStep:
        scale, metrics = self.numbers
        own = {"params": self.params, "grads": self.grads, "state": self.state, "model_state": {}}
        own["clip"] = None if scale is None else (1.5, float(scale))
        own["metrics"] = {name: float(number) for name, number in metrics.items()}
        return completed(step, {**own, "loss": self.loss, "batch": self.batch, "hyper": {"lr": 0.5 + step}})

    def train(self) -> None:
        arrays = (self.loss, *self.params.values(), *self.grads.values(), *self.state.values(), *self.batch)
        for array in (*arrays, *self.numbers.metrics.values(), *([self.numbers.scale] if self.clipped else [])):
            array += 1

    def begun(self, path: Path, record: str, every: int, **chosen: Any) -> TraceRecorder:
        return begun(path, record, every, params=self.params, state=self.state, model_state={}, **chosen)


def launch(run: Run, recorder: TraceRecorder, steps: int) -> int:
    """Do as many of these steps as one launch may have, or one; how many."""
    first = recorder.steps
    rows = recorder.rows(run.done(first), [run.done(i).hyper for i in range(first, first + steps)], run.numbers)
    if rows is None:
        run.train()
        recorder.step(run.done(first))
        return 1
    for i in range(rows.steps):
        run.train()
        assert machine.run(rows.rows.ctypes.data, len(rows.rows), 0, np.zeros(2, np.int64)) == 0
        assert recorder.steps == first + i + 1
    recorder.recorded(run.done(first + rows.steps - 1), rows)
    return rows.steps


NUMBERS: list[dict[str, Any]] = [
    {},
    {"clipped": True},
    {"metrics": ("accuracy", "é")},
    {"clipped": True, "metrics": ("accuracy",)},
    {"big": True},
    {"big": True, "metrics": ("accuracy",)},
]


@pytest.mark.parametrize("numbers", NUMBERS, ids=["plain", "clipped", "metrics", "both", "big", "big with metrics"])
@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("record", ["digest", "grads"])
def test_several_steps_in_one_launch(record: str, every: int, numbers: dict[str, Any], tmp_path: Path) -> None:
    """Launches end before steps whose state is due, INDEX, COMMIT and KEYFRAME; the first step is alone.

    Between the STEP before marks and its METRICS these stand: it is alone, too. By parts the bytes are the same.
    """
    chosen = {"commit_every": 60, "keyframe_every": 100, "clip_value": 1.5}
    one, lengths = Run(**numbers), list[int]()
    other = copy.deepcopy(one)
    with one.begun(tmp_path / "a", record, every, **chosen) as single:
        single._prepared = None
        for step in range(190):
            one.train()
            single.step(one.done(step))
    with other.begun(tmp_path / "b", record, every, **chosen) as several:
        while several.steps < 190:
            lengths.append(launch(other, several, min(50, 190 - several.steps)))
        assert record_of(several).hyper == (1.5, 189.5)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    marks = [59, 60] if "metrics" in numbers else [60]
    ends = [1, 51, *marks, 100, *(n + 60 for n in marks), 170] if every == 1 else [1, 4, 5, 9, 10]
    assert list(itertools.accumulate(lengths))[: len(ends)] == ends
    with open_trace(tmp_path / "b") as trace:
        assert [view.metrics() for view in trace] == [
            {name: 0.5 + i + view.step + 1 for i, name in enumerate(numbers.get("metrics", ()))} for view in trace
        ]
        scales = [None if view.clip is None else view.clip[1] for view in trace]
        assert scales == [step + 1.25 if "clipped" in numbers else None for step in range(190)]


def test_steps_that_are_recorded_alone(tmp_path: Path) -> None:
    run = Run()
    with run.begun(tmp_path / "t", "digest", 1, ops=[9, 12]) as recorder:
        hyper = [run.done(0).hyper] * 80

        def room(done: CompletedStep | None = None, numbers: StepNumbers = NO_NUMBERS) -> int:
            rows = recorder.rows(run.done(recorder.steps) if done is None else done, hyper, numbers)
            return 0 if rows is None else rows.steps

        assert room() == 0  # the first
        recorder.step(run.done(0))
        assert room() == 8  # up to the one whose ops are wanted
        assert room(run.done(3)) == 0  # not the next
        for change in ({"batch": (some(9),)}, {"grads": {}}):
            assert room(dataclasses.replace(run.done(1), **change)) == 0
        number = np.array(0.5)
        for numbers in (StepNumbers(number, {}), StepNumbers(None, {"a": number})):  # as in no step before
            assert room(dataclasses.replace(run.done(1), clip=(1.0, 0.5)), numbers) == 0
        for step in range(1, 13):
            recorder.step(run.done(step))
        assert room() == 64
    with pytest.raises(TraceWriteError, match="takes no more"):
        room()


def test_rows_end_at_what_is_not_finite_and_count_nothing(tmp_path: Path) -> None:
    run = Run()
    with run.begun(tmp_path / "t", "digest", 1) as recorder:
        recorder.step(run.done(0))
        rows, fault = recorder.rows(run.done(1), [run.done(1).hyper] * 5, NO_NUMBERS), np.zeros(2, np.int64)
        assert rows is not None
        args = (rows.rows.ctypes.data, len(rows.rows), 0, fault)
        assert machine.run(*args) == 0
        run.params["b"][2] = np.inf
        assert machine.run(*args) == 1
        recorder.recorded(run.done(2), rows)
        assert recorder.steps == 3
    assert (validate(tmp_path / "t").ok, validate(tmp_path / "t").steps) == (True, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_scale_that_is_not_finite_ends_a_launch(value: float, tmp_path: Path) -> None:
    """The step is recorded alone then, a NaN in its canonical form."""
    run = Run(clipped=True)
    assert run.numbers.scale is not None
    with run.begun(tmp_path / "t", "digest", 1) as recorder:
        recorder.step(run.done(0))
        rows, fault = recorder.rows(run.done(1), [run.done(1).hyper] * 5, run.numbers), np.zeros(2, np.int64)
        assert rows is not None
        args = (rows.rows.ctypes.data, len(rows.rows), 0, fault)
        assert machine.run(*args) == 0
        run.numbers.scale[...] = -value
        assert machine.run(*args) == 1
        recorder.recorded(run.done(2), rows)
        assert recorder.steps == 3
    with open_trace(tmp_path / "t") as trace:
        assert trace[2].clip is not None
        assert np.float64(trace[2].clip[1]).tobytes() == np.float64(np.nan if np.isnan(value) else -value).tobytes()
    assert validate(tmp_path / "t").ok


@pytest.mark.parametrize("at", [59, 60, 61])
def test_a_launch_that_ends_at_its_first_step_repeats_no_marks(at: int, tmp_path: Path) -> None:
    run = Run()
    with run.begun(tmp_path / "t", "digest", 1, commit_every=60) as recorder:
        for step in range(at):
            recorder.step(run.done(step))
        rows, fault = recorder.rows(run.done(at), [run.done(1).hyper] * 5, NO_NUMBERS), np.zeros(2, np.int64)
        assert rows is not None
        run.params["w"][0, 0] = np.nan
        assert machine.run(rows.rows.ctypes.data, len(rows.rows), 0, fault) == 1
        recorder.recorded(run.done(at), rows)
    kinds = [frame.kind for frame in File.parse((tmp_path / "t").read_bytes()).frames]
    assert kinds.count(COMMIT) == 1


def test_frames_of_metrics_that_are_too_long_are_recorded_alone(tmp_path: Path) -> None:
    run = Run(metrics=tuple(f"{i:03}{'é' * 100}" for i in range(160)))
    with run.begun(tmp_path / "t", "digest", 1) as recorder:
        assert [launch(run, recorder, 3) for _ in range(3)] == [1, 1, 1]
    assert validate(tmp_path / "t").ok


def test_no_launch_records_more_than_can_be_held_back(tmp_path: Path) -> None:
    run = Run()
    run.params["w"], run.grads["w"] = some(40, 100), some(40, 100)
    with run.begun(tmp_path / "t", "grads", 1) as recorder:
        recorder.step(run.done(0))
        rows = recorder.rows(run.done(1), [run.done(1).hyper] * 64, NO_NUMBERS)
        assert rows is not None
        left = len(recorder._writer.held) - int(recorder._writer.held_bytes[0])
        nbytes = recorder._prepared._steps.last[1].nbytes  # type: ignore[union-attr]
        assert rows.steps == left // nbytes < 20
        assert launch(run, recorder, 64) == rows.steps
    assert validate(tmp_path / "t").ok


def big_launch(run: Run, recorder: TraceRecorder) -> tuple[Any, list[Any]]:
    """Rows behind the first step, of frames that are written at once, and how to run them."""
    recorder.step(run.done(0))
    rows = recorder.rows(run.done(1), [run.done(i).hyper for i in range(1, 6)], run.numbers)
    assert rows is not None and rows.steps == 5
    return rows, [rows.rows.ctypes.data, len(rows.rows), 0, np.zeros(2, np.int64)]


def test_long_frames_are_written_as_they_are_made(tmp_path: Path) -> None:
    """Not after the launch: nothing is held back, nor needs memory."""
    run = Run(big=True, metrics=("accuracy",))
    with run.begun(tmp_path / "t", "grads", 1) as recorder:
        rows, args = big_launch(run, recorder)
        before, sizes = (tmp_path / "t.partial").stat().st_size, list[int]()
        for _ in range(3):
            assert not machine.run(*args)
            sizes.append((tmp_path / "t.partial").stat().st_size)
        frame = sizes[2] - sizes[1]
        assert frame > 48000 and sizes[1] - sizes[0] == frame and sizes[0] - before >= frame
        recorder.recorded(run.done(3), rows)
    assert (validate(tmp_path / "t").ok, validate(tmp_path / "t").steps) == (True, 4)


def test_a_write_that_fails_in_a_launch_ends_it_and_names_file_and_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(big=True)
    with run.begun(tmp_path / "t", "grads", 1) as recorder:
        rows, args = big_launch(run, recorder)
        assert not machine.run(*args)

        def full(descriptor: int, buffers: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(system, "write", full)
            assert machine.run(*args) == 1
        with pytest.raises(TraceWriteError, match=r"t\.partial: write failed: No space left on device"):
            recorder.recorded(run.done(2), rows)
    with open_trace(tmp_path / "t.partial") as trace:
        assert len(trace) == 2


def test_a_write_that_is_cut_short_in_a_launch_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, real = Run(big=True), system.write
    with run.begun(tmp_path / "t", "grads", 1) as recorder:
        rows, args = big_launch(run, recorder)
        monkeypatch.setattr(system, "write", lambda file, given: real(file, [given[0][: len(given[0]) // 2 or 1]]))
        assert not machine.run(*args) and not machine.run(*args)
        recorder.recorded(run.done(2), rows)
    assert (validate(tmp_path / "t").ok, validate(tmp_path / "t").steps) == (True, 3)
