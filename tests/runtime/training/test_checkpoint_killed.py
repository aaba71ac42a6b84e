"""A run that SIGKILL ends anywhere, and that is started again, is the run that nobody killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Verdict, open_trace, replay

pytestmark = pytest.mark.xdist_group("killed checkpoints")  # they share what one process made

PROGRAM = """
import json, os, signal, sys, traceback
from pathlib import Path
import numpy as np
from dgrr.runtime import Adam, Callback, Dataset, Trainer
from dgrr.runtime.optim import Cosine
from dgrr.runtime.training.fitting.fit import Fit
from dgrr.tape import nn, ops
from dgrr.trace import TraceRecorder

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RNG = np.random.default_rng(6)
DATA = Dataset(RNG.standard_normal((20, 3)).astype(np.float32), RNG.integers(0, 2, 20))

def loss_fn(p, batch):
    return ops.cross_entropy(MODEL(p, batch[0]), batch[1])

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def killing(holder, name, number, after):
    '''Let the call of this number end the process.'''
    call, calls = getattr(holder, name), 0
    def wrapped(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == number and not after:
            kill()
        result = call(*args, **kwargs)
        if calls == number:
            kill()
        return result
    setattr(holder, name, wrapped)

class KillAt(Callback):
    def __init__(self, step):
        self.step = step
    def on_step(self, trainer, step, loss):
        if step == self.step:
            kill()

CALLS = {
    "begin": (Fit, "_train"),
    "step": (TraceRecorder, "step"),
    "seal": (TraceRecorder, "seal"),
    "write_array": (np.lib.format, "write_array"),
    "fsync": (os, "fsync"),
    "replace": (os, "replace"),
}

def train(folder, point):
    callbacks = []
    if point is not None:
        what, number, after = point
        if what == "on_step":
            callbacks = [KillAt(number)]
        else:
            killing(*CALLS[what], number, after)
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(Cosine(0.05, steps=12)), trace=folder / "run.dgrr", clip_norm=0.2,
                      checkpoint=folder / "run.ckpt", checkpoint_every=3, callbacks=callbacks)
    if (folder / "run.ckpt").exists():
        trainer.load(folder / "run.ckpt")
    before = trainer.steps
    result = trainer.fit(DATA.batches(6, seed=3), epochs=3)
    said = {"before": before, "losses": [x.item().hex() for x in result.losses], "digest": result.state_digest}
    (folder / "said.json").write_text(json.dumps(said))

def in_a_child(folder, point=None):
    pid = os.fork()
    if pid == 0:
        try:
            train(folder, point)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

root = Path(sys.argv[1])
(root / "parent").mkdir()
train(root / "parent", None)  # its children find the kernels loaded
codes = []
for i, points in enumerate([[]] + json.loads(sys.argv[2])):
    folder = root / str(i)
    folder.mkdir()
    codes.append([in_a_child(folder, point) for point in points] + [in_a_child(folder)])
print(json.dumps(codes))
"""

POINTS: list[list[Any]] = [
    *[["on_step", step, False] for step in (0, 1, 2, 5, 7, 11)],  # a step is recorded, its checkpoint not yet saved
    *[["begin", number, after] for number in (1, 3, 4, 11) for after in (False, True)],
    *[["step", number, False] for number in (1, 6)],  # updated, not yet recorded
    *[["write_array", number, False] for number in (1, 9, 20, 40, 60)],
    *[["fsync", number, after] for number in (1, 2, 3, 4, 5, 6, 7) for after in (False, True)],
    *[["replace", number, after] for number in (1, 2, 5) for after in (False, True)],
    ["seal", 1, False],
    ["seal", 1, True],
]
"""Where a process is killed: a call by its number, before or after it."""

SEVERAL = [
    [
        ["on_step", 1, False],
        ["replace", 1, False],
        ["on_step", 4, False],
        ["fsync", 2, True],
        ["write_array", 30, False],
    ],
    [["begin", 1, False]] * 3,
    [["on_step", 2, False]] * 2 + [["on_step", 3, False]] * 2 + [["seal", 1, False]] * 2,
]
"""Processes that are killed one after the other."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[int]]]:
    """The folders of all runs, the first of which nobody killed; and how each process ended."""
    root = tmp_path_factory.mktemp("runs")
    scenarios = [[point] for point in POINTS] + SEVERAL
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(root), json.dumps(scenarios)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    return root, json.loads(ended.stdout)


def contents(folder: Path) -> Any:
    """State chain, fronts and gradients of the trace."""
    with open_trace(folder / "run.dgrr") as trace:
        assert trace.seal is not None
        grads = [{n: g.tobytes() for n, g in trace.gradients(step).items()} for step in range(len(trace))]
        return trace.seal.link, trace.seal.final, [view.record for view in trace], grads


@pytest.mark.parametrize("number", range(1 + len(POINTS) + len(SEVERAL)))
def test_killed_and_started_again_is_uninterrupted(runs: tuple[Path, list[list[int]]], number: int) -> None:
    root, codes = runs
    *killed, last = codes[number]
    assert all(code == -9 for code in killed), "the point was reached"
    assert last == 0
    folder, whole = root / str(number), root / "0"
    said, expected = (json.loads((f / "said.json").read_text()) for f in (folder, whole))
    assert len(expected["losses"]) == 12
    assert said["losses"] == expected["losses"][said["before"] :]
    assert said["digest"] == expected["digest"]
    assert contents(folder) == contents(whole)
    left = {path.name for path in folder.iterdir() if not path.name.startswith("run.dgrr.torn")}  # what was cut off
    assert left - {"run.ckpt.tmp"} == {"run.ckpt", "run.dgrr", "said.json"}
    with open_trace(folder / "run.dgrr") as trace:  # what was computed twice was the same
        assert not [event for _, event in trace.events() if event.kind == "differs"]
    assert replay(folder / "run.dgrr").verdict is Verdict.OK
