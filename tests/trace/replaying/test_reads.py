"""How often replay reads a file: once to validate it, and each step once more to recompute it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import ops
from dgrr.trace import open_trace, replay
from dgrr.trace.v2.format.constants import HEAD_LENGTH
from dgrr.trace.v2.format.limits import Limits
from dgrr.trace.v2.format.step import STEP
from dgrr.trace.v2.read.scan import Walk
from dgrr.trace.v2.read.source import Frame, FrameSource, Source
from dgrr.trace.v2.repair.forge import forge_gradient

BATCHES = [(np.full((4, 3), k + 1.0), np.full((4, 2), 0.5)) for k in range(3)]


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    ctx.update("mean", ctx.state["mean"] * 0.75)
    return ops.mse_loss(ops.linear(batch[0], p["w"]), batch[1]), ctx.state


@pytest.fixture
def path(tmp_path: Path) -> Path:
    model_state = {"mean": np.ones(3)}
    Trainer(loss_fn, {"w": np.ones((2, 3))}, SGD(0.1), model_state=model_state, trace=tmp_path / "t").fit(BATCHES)
    return tmp_path / "t"


def steps_of(path: Path) -> list[Frame]:
    """The STEP frames of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    walk = Walk(FrameSource(Source(descriptor, Limits())))
    found = [frame for frame, _ in walk if frame.type == STEP.code]
    os.close(descriptor)
    return found


class CountingSource:
    """The ranges that were read from any file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ranges: list[tuple[int, int]] = []
        read, read_into = Source.read, Source.read_into

        def counted(source: Source, offset: int, length: int) -> bytes:
            self.ranges.append((offset, offset + length))
            return read(source, offset, length)

        def counted_into(source: Source, offset: int, memory: memoryview) -> None:
            self.ranges.append((offset, offset + len(memory)))
            read_into(source, offset, memory)

        monkeypatch.setattr(Source, "read", counted)
        monkeypatch.setattr(Source, "read_into", counted_into)

    def times(self, start: int, length: int) -> int:
        """How often the bytes from `start` on were read; every one of them as often."""
        counts = {sum(a <= at < b for a, b in self.ranges) for at in range(start, start + length)}
        assert len(counts) == 1
        return counts.pop()


def counts(source: CountingSource, steps: list[Frame]) -> Iterator[tuple[int, int]]:
    """Of each step, how often its front and its body were read."""
    for frame in steps:
        front = frame.offset + HEAD_LENGTH
        body = front + len(frame.front)
        yield source.times(front, len(frame.front)), source.times(body, frame.body_length)


@pytest.mark.parametrize(
    ("model", "bodies"),
    [
        ({}, 2),
        ({"loss_fn": loss_fn, "batches": BATCHES}, 1),
        ({"loss_fn": loss_fn, "batches": BATCHES, "mode": "eager"}, 2),
    ],
    ids=["file", "model", "op by op"],
)
def test_replay_reads_each_step_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], bodies: int
) -> None:
    """But gradients once, to hold them against their digests, where the model gives the same digests."""
    steps = steps_of(path)
    source = CountingSource(monkeypatch)
    assert replay(path, **model).ok
    assert list(counts(source, steps)) == [(2, bodies)] * 3


def test_a_difference_is_named_without_reading_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = path.with_name("forged")
    forge_gradient(path, forged, 0, "w")
    steps = steps_of(forged)
    source = CountingSource(monkeypatch)
    report = replay(forged, loss_fn=loss_fn, batches=BATCHES)
    assert (report.verdict.value, report.findings[0].step) == ("gradient", 0)
    assert next(counts(source, steps)) == (2, 2)


def test_a_view_reads_its_front_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of(path)
    with open_trace(path) as trace:
        source = CountingSource(monkeypatch)
        view = trace[1]
        assert list(view.gradients()) == ["w"]
        assert list(view.buffers()) == list(view.after()) == ["mean"]
    front = steps[1].offset + HEAD_LENGTH
    assert source.times(front, len(steps[1].front)) == 1
