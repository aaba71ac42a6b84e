"""An eager call on small values costs what its Python costs: how many functions it enters is held here."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops

pytestmark = pytest.mark.quick

CALLS: list[tuple[Callable[[Any, Any, Any], Any], int]] = [
    (lambda x, w, b: ops.relu(x), 8),
    (lambda x, w, b: ops.add(x, w), 8),
    (lambda x, w, b: x @ w, 9),
    (lambda x, w, b: ops.linear(x, w, b), 9),
    (lambda x, w, b: ops.linear(x, w), 10),
]
"""Calls, and how many functions of Python each may enter; comprehensions count before Python 3.12."""


def entered(call: Callable[[], Any]) -> list[str]:
    """The functions that a call enters, without those that the collector calls for what others left."""
    names = list[str]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return names


@pytest.mark.parametrize(("call", "most"), CALLS)
def test_a_warm_call_enters_few_functions(call: Callable[[Any, Any, Any], Any], most: int) -> None:
    tape = Tape[Any]()
    x, w, b = (tape.leaf(np.ones(shape, np.float32)) for shape in ((8, 8), (8, 8), (8,)))
    call(x, w, b)
    names = entered(lambda: call(x, w, b))
    assert len(names) - 2 <= most, names  # the two lambdas are the test's


def test_a_warm_step_with_its_gradients_enters_few_functions() -> None:
    def step() -> None:
        tape: Tape[Any] = Tape()
        p = tape.param(np.ones((8, 8), np.float32))
        tape.backward_scalar(ops.reduce_sum(ops.relu(ops.matmul(p, p))))

    step()
    names = entered(step)
    assert len(names) <= 138, names
