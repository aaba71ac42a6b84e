"""Ctrl-C: real SIGINTs, held until the step in progress is whole; what was trained and recorded stays good."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import NamedTuple

import pytest

from dgrr.runtime.training.fitting.interrupt import held_interrupt
from dgrr.trace import open_trace

# The context by itself.


Check = Callable[[], None]
Steps = Callable[[Check, list[str]], None]


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def asked(check: Check, done: list[str]) -> None:
    check()
    ctrl_c()
    done.append("held")
    check()
    done.append("never")


def unasked(check: Check, done: list[str]) -> None:
    ctrl_c()
    done.append("held")


def twice(check: Check, done: list[str]) -> None:
    unasked(check, done)
    ctrl_c()
    done.append("never")


HELD: dict[str, Steps] = {"until it is asked for": asked, "until the end": unasked, "but not a second": twice}


@pytest.mark.parametrize("how", HELD)
def test_an_interrupt_is_held(how: str) -> None:
    done = list[str]()

    def block() -> None:
        with held_interrupt() as check:
            HELD[how](check, done)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["held"]


def failing_step() -> None:
    with held_interrupt():
        ctrl_c()
        raise ZeroDivisionError


def test_an_error_is_not_hidden_by_a_held_interrupt() -> None:
    with pytest.raises(ZeroDivisionError):
        failing_step()


def test_the_previous_handler_is_back_afterwards() -> None:
    came = list[int]()

    def mine(number: int, frame: FrameType | None) -> None:
        came.append(number)

    previous = signal.signal(signal.SIGINT, mine)
    try:
        with held_interrupt():
            assert signal.getsignal(signal.SIGINT) is not mine
        with pytest.raises(ZeroDivisionError):
            failing_step()
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, previous)
    assert came == []


def test_an_ignored_interrupt_stays_ignored() -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_interrupt() as check:
            ctrl_c()
            check()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    except KeyboardInterrupt:
        pytest.fail("an ignored signal interrupted")
    finally:
        signal.signal(signal.SIGINT, previous)


def test_outside_the_main_thread_nothing_is_held() -> None:
    handlers = list[object]()

    def work() -> None:
        with held_interrupt() as check:
            handlers.append(signal.getsignal(signal.SIGINT))
            check()

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


# Training.

PROGRAM = """
import json, os, signal, sys, time
from itertools import islice, count
from threading import Event, Thread
import numpy as np
from dgrr.runtime import Adam, Trainer, gradients, state_digest
from dgrr.tape import ops

PARAMS = {"w": np.array([[0.5, -0.25, 1.0]]), "b": np.array([0.125])}
steps_begun, after_five = 0, lambda: None

def loss_fn(p, batch):
    global steps_begun
    steps_begun += 1
    if steps_begun == 6:
        after_five()
    x, t = batch
    return ops.mse_loss(ops.linear(x, p["w"], p["b"]), t)

def batches():
    for k in count():
        rng = np.random.default_rng(k)
        yield rng.standard_normal((4, 3)), rng.standard_normal((4, 1))

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)  # Python runs the handler of one signal before the next is sent

def ctrl_c_twice():
    ctrl_c()
    ctrl_c()

def ctrl_c_from_a_thread():
    thread = Thread(target=ctrl_c)
    thread.start()
    thread.join()

def independent(n):
    params, rule, losses = {k: v.copy() for k, v in PARAMS.items()}, Adam(0.05), []
    state = rule.init(params)
    for batch in islice(batches(), n):
        loss, grads = gradients(plain_loss, params, batch)
        rule.step(params, grads, state)
        losses.append(loss.item().hex())
    return state_digest(params, state), losses

def plain_loss(p, batch):
    x, t = batch
    return ops.mse_loss(ops.linear(x, p["w"], p["b"]), t)

def report(trainer, interrupted):
    digest, losses = independent(trainer.steps)
    whole = state_digest(trainer.params, trainer.state) == digest
    said = {"steps": trainer.steps, "whole": whole, "losses": losses, "interrupted": interrupted}
    print(json.dumps(said), flush=True)

