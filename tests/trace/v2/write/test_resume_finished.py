"""Going on with a finished trace: it stays until the longer one is sealed, whatever happens meanwhile."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base import system
from dgrr.trace import CompletedStep, TraceRecorder, TraceWriteError, open_trace, validate

from ....keeping import recorder_of, resumed

STATE: dict[str, Any] = {"step": np.array(0)}
NAMES: dict[str, Any] = {"rule": "none@1", "hyperparameters": ["lr"], "numerics": 1, "record": "grads"}
BEFORE, AFTER = 6, 9


def params_after(steps: int) -> dict[str, Any]:
    return {"w": np.full((2, 2), float(steps), np.float32)}


def begin(path: Path) -> TraceRecorder:
    return recorder_of(path, params=params_after(0), state=STATE, salt=bytes(16), created_at=0, **NAMES)


def resume(path: Path, steps: int, **changes: Any) -> TraceRecorder:
    told: dict[str, Any] = {"steps": steps, "params": params_after(steps), "state": STATE}
    return resumed(path, **(told | NAMES | changes))


def train(recorder: TraceRecorder, until: int) -> None:
    for step in range(recorder.steps, until):
        after = params_after(step + 1)
        told: dict[str, Any] = {"loss": np.array(1.0), "hyper": {"lr": 0.5}, "grads": after, "batch": (np.arange(3),)}
        recorder.step(CompletedStep(step=step, params=after, state=STATE, **told))


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A finished trace of six steps."""
    with begin(tmp_path / "t") as recorder:
        train(recorder, BEFORE)
    return tmp_path / "t"


def link_of_the_whole(folder: Path) -> bytes:
    """The last link of nine steps that nobody interrupted."""
    with begin(folder / "whole") as recorder:
        train(recorder, AFTER)
        return recorder.link


def test_it_stays_until_the_longer_one_is_sealed(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = path.read_bytes()
    with resume(path, BEFORE) as recorder:
        train(recorder, AFTER)
        assert path.read_bytes() == before
    with open_trace(path) as trace:
        assert (len(trace), trace.sealed) == (AFTER, True)
        assert trace[AFTER - 1].link == link_of_the_whole(tmp_path_factory.mktemp("other"))
    assert validate(path).ok
    assert list(files(path.parent)) == ["t"]


def test_what_was_killed_on_the_way_goes_on_from_either(path: Path) -> None:
    before = path.read_bytes()
    recorder = resume(path, BEFORE)
    train(recorder, AFTER)
    recorder.close()
    assert path.read_bytes() == before
    with pytest.warns(UserWarning, match="is unfinished or goes on"), open_trace(path) as trace:
        assert len(trace) == BEFORE
    with open_trace(f"{path}.partial", mode="tolerate_tail") as trace:
        assert len(trace) == AFTER
    with resume(path, AFTER - 1) as recorder:
        train(recorder, AFTER)
    assert len(open_trace(path)) == AFTER
    assert validate(path).ok


@pytest.mark.parametrize("copied", [0, 100, -1])
def test_a_copy_that_was_broken_off_is_made_again(path: Path, copied: int) -> None:
    Path(f"{path}.partial").write_bytes(path.read_bytes()[:copied])
    with resume(path, BEFORE) as recorder:
        train(recorder, AFTER)
    assert validate(path).ok
    assert len(open_trace(path)) == AFTER


def test_another_run_that_is_unfinished_beside_it_is_left_alone(path: Path) -> None:
    other = recorder_of(path, overwrite=True, params=params_after(0), state=STATE, **NAMES)
    train(other, 2)
    other.close()
    before = files(path.parent)
    with pytest.raises(TraceWriteError, match=r"cannot resume .*t\.partial after 6 steps: it holds 2 whole steps"):
        resume(path, BEFORE)
    assert files(path.parent) == before


@pytest.mark.parametrize(
    ("steps", "changes", "text"),
    [
        (BEFORE, {"params": params_after(1)}, "'w' is not what the trace says it was after 6 steps"),
        (BEFORE, {"seed": 3}, "seed: the trace was begun with 0, got 3"),
        (BEFORE + 1, {}, r"cannot resume .*/t.* after 7 steps: it holds 6 whole steps"),
    ],
)
def test_a_refusal_leaves_nothing_behind(path: Path, steps: int, changes: dict[str, Any], text: str) -> None:
    before = files(path.parent)
    with pytest.raises((ValueError, TraceWriteError), match=text):
        resume(path, steps, **changes)
    assert files(path.parent) == before


def test_a_full_disk_leaves_the_finished_trace_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(path.parent)

    def full(descriptor: int, views: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(system, "write", full)
    with pytest.raises(TraceWriteError, match="No space left on device"):
        resume(path, BEFORE)
    assert files(path.parent) == before


def test_one_writer_at_a_time(path: Path) -> None:
    recorder = resume(path, BEFORE)
    with pytest.raises(TraceWriteError, match=r"another writer is at work on .*t\.partial"):
        resume(path, BEFORE)
    recorder.close()
