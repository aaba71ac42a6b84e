"""A small run that is recorded, and what is known of it."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from dgrr.trace import CompletedStep, Keep, RuleGroup, Run, TraceRecorder, open_recorder, open_trace, resume_recorder

SIZE = 5000
"""Elements of the parameter: a step has 40 kB, and is written at once."""
STEPS, COMMIT_EVERY, KEYFRAME_EVERY = 7, 2, 4


def params(steps: int, size: int = SIZE) -> dict[str, Any]:
    """After so many steps."""
    return {"w": np.full(size, float(steps)), "b": np.full(2, -float(steps), np.float32)}


def kept(path: Path, **options: Any) -> Keep:
    """What is kept of the run."""
    return Keep(path, **{"commit_every": COMMIT_EVERY, "keyframe_every": KEYFRAME_EVERY} | options)


def after(steps: int, size: int) -> Run:
    """The run as it goes on from there."""
    return Run(params(steps, size), {}, [RuleGroup("none@1")], numerics=1)


def begin(path: Path, *, size: int = SIZE, **options: Any) -> TraceRecorder:
    """Begin the run's trace."""
    return open_recorder(kept(path, **options), after(0, size))


def resume(path: Path, steps: int, *, size: int = SIZE, **options: Any) -> TraceRecorder:
    """Go on behind so many steps."""
    return resume_recorder(kept(path, **options), after(steps, size), steps=steps)


def step(recorder: TraceRecorder, size: int = SIZE) -> None:
    """Record the next step."""
    number, after = recorder.steps, params(recorder.steps + 1, size)
    loss, batch = np.array(1 / (number + 1)), (np.full(2, float(number)),)
    recorder.step(CompletedStep(step=number, loss=loss, hyper={}, grads=after, params=after, state={}, batch=batch))


def record(path: Path, steps: int = STEPS, **options: Any) -> None:
    """The whole run."""
    with begin(path, **options) as recorder:
        while recorder.steps < steps:
            step(recorder)


def unfinished(path: Path, steps: int, torn: int = 0) -> None:
    """The run's `.partial` after so many steps, with as many bytes of the next one."""
    partial = Path(f"{path}.partial")
    for there in (steps, steps + 1) if torn else (steps,):
        whole = partial.stat().st_size if partial.exists() else 0
        recorder = begin(path, overwrite=True)
        while recorder.steps < there:
            step(recorder)
        recorder.close()
    if torn:
        os.truncate(partial, whole + torn)


def links(path: Path) -> list[bytes]:
    """The state chain of a sealed trace."""
    with open_trace(path) as trace:
        assert trace.sealed
        return [view.record.link for view in trace]
