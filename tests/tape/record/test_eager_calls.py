"""An eager call on small values costs what its Python costs: how many functions it enters is held here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops

from ...entered import entered

pytestmark = pytest.mark.quick

CALLS: list[tuple[Callable[[Any, Any, Any], Any], int]] = [
    (lambda x, w, b: ops.relu(x), 8),
    (lambda x, w, b: ops.add(x, w), 8),
    (lambda x, w, b: x * w, 11),
    (lambda x, w, b: x @ w, 9),
    (lambda x, w, b: ops.linear(x, w, b), 9),
    (lambda x, w, b: ops.linear(x, w), 10),
]
"""Calls, and how many functions of Python each may enter; comprehensions count before Python 3.12."""


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
