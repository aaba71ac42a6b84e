"""Steps recorded by one compiled call against those made of their parts: of every kind of step, the same files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import CompletedStep, NonFiniteError, TraceRecorder, TraceWriteError, open_trace, validate
from dgrr.trace.v2.format.constants import MORE, SYNC
from dgrr.trace.v2.format.layout import FrameLayout
from dgrr.trace.v2.format.step import STEP, StepRecord
from dgrr.trace.v2.write import writer
from dgrr.trace.v2.write.fronts import StepFronts
from dgrr.trace.v2.write.writer import HELD_BYTES

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
