"""How many threads there are, what a forked child has, and what an interrupt leaves behind."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, CapturedStep, capture
from dgrr.tape import Tape, get_threads, nn, ops, set_threads
from dgrr.tape.numerics.engine import launch
from dgrr.tape.numerics.engine.machine import PARTS
from dgrr.tape.ops.linear.kernels.product import Product

STEP = """
import numpy as np
from dgrr.runtime import Adam, capture
from dgrr.tape import nn, ops, set_threads
from dgrr.tape.numerics.engine import launch

launch.PARALLEL_WORK = 0
set_threads(3)
model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))
batch = np.linspace(-3, 3, 1000, dtype=np.float32).reshape(50, 20), np.arange(50) % 5

def new_step():
    return capture(lambda p, b: ops.cross_entropy(model(p, b[0]), b[1]), model.init(0), Adam(0.01), batch)
"""

FORK = (
    STEP
    + """
import os
import signal
from dgrr.tape import AnyTensor

x = AnyTensor(np.linspace(-3, 3, 1000).reshape(20, 50))
step, other = new_step(), new_step()

def results(step):
    ops_alone = [y.numpy().tobytes() for y in (ops.exp(x), ops.softmax(x), ops.reduce_sum(x, 0))]
    return ops_alone, [step(batch).tobytes() for _ in range(3)], step.digest()

expected = results(step)
child = os.fork()
if child == 0:
    signal.alarm(20)  # a child that waits for threads it does not have would never end
    same = results(other) == expected
    set_threads(2)
    os._exit(0 if same and results(new_step()) == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), results(other) == expected)
"""
)

INTERRUPTED = (
    STEP
    + """
import random
import signal

step, beside, hits, states = new_step(), new_step(), 0, {}
for made in (beside, step):  # the first step compiles, and so many later ones do not record the loss function again
    made(batch)
    made.replay(2**14)
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(200):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 5e-4))
        for _ in range(1000):
            step(batch)
    except KeyboardInterrupt:
        hits += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    while int(step.state["step"]) not in states:
        states[int(beside.state["step"])] = beside.digest()
        beside(batch)
    assert step.digest() == states[int(step.state["step"])], "half a step"
set_threads(2)  # waits for the helpers, which nobody may have taken and not given back
print(hits > 100, len(states) > 100)
"""
)


def python(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script], env=os.environ | variables, capture_output=True, text=True, timeout=60
    )


def test_a_forked_child_computes_the_same_with_threads_of_its_own() -> None:
    done = python(FORK)
    assert (done.stdout, done.returncode) == ("0 True\n", 0), done.stderr


# ------------------------------------------------------------------ how many threads


@pytest.mark.parametrize("count", [0, -3, 2.5])
def test_set_threads_refuses_what_is_no_count(count: Any) -> None:
    before = get_threads()
    with pytest.raises(ValueError, match=f"^set_threads: expected a whole number of at least 1, got {count}$"):
        set_threads(count)
    assert get_threads() == before


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_variable_is_refused_at_import(text: str) -> None:
    done = python("import dgrr.tape", DGRR_THREADS=text)
    expected = f"ValueError: DGRR_THREADS: expected a whole number of at least 1, got {text!r}"
    assert done.stderr.splitlines()[-1] == expected


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("", len(os.sched_getaffinity(0)))])
def test_the_variable_sets_the_number_of_threads(text: str, count: int) -> None:
    done = python("from dgrr.tape import get_threads; print(get_threads())", DGRR_THREADS=text)
    assert done.stdout == f"{count}\n"


# ------------------------------------------------------------------ interrupts and company


@pytest.mark.long
def test_an_interrupt_leaves_no_half_step() -> None:
    """Ctrl-C ends a run between two steps: helpers are through with their parts before anything is raised."""
    done = python(INTERRUPTED)
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr


MODEL = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))
BATCH = np.linspace(-3, 3, 1000, dtype=np.float32).reshape(50, 20), np.arange(50) % 5


def new_step(seed: int) -> CapturedStep:
    return capture(lambda p, b: ops.cross_entropy(MODEL(p, b[0]), b[1]), MODEL.init(seed), Adam(0.01), BATCH)


def test_python_threads_with_a_step_each_keep_their_bits(three_threads: None) -> None:
    expected = []
    for seed in range(2):
        step = new_step(seed)
        losses = [step(BATCH) for _ in range(300)]
        expected.append((losses, step.digest()))
    together = Barrier(2)
    steps = [new_step(seed) for seed in range(2)]
    assert max(steps[0].plan.parts) == 3

    def train(step: CapturedStep) -> tuple[list[Any], str]:
        together.wait()
        return [step(BATCH) for _ in range(300)], step.digest()

    with ThreadPoolExecutor(2) as callers:
        assert list(callers.map(train, steps)) == expected


def test_the_number_of_threads_may_change_between_capture_and_step(three_threads: None) -> None:
    step, beside = new_step(0), new_step(0)
    expected = [beside(BATCH) for _ in range(6)]
    losses = []
    for count in (3, 1, 7, 2, 1, 3):
        set_threads(count)
        losses.append(step(BATCH))
    assert losses == expected
    assert step.digest() == beside.digest()


def test_memory_to_work_in_is_made_for_the_parts_that_run(three_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that calls set_threads while an op is prepared changes nothing of that op."""
    asked, ran = list[int](), list[int]()
    measure, run_rows = Product.scratch, launch.run_rows

    def disturbed(product: Product, strides: Any, parts: int) -> int:
        asked.append(parts)
        set_threads(7)
        return measure(product, strides, parts)

    def seen(rows: int, *rest: Any) -> int:
        ran.append(ctypes.cast(rows, ctypes.POINTER(ctypes.c_int64))[PARTS])
        return int(run_rows(rows, *rest))

    monkeypatch.setattr(Product, "scratch", disturbed)
    monkeypatch.setattr(launch, "run_rows", seen)
    x = Tape().leaf(np.linspace(-1, 1, 91 * 37).reshape(91, 37))
    y = x @ x.T
    assert asked == ran == [3]
    monkeypatch.undo()
    assert y.numpy().tobytes() == (x @ x.T).numpy().tobytes()
