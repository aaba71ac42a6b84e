"""Fronts made in one compiled call against those made of their parts: of every kind of step, the same bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import CompletedStep, NonFiniteError, TraceRecorder, open_trace, validate
from dgrr.trace.v2.write.fronts import StepFronts

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


def begun(path: Path, record: str, every: int) -> TraceRecorder:
    return recorder_of(
        path,
        record=record,
        params=PARAMS,
        state=STATE,
        model_state=MODEL_STATE,
        rule="none@1",
        hyperparameters=["lr"],
        numerics=1,
        state_every=every,
    )


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("record", ["digest", "grads", "full"])
def test_both_ways_write_the_same(record: str, every: int, tmp_path: Path) -> None:
    steps = [completed(i, change) for i, change in enumerate(STEPS)]
    with begun(tmp_path / "a", record, every) as one, begun(tmp_path / "b", record, every) as other:
        other._fronts._prepared = None
        for done in steps:
            one.step(done)
            other.step(done)
            assert one._last_front == other._last_front
    assert (tmp_path / "a").stat().st_size == (tmp_path / "b").stat().st_size
    with open_trace(tmp_path / "a") as a, open_trace(tmp_path / "b") as b:
        assert [s.link for s in a] == [s.link for s in b]
    assert validate(tmp_path / "a").ok


@pytest.mark.parametrize(("every", "by_parts"), [(1, [6, 9, 10, 11]), (3, [6, 9, 11])])
def test_only_what_does_not_fit_is_made_of_its_parts(
    every: int, by_parts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN in a batch, a transposed gradient, NaN in a param where the state is due, a strided buffer."""
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
            links.append(recorder._last_front)
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
