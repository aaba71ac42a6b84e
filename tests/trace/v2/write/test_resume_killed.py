"""A process that is killed again and again, and goes on from its checkpoints, leaves the trace of an unkilled one."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Verdict, open_trace, replay, validate

PROGRAM = """
import os, sys
from pathlib import Path
import numpy as np
from dgrr.runtime import Adam
from dgrr.tape import NUMERICS
from dgrr.trace import CompletedStep, open_recorder, resume_recorder

path, size, total = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
saved = path.with_suffix(".npz")
rule = Adam(1e-2)
params = {"w": np.random.default_rng(0).standard_normal(size), "b": np.zeros(3, np.float32)}
state = rule.init(params)
law = {"rule": rule.rule, "hyperparameters": list(rule.hyperparameters()), "numerics": NUMERICS}
often = {"record": "grads", "keyframe_every": 60, "commit_every": 50}
done = 0
if saved.exists():
    with np.load(saved) as checkpoint:
        done = int(checkpoint["done"])
        for arrays in (params, state):
            for name, array in arrays.items():
                array[...] = checkpoint[name]
    recorder = resume_recorder(path, steps=done, params=params, state=state, **law, **often)
else:
    recorder = open_recorder(path, params=params, state=state, state_every=4, overwrite=True, **law, **often)
for step in range(done, total):
    rng = np.random.default_rng(step)
    grads = {name: rng.standard_normal(p.shape).astype(p.dtype) for name, p in params.items()}
    rule.step(params, grads, state)
    recorder.step(CompletedStep(step=step, loss=np.array(float(step)), hyper=rule.hyperparameters(), grads=grads,
        params=params, state=state, batch=(grads["w"],)))
    if step % 7 == 6:
        recorder.commit()
        with open(f"{saved}.tmp", "wb") as file:
            np.savez(file, done=step + 1, **params, **state)
        os.replace(file.name, saved)
        if step < done + 7:
            print("saved", flush=True)
recorder.seal()
"""


def start(path: Path, size: int, steps: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, str(path), str(size), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_soon(path: Path, size: int, steps: int) -> None:
    with start(path, size, steps) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "saved\n"
        time.sleep(random.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert validate(f"{path}.partial").verdict in (Verdict.UNSEALED, Verdict.TORN_TAIL)


def end(path: Path, size: int, steps: int) -> None:
    with start(path, size, steps) as process:
        assert process.wait() == 0


@pytest.mark.parametrize(("size", "steps"), [(10, 1200), (20_000, 240)])
def test_killed_and_resumed_is_uninterrupted(tmp_path: Path, size: int, steps: int) -> None:
    random.seed(size)
    killed, alive = tmp_path / "killed.dgrr", tmp_path / "alive.dgrr"
    for _ in range(4):
        kill_soon(killed, size, steps)
    end(killed, size, steps)
    end(alive, size, steps)
    report = replay(killed)
    assert (report.verdict, report.update, report.steps) == (Verdict.OK, "proven", steps)
    with open_trace(killed) as ours, open_trace(alive) as theirs:
        resumed = [number for number, event in ours.events() if event.kind == "resume"]
        assert len(set(resumed)) == 4
        assert ours.seal is not None
        assert theirs.seal is not None
        assert (ours.seal.steps, ours.seal.link, ours.seal.final) == (steps, theirs.seal.link, theirs.seal.final)
        for a, b in zip(ours, theirs, strict=True):
            assert a.record == b.record
            assert bits(ours.gradients(a.step)) == bits(theirs.gradients(b.step))
        for k in range(0, steps + 1, 60):
            assert bits(ours.keyframe(k)) == bits(theirs.keyframe(k))


def bits(arrays: dict[str, Any]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}