def scenario(name, act, data=batches, mode="eager"):
    global steps_begun, after_five
    steps_begun, after_five = 0, act
    trainer = Trainer(loss_fn, PARAMS, Adam(0.05), mode=mode, trace=name)  # "eager" calls the loss function every step
    try:
        trainer.fit(data(), steps=50)
        report(trainer, False)
    except KeyboardInterrupt:
        report(trainer, True)

"""


class Said(NamedTuple):
    steps: int
    whole: bool
    losses: list[str]
    interrupted: bool


def python(code: str, folder: Path) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM + code], cwd=folder, stdout=pipe, stderr=pipe, text=True
    )


def finished(process: "subprocess.Popen[str]") -> list[Said]:
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return [Said(**json.loads(line)) for line in out.splitlines()]


def losses_of(path: Path) -> list[str]:
    with open_trace(path, mode="tolerate_tail") as trace:
        assert trace.sealed == (path.suffix == ".dgrr")
        return [float(value).hex() for value in trace.loss]


SCENARIOS = """
def batches_with_ctrl_c():
    for k, batch in enumerate(batches()):
        if k == 5:
            ctrl_c()
        yield batch

scenario("loss.dgrr", ctrl_c)
scenario("thread.dgrr", ctrl_c_from_a_thread)
scenario("batch.dgrr", lambda: None, batches_with_ctrl_c)
scenario("replay.dgrr", lambda: None, batches_with_ctrl_c, "replay")
scenario("twice.dgrr", ctrl_c_twice)
scenario("none.dgrr", lambda: None)
"""


def test_an_interrupt_in_a_step_waits_for_its_end_and_a_second_does_not(tmp_path: Path) -> None:
    *held, twice, undisturbed = finished(python(SCENARIOS, tmp_path))
    assert len(held) == 4
    for name, said in zip(("loss", "thread", "batch", "replay", "twice"), (*held, twice), strict=True):
        assert (said.interrupted, said.whole) == (True, True)
        assert said.steps == (5 if name == "twice" else 6)
        assert losses_of(tmp_path / f"{name}.dgrr.partial") == said.losses
        assert not (tmp_path / f"{name}.dgrr").exists()
    assert undisturbed[:2] == (50, True)
    assert not undisturbed.interrupted
    assert losses_of(tmp_path / "none.dgrr") == undisturbed.losses


LIVE = """
def announced():
    for k, batch in enumerate(batches()):
        if k == 20:
            print("going", flush=True)
        yield batch

trainer = Trainer(plain_loss, PARAMS, Adam(0.05), trace="live.dgrr")
try:
    trainer.fit(announced(), steps=10**9)
except KeyboardInterrupt:
    report(trainer, True)
"""


def test_an_interrupt_from_outside(tmp_path: Path) -> None:
    process = python(LIVE, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "going\n"
    process.send_signal(signal.SIGINT)
    (said,) = finished(process)
    assert said.whole
    assert said.steps >= 20
    assert losses_of(tmp_path / "live.dgrr.partial") == said.losses


@pytest.mark.long
def test_an_interrupt_that_the_program_does_not_catch(tmp_path: Path) -> None:
    code = (
        "after_five = ctrl_c\n"
        "Trainer(loss_fn, PARAMS, Adam(0.05), mode='eager', trace='run.dgrr').fit(batches(), steps=50)\n"
        "print('never')\n"
    )
    process = python(code, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert out == ""
    assert err.endswith("KeyboardInterrupt\n")
    assert len(losses_of(tmp_path / "run.dgrr.partial")) == 6


WORKER = """
going = Event()
after_five = going.set
trainer = Trainer(loss_fn, PARAMS, Adam(0.05), mode="eager", trace="worker.dgrr")
worker = Thread(target=trainer.fit, args=(batches(),), kwargs={"steps": 2000})
worker.start()
going.wait()
try:
    ctrl_c()
    interrupted = False
except KeyboardInterrupt:
    interrupted = True
running = worker.is_alive()
worker.join()
assert running, "the worker was done before the interrupt"
report(trainer, interrupted)
"""


@pytest.mark.long
def test_an_interrupt_of_the_main_thread_while_another_trains(tmp_path: Path) -> None:
    (said,) = finished(python(WORKER, tmp_path))
    assert (said.steps, said.whole, said.interrupted) == (2000, True, True)
    assert losses_of(tmp_path / "worker.dgrr") == said.losses
