"""Training that is killed at random moments: ``python tests/crash/kill.py [--kills N] [--seed SEED]``.

A process that has everything loaded forks one that trains, and kills it; the next goes on from what is left, until the
run is done. After each kill the trace is a readable prefix, torn or unsealed, that is not behind the checkpoint; and
what comes out in the end is the run that nobody killed: its state chain, its final state, every step and every
gradient. What is found is printed; exit code 1 if there was anything.
"""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from select import select
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Keep, Trainer
from dgrr.runtime.training.saving.checkpoint import read_checkpoint
from dgrr.trace import Verdict, open_trace, replay, validate

STEPS, SAVE_EVERY, KEYFRAME_EVERY = 30, 4, 10
SIZES = (3, 20_000)
"""Elements of the parameter: small frames are held back for a moment, large ones are written at once."""
GOOD = (Verdict.UNSEALED, Verdict.TORN_TAIL)


def loss_fn(p: Any, x: Any) -> Any:
    """Its gradient differs in every step."""
    return (p["w"] * p["w"] * x).sum()


def batches(size: int) -> list[Any]:
    """One for each step."""
    return [np.random.default_rng(step).standard_normal(size) for step in range(STEPS)]


def train(folder: Path, size: int) -> None:
    """What a process does: it begins the run, or goes on with it."""
    trainer = Trainer(
        loss_fn,
        {"w": np.linspace(-1, 1, size)},
        Adam(0.01),
        mode="eager",
        trace=Keep(folder / "t", record="grads", keyframe_every=KEYFRAME_EVERY),
        checkpoint=folder / "c",
        checkpoint_every=SAVE_EVERY,
    )
    if (folder / "c").exists():
        trainer.load(folder / "c")
    trainer.fit(batches(size), progress=False)


def forked(folder: Path, size: int) -> int:
    """Begin a process that trains; its id."""
    child = os.fork()
    if child:
        return child
    try:
        train(folder, size)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def life(folder: Path, size: int, seconds: float) -> int:
    """Let a process train for so long, unless it is done before; how it ended."""
    child = forked(folder, size)
    ended = os.pidfd_open(child)
    select([ended], [], [], seconds)
    os.close(ended)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder: Path) -> Any:
    """All of a sealed trace that depends on the run alone."""
    with open_trace(folder / "t") as trace:
        assert trace.seal is not None
        grads = [{n: g.tobytes() for n, g in trace.gradients(step).items()} for step in range(len(trace))]
        states = [trace.keyframe_digests(step) for step in range(0, STEPS, KEYFRAME_EVERY)]
        return trace.seal.link, trace.seal.final, [view.record for view in trace], grads, states


def check_killed(folder: Path) -> str:
    """The state that a kill has left: raises AssertionError where it breaks a promise."""
    saved = read_checkpoint(folder / "c").steps if (folder / "c").exists() else 0
    if (folder / "t").exists():
        assert validate(folder / "t").ok, "the final name is wrong"
        return "sealed"
    if not (folder / "t.partial").exists():
        assert not saved, "there is a checkpoint, and no trace"
        return "not begun"
    report = validate(folder / "t.partial")
    assert report.verdict in (*GOOD, Verdict.OK), str(report)
    assert report.steps >= saved, f"the trace has {report.steps} steps, the checkpoint {saved}"
    return report.verdict.value


def check_done(folder: Path, expected: Any) -> None:
    """The end of a run that was killed: raises AssertionError where it is another than that of one that was not."""
    assert contents(folder) == expected, "it is another run"
    report = replay(folder / "t")
    assert (report.verdict, report.update) == (Verdict.OK, "proven"), str(report)
    assert not (folder / "t.partial").exists()


def kill(kills: int, seed: int, root: Path) -> int:
    """Kill so often; the number of findings."""
    random, ends, found, began, runs_done = Random(seed), Counter[str](), 0, time.monotonic(), 0
    expected, lasts = dict[int, Any](), dict[int, float]()
    for size in SIZES:
        (root / f"whole{size}").mkdir()
        train(root / f"whole{size}", size)
        (root / f"timed{size}").mkdir()
        start = time.monotonic()
        os.waitpid(forked(root / f"timed{size}", size), 0)
        lasts[size] = time.monotonic() - start
        expected[size] = contents(root / f"whole{size}")
    while sum(ends.values()) < kills:
        size = random.choice(SIZES)
        folder = root / f"run{runs_done}"
        folder.mkdir()
        code = -1
        while code != 0:
            code = life(folder, size, random.uniform(0, lasts[size]) if random.random() < 0.9 else 60 * lasts[size])
            try:
                if code == -signal.SIGKILL:
                    ends[check_killed(folder)] += 1
                else:
                    assert code == 0, "a process that went on failed"
                    check_done(folder, expected[size])
            except AssertionError as error:
                found += 1
                print(f"run {runs_done} of size {size}: {error}", flush=True)
                break
        shutil.rmtree(folder)
        runs_done += 1
    states = ", ".join(f"{state} {count}" for state, count in ends.most_common())
    seconds = time.monotonic() - began
    print(f"{sum(ends.values())} kills in {runs_done} runs, {found} findings; left {states}; {seconds:.0f} s")
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as root:
        return 1 if kill(given.kills, given.seed, Path(root)) else 0


if __name__ == "__main__":
    sys.exit(main())
