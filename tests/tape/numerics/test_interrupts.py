"""Ctrl-C while machine code is loaded: a real SIGINT, sent while LLVM calls back into Python, is never lost."""

import signal
import subprocess
import sys
from threading import Thread
from types import FrameType

import pytest
from numba.core.compiler_lock import global_compiler_lock

pytestmark = pytest.mark.long

PROGRAM = """
import signal, sys
from threading import Thread
from numba.core import codegen

calls, signals_at = 0, 0

def patched(real):
    def hook(cls, *args):
        global calls
        calls += 1
        if calls == signals_at:
            signal.raise_signal(signal.SIGINT)
        return real(*args)
    return classmethod(hook)

library = codegen.CPUCodeLibrary
library._object_getbuffer_hook = patched(library._object_getbuffer_hook)  # what LLVM calls

import numpy as np
from dgrr.runtime import SGD, Trainer, gradients
from dgrr.tape import Tape

def loss_fn(p, x):
    return (p["w"] * x).sum()

def steps():
    params = {"w": np.ones(2)}
    for step in range(5):
        gradients(loss_fn, params, np.ones(2))
        print("step", step)

def fitted():
    global signals_at
    trainer = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.5), mode="eager")
    signals_at = calls + 1
    try:
        trainer.fit([np.ones(2)] * 5)
    finally:
        print("steps", trainer.steps)

"""


def run(code: str, signals_at: int = 1) -> tuple[list[str], str]:
    """What a program prints in which LLVM's n-th call for machine code is interrupted."""
    program = (
        f"{PROGRAM}\nsignals_at = {signals_at}\ntry:\n    {code}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("signals_at", [1, 2, 3, 4, 5])
def test_an_op_is_interrupted_once_its_code_is_loaded(signals_at: int) -> None:
    assert run("print((Tape().leaf([1.0, 2.0]) * 3).numpy())", signals_at) == (["interrupted"], "")


def test_training_does_not_go_on() -> None:
    said, errors = run("steps()")
    assert (said, errors) == (["interrupted"], "")


def test_a_step_of_a_fit_ends_before_it_is_interrupted() -> None:
    assert run("fitted()", signals_at=0) == (["steps 1", "interrupted"], "")


def test_what_was_interrupted_works_when_it_is_done_again() -> None:
    code = """
    try:
        steps()
    except KeyboardInterrupt:
        print("again")
    steps()
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"""
    said, errors = run(code)
    assert (said, errors) == (["again", *(f"step {k}" for k in range(5)), "True"], "")


def test_where_it_is_ignored_it_stays_ignored() -> None:
    said, errors = run("signal.signal(signal.SIGINT, signal.SIG_IGN); steps()")
    assert (said[-1], errors) == ("step 4", "")


def test_all_interrupts_are_delivered_to_the_handler_that_was_there() -> None:
    came = list[bool]()

    def mine(number: int, frame: FrameType | None) -> None:
        came.append(global_compiler_lock.is_locked())

    previous = signal.signal(signal.SIGINT, mine)
    try:
        with global_compiler_lock:
            for _ in range(2):
                with global_compiler_lock:
                    signal.raise_signal(signal.SIGINT)
            assert came == []
        assert came == [False, False]
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_thread_that_compiles_holds_nothing() -> None:
    handlers = list[object]()

    def work() -> None:
        with global_compiler_lock:
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
