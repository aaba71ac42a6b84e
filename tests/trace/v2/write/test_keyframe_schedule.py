"""How often whole states are kept: by steps, by time, within a budget; the state chain is always the same."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.tape import DomainError
from dgrr.trace import at, compare, open_trace, replay, validate
from dgrr.trace.v2.write import keyframe_schedule
from dgrr.trace.v2.write.keyframe_schedule import KeyframeSchedule

from ....keeping import kept

RecordRun = Callable[..., Path]


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


def written(schedule: KeyframeSchedule, steps: int, first: int = 0) -> list[int]:
    """Before which steps keyframes stand."""
    found = []
    for k in range(first, steps):
        if schedule.is_due(k):
            schedule.wrote(k)
            found.append(k)
    return found


def keyframes(path: Path | str) -> list[int]:
    with open_trace(path) as trace:
        return [k for k in range(len(trace) + 1) if trace.has_keyframe(k)]


def test_by_steps() -> None:
    assert written(KeyframeSchedule(4, None, nbytes=8, state_every=1), 13) == [0, 4, 8, 12]
    assert written(KeyframeSchedule(5, None, nbytes=8, state_every=4), 25) == [0, 8, 16, 24]


@pytest.mark.parametrize(
    ("room", "found"),
    [
        (0, [0]),
        (1, [0, 2]),
        (2, [0, 2, 6]),
        (8, [0, 2, 4, 6, 8, 12, 16, 24, 40]),
    ],
)
def test_a_budget_doubles_the_distance_when_half_of_the_rest_is_used_up(room: int, found: list[int]) -> None:
    for nbytes, more in ((100, 0), (100, 99)):
        assert written(KeyframeSchedule(2, room * nbytes + more, nbytes=nbytes, state_every=1), 1000) == found


def test_a_schedule_that_goes_on() -> None:
    """After a resumption: as it would have been."""
    whole = [0, 2, 4, 6, 8, 12, 16, 24, 40]
    for n in range(1, len(whole) + 1):
        last = whole[n - 1]
        rest = KeyframeSchedule(2, 8, nbytes=1, state_every=1, last=last, written=n)
        assert written(rest, 100, first=last) == whole[n:]


def test_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes a second; states are digested every second step."""
    now = [0.0]
    monkeypatch.setattr(keyframe_schedule, "monotonic", lambda: now[0])
    schedule, found = KeyframeSchedule(timedelta(seconds=5), None, nbytes=8, state_every=2), list[int]()
    for k in range(20):
        if schedule.is_due(k):
            schedule.wrote(k)
            found.append(k)
        now[0] += 1.0
    assert found == [0, 6, 12, 18]
    now[0] = 0.0
    schedule, found = KeyframeSchedule(timedelta(seconds=1), 4 * 8, nbytes=8, state_every=1), []
    for k in range(20):
        if schedule.is_due(k):
            schedule.wrote(k)
            found.append(k)
        now[0] += 1.0
    assert found == [0, 1, 2, 4, 8]


def train(path: Path, **options: Any) -> None:
    trainer = Trainer(loss_fn, {"w": np.ones(4)}, SGD(0.1, momentum=0.9), mode="eager", **kept(path, options))
    trainer.fit([np.arange(4.0), np.ones(4)], steps=24, progress=False)


def test_the_state_chain_is_the_same_whatever_the_keyframes_are(tmp_path: Path) -> None:
    size = 2 * 4 * 8 + 8 + 8  # w, its momentum, the count of steps, the lengths of the front
    digests = 16 * 4
    ways: dict[str, dict[str, Any]] = {
        "none": {},
        "steps": {"keyframe_every": 4},
        "budget": {"keyframe_every": 2, "keyframe_budget": 4 * (size + digests)},
        "always": {"keyframe_every": timedelta(microseconds=1)},
        "never": {"keyframe_every": timedelta(days=1)},
        "nothing": {"keyframe_every": 1, "keyframe_budget": 0},
    }
    for name, options in ways.items():
        train(tmp_path / name, record="digest", **options)
        assert validate(tmp_path / name).ok
        assert replay(tmp_path / name, loss_fn=loss_fn, batches=[np.arange(4.0), np.ones(4)]).ok
    assert {name: keyframes(tmp_path / name) for name in ways} == {
        "none": [0],
        "steps": [0, 4, 8, 12, 16, 20, 24],
        "budget": [0, 2, 4, 8, 16],
        "always": list(range(25)),
        "never": [0],
        "nothing": [0],
    }
    chains = set()
    for name in ways:
        with open_trace(tmp_path / name) as trace:
            chains.add(trace[23].link)
        assert compare(tmp_path / "none", tmp_path / name, proven=True).same
    assert len(chains) == 1
    past = [at(tmp_path / name, 23, loss_fn, [np.arange(4.0), np.ones(4)]) for name in ("none", "budget", "always")]
    assert [p.keyframe for p in past] == [0, 16, 23]
    assert len({p.params["w"].tobytes() for p in past}) == 1


def test_a_budget_holds_for_a_resumed_run_too(tmp_path: Path) -> None:
    def run(path: Path, dies: bool) -> None:
        def tell(trainer: Any, step: int, loss: float) -> None:
            if dies and step == 9:
                raise KeyboardInterrupt

        place = path.with_suffix(".ckpt")
        callback = type("Dies", (), {"on_step": staticmethod(tell)})()
        keep = Keep(path, record="digest", keyframe_every=1, keyframe_budget=700)
        saved: dict[str, Any] = {"checkpoint": place, "checkpoint_every": 5, "callbacks": [callback]}
        trainer = Trainer(loss_fn, {"w": np.ones(4)}, SGD(0.1), mode="eager", trace=keep, **saved)
        if place.exists():
            trainer.load(place)
        trainer.fit([np.ones(4)], steps=24, progress=False)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "t", dies=True)
    run(tmp_path / "t", dies=False)
    run(tmp_path / "whole", dies=False)
    assert keyframes(tmp_path / "t") == keyframes(tmp_path / "whole")
    assert len(keyframes(tmp_path / "t")) < 9


@pytest.mark.parametrize("given", [0, -1, 1.5, timedelta(0), timedelta(seconds=-1), "30s"])
def test_what_is_no_distance(given: Any) -> None:
    with pytest.raises(DomainError) as caught:
        Keep("t", keyframe_every=given)
    expected = "expected a whole number of at least 1, or a timedelta above 0"
    assert str(caught.value) == f"Keep: argument 'keyframe_every': {expected}, got {given!r}"


@pytest.mark.parametrize("given", [-1, 0.5, "1GB"])
def test_what_is_no_budget(given: Any) -> None:
    with pytest.raises(DomainError) as caught:
        Keep("t", keyframe_budget=given)
    expected = "expected a whole number of bytes of at least 0 or None"
    assert str(caught.value) == f"Keep: argument 'keyframe_budget': {expected}, got {given!r}"


def test_inspect_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dgrr.trace.cli.main import main

    train(tmp_path / "t", record="digest", keyframe_every=10)
    assert main(["inspect", str(tmp_path / "t")]) == 0
    assert "  3 keyframes, at most 10 steps apart\n" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "t"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["trace"]["keyframes"] == [0, 10, 20]
