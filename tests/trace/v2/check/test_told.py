"""What a trace tells and nothing in it proves is named as that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.trace import at, open_trace, replay, validate
from dgrr.trace.v2.check.told import OnlyTold
from dgrr.trace.v2.format.frames import EVENT, EventRecord

RecordRun = Callable[..., Path]
BATCHES = [np.arange(4.0), np.ones(4), np.full(4, 2.0)]


def plain_loss(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


def shown_loss(p: Any, x: Any) -> Any:
    return plain_loss(p, x), {"mean": p["w"].mean()}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    def train(loss_fn: Any = plain_loss, steps: int = 6, name: str = "t") -> Path:
        trainer = Trainer(loss_fn, {"w": np.ones(4)}, SGD(0.1), trace=tmp_path / name, mode="eager")
        trainer.fit(BATCHES, steps=steps, progress=False)
        return tmp_path / name

    return train


def test_nothing_is_said_where_all_is_held(run: Callable[..., Path]) -> None:
    assert validate(run()).notes == []


def test_metrics(run: Callable[..., Path]) -> None:
    report = validate(run(shown_loss))
    assert report.ok
    assert report.notes == ["recorded, not proven: metrics"]
    assert "\n  recorded, not proven: metrics" in str(report)


def test_the_parent_of_a_run(run: Callable[..., Path], tmp_path: Path) -> None:
    at(run(), 2, plain_loss, BATCHES).continue_with(SGD(0.2), steps=2, trace=tmp_path / "child")
    report = replay(tmp_path / "child", loss_fn=plain_loss, batches=[*BATCHES[2:], *BATCHES[:2]])
    assert report.ok
    assert "recorded, not proven: parent root" in report.notes


def test_an_environment_of_which_the_text_is_gone(run: Callable[..., Path]) -> None:
    with open_trace(run()) as trace:
        told = OnlyTold(trace.header)
    assert told.notes() == ["the text of the environment is not there, only its digest"]
    told.take(EVENT.code, EventRecord("note", "environment"))
    assert told.notes()
    told.take(EVENT.code, EventRecord("environment", "{}"))
    assert told.notes() == []


@pytest.mark.parametrize(("steps", "left"), [(3, 0), (4, 2), (5, 1), (6, 0)])
def test_batches_that_are_left(run: Callable[..., Path], steps: int, left: int) -> None:
    report = replay(run(steps=steps), loss_fn=plain_loss, batches=BATCHES)
    assert report.ok
    said = [f"the trace ends before its batches do: {left} of an iteration are left"] if left else []
    assert report.notes == said


def test_batches_of_unknown_number(run: Callable[..., Path]) -> None:
    class Endless:
        def __iter__(self) -> Any:
            return iter(BATCHES)

    assert replay(run(steps=4), loss_fn=plain_loss, batches=Endless()).notes == []
