"""Steps recorded by one compiled call against those made of their parts: of every kind of step, the same files."""

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
from dgrr.trace import CompletedStep, NonFiniteError, TraceRecorder, TraceWriteError, open_trace, validate
from dgrr.trace.v2.format.constants import MORE, SYNC
from dgrr.trace.v2.format.layout import FrameLayout
from dgrr.trace.v2.format.step import STEP, StepRecord
from dgrr.trace.v2.write import writer
from dgrr.trace.v2.write.fronts import StepFronts
from dgrr.trace.v2.write.writer import HELD_BYTES

from ....fuzz.surgery import COMMIT, File
from ....keeping import recorder_of

RNG = np.random.default_rng(3)


def some(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


PARAMS = {"w": some(3, 4), "b": some(4, dtype=np.float64), "big": some(300, 100)}
STATE = {"m": some(3, 4), "step": np.array(0)}
MODEL_STATE = {"mean": some(4), "count": np.array(3)}

Change = dict[str, Any]

STEPS: list[Change] = [
    {},
    {"loss": np.array(2.5)},
    {"batch": {"x": some(2, 2), "é": np.arange(3, dtype=np.int16)}},
    {"batch": some(5)},
    {"batch": ()},
    {"batch": ([1.5, 2.5], np.array(True))},
    {"batch": (np.array([np.inf, np.nan], np.float32),)},
    {"grads": {"b": some(4, dtype=np.float64), "w": some(3, 4)}},
    {"grads": {}},
    {"grads": {**PARAMS, "w": some(4, 3).T}},
    {"params": {**PARAMS, "w": np.full((3, 4), np.nan, np.float32)}},
    {"model_state": {"mean": some(8)[::2], "count": np.array(4)}},
    {"clip": (1.5, float("nan")), "micro_batches": 3, "order": "tree"},
    {"metrics": {"accuracy": 0.5}},
    {},
]


def completed(number: int, change: Change) -> CompletedStep:
    given: dict[str, Any] = {
        "step": number,
        "loss": np.array(1.5, np.float32),
        "hyper": {"lr": 0.5},
        "grads": PARAMS,
        "params": PARAMS,
        "state": STATE,
        "model_state": MODEL_STATE,
        "batch": (some(2, 3), np.arange(2)),
    }
    return CompletedStep(**(given | change))


def begun(path: Path, record: str, every: int = 1, **chosen: Any) -> TraceRecorder:
    given: dict[str, Any] = {"params": PARAMS, "state": STATE, "model_state": MODEL_STATE}
    law: dict[str, Any] = {"rule": "none@1", "hyperparameters": ["lr"], "numerics": 1}
    same: dict[str, Any] = {"salt": bytes(range(16)), "created_at": 1}
    return recorder_of(path, record=record, state_every=every, **(given | law | same | chosen))


def as_declared(layout: FrameLayout, record: StepRecord) -> bytes:
    """The front of a record, field by field as the format declares them."""
    grads, buffers = len(record.grads), len(record.grads) + layout.schema.buffers
    threshold, scale = record.clip or (0.0, 0.0)
    return STEP.front(layout).encode(
        record.step,
        link=record.link,
        batch_id=record.batch_id,
        dtype={"float32": 1, "float64": 2}[record.loss.dtype.name],
        flags=record.flags,
        micro_batches=record.micro_batches,
        loss=int.from_bytes(record.loss.tobytes(), "little"),
        threshold=threshold,
        scale=scale,
        input_digest=record.input_digest,
        hyper=record.hyper,
        corrections=record.corrections,
        grads=record.grads,
        gradients=record.digests[:grads],
        buffers=record.digests[grads:buffers],
        state=record.digests[buffers:],
        root=record.root,
    )


def record_of(recorder: TraceRecorder) -> StepRecord:
    """What the STEP says that was recorded last."""
    return recorder._last.record(recorder.steps - 1)


def both_ways(folder: Path, steps: list[CompletedStep], record: str, every: int = 1, **chosen: Any) -> bytes:
    """The file of some steps, of which those made of their parts have the same bytes."""
    with begun(folder / "a", record, every, **chosen) as one, begun(folder / "b", record, every, **chosen) as other:
        other._prepared = None
        for done in steps:
            one.step(done)
            other.step(done)
            assert one._last.front == other._last.front == as_declared(one._layout, record_of(one))
            assert record_of(one).link == one.link == other.link
    made = (folder / "a").read_bytes()
    assert made == (folder / "b").read_bytes()
    report = validate(folder / "a")
    assert (report.ok, report.steps) == (True, len(steps))
    return made


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("record", ["digest", "grads", "full", "bare"])
def test_both_ways_write_the_same_files(record: str, every: int, tmp_path: Path) -> None:
    both_ways(tmp_path, [completed(i, change) for i, change in enumerate(STEPS)], record, every)


@pytest.mark.parametrize("record", ["digest", "grads"])
def test_files_with_indexes_commits_keyframes_and_metrics_between(record: str, tmp_path: Path) -> None:
    small = {name: array for name, array in PARAMS.items() if name != "big"}
    own: Change = {"params": small, "grads": small}
    steps = [completed(i, own | ({"metrics": {"a": float(i)}} if i % 100 == 7 else {})) for i in range(2100)]
    chosen = {"params": small, "keyframe_every": 300, "commit_every": 700, "clip_value": 2.5}
    assert len(both_ways(tmp_path, steps, record, **chosen)) > 2 * HELD_BYTES


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bias_corrections_are_read_where_they_lie(dtype: Any, tmp_path: Path) -> None:
    """In steps whose state is digested, and others."""
    states = [STATE | {"corrections": np.array([0.1 * i, 0.3 * i], dtype)} for i in range(7)]
    steps = [completed(i, {"state": state}) for i, state in enumerate(states)]
    both_ways(tmp_path, steps, "digest", 3, state=states[0])
    with open_trace(tmp_path / "a") as trace:
        assert [trace[i].corrections for i in range(7)] == [tuple(state["corrections"].tolist()) for state in states]


def test_frames_that_are_cut_are_made_of_parts(tmp_path: Path) -> None:
    made = both_ways(tmp_path, [completed(i, {}) for i in range(3)], "grads", largest_payload=4096)
    assert made.count(SYNC + bytes([STEP.code, MORE])) > 3 * 20


def test_steps_that_are_not_finite_are_recorded_where_that_is_asked_for(tmp_path: Path) -> None:
    nan = np.full((3, 4), np.nan, np.float32)
    changes = [{}, {"grads": {**PARAMS, "w": nan}}, {"loss": np.array(np.inf)}, {}]
    steps = [completed(i, change) for i, change in enumerate(changes)]
    both_ways(tmp_path, steps, "grads", on_nonfinite="record")


def test_what_is_held_back_is_written_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a tenth of a second, or when it is too much; a frame that is too long to be held brings it along."""
    clock = [0.0]
    monkeypatch.setattr(writer, "monotonic", lambda: clock[0])
    with begun(tmp_path / "t", "digest") as recorder:
        partial = tmp_path / "t.partial"

        def grown(change: Change, seconds: float = 0.0) -> int:
            clock[0] += seconds
            before = partial.stat().st_size
            recorder.step(completed(recorder.steps, change))
            return partial.stat().st_size - before

        assert grown({}, 1) > 0
        assert [grown({}), grown({}, 0.05), grown({}, 0.04)] == [0, 0, 0]
        four = grown({}, 0.02)
        assert four == 4 * (four // 4) > 0
        steps = HELD_BYTES // (four // 4)
        assert [grown({}) for _ in range(steps + 1)] == [0] * steps + [(steps + 1) * (four // 4)]


def test_a_file_that_takes_no_more_is_told_before_anything_is_counted(tmp_path: Path) -> None:
    recorder = begun(tmp_path / "t", "digest")
    recorder.step(completed(0, {}))
    recorder.close()
    for _ in range(2):
        with pytest.raises(TraceWriteError, match="takes no more data: it was closed"):
            recorder.step(completed(1, {}))
        assert recorder.steps == 1


@pytest.mark.parametrize(("every", "by_parts"), [(1, [6, 9, 10, 11, 12]), (3, [6, 9, 11, 12])])
def test_only_what_does_not_fit_is_made_of_its_parts(
    every: int, by_parts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN in a batch, a transposed gradient, NaN in a param whose state is due, a strided buffer, NaN as scale."""
    made, encoded = list[int](), StepFronts._encoded

    def noted(self: StepFronts, previous: bytes, done: CompletedStep, *parts: Any) -> bytes:
        made.append(done.step)
        return encoded(self, previous, done, *parts)

    monkeypatch.setattr(StepFronts, "_encoded", noted)
    with begun(tmp_path / "t", "digest", every) as recorder:
        for i, change in enumerate(STEPS):
            recorder.step(completed(i, change))
    assert made == by_parts


def test_arrays_that_are_changed_in_place_are_read_anew(tmp_path: Path) -> None:
    w, links = some(3, 4), list[bytes]()
    with begun(tmp_path / "t", "digest", 1) as recorder:
        for i in range(3):
            recorder.step(completed(i, {"params": {**PARAMS, "w": w}}))
            w[0, 0] += i
            links.append(recorder._last.front)
    with open_trace(tmp_path / "t") as trace:
        roots = [trace[i].root for i in range(3)]
    assert roots[0] == roots[1] != roots[2]


def test_a_nan_that_comes_later_is_found(tmp_path: Path) -> None:
    grad = some(3, 4)
    with begun(tmp_path / "t", "digest", 1) as recorder:
        for i in range(2):
            recorder.step(completed(i, {"grads": {**PARAMS, "w": grad}}))
        grad[1, 2] = -np.inf
        with pytest.raises(NonFiniteError, match="got -inf in 'w' at flat element 6 of step 2"):
            recorder.step(completed(2, {"grads": {**PARAMS, "w": grad}}))


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
