"""Copies: whose gradients are added in order, and results that no memory holds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import ShapeError, Tape, f64, ops

COPIES: list[Callable[[Any], Any]] = [lambda x: ops.repeat(x, 3, 0), lambda x: ops.tile(x, 3)]


@pytest.mark.parametrize("copied", COPIES)
def test_the_gradients_of_copies_are_added_in_order(copied: Callable[[Any], Any]) -> None:
    for seed, total in (([1e16, 1.0, -1e16], 0.0), ([1e16, -1e16, 1.0], 1.0)):
        tape = Tape(f64)
        x = tape.leaf([2.0])
        gradient = tape.backward_dense(copied(x), np.array(seed))[x]
        assert gradient is not None
        assert gradient.numpy().tolist() == [total]


TOO_LARGE: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda x: ops.repeat(x, 2**62),
        "repeat: expected a result of less than 2**63 bytes, got shape (9223372036854775808,)",
    ),
    (lambda x: ops.repeat(x, (2**62, 1), 0), "repeat: expected a result of less than 2**63 bytes, got shape (46116860"),
    (
        lambda x: ops.tile(x, (2**40, 2**40)),
        "tile: expected a result of less than 2**63 bytes, got shape (1099511627776, ",
    ),
]


@pytest.mark.parametrize(("call", "text"), TOO_LARGE)
def test_results_that_no_memory_holds(tape: Tape[Any], call: Callable[[Any], Any], text: str) -> None:
    x = tape.leaf([1.0, 2.0])
    with pytest.raises(ShapeError) as caught:
        call(x)
    assert str(caught.value).startswith(text)
    assert len(tape) == 1
