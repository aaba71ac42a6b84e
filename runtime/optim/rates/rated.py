"""Schedules whose rate is a formula: its kernel, with warm-ups around it, and the same as numpy runs it.

A formula is ``rate(count, *numbers)``, all float64: the count of updates before, and the fields of the schedule.
"""

# numba's functions carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined,call-arg,operator,var-annotated"
# pyright: basic, reportCallIssue=false
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array
from ....tape.errors import DomainError
from ....tape.numerics.engine.intrinsics import word
from ....tape.numerics.engine.kernel import Kernel, vector, vector_as
from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import select
from ..laws.known import HYPER, NOTHING, kernel_again, known

TEXT: Any = None
"""The formula of a kernel."""

COUNT = 1
"""How many numbers it takes behind the count."""


@formula
def warmed(lr: Any, since: Any, steps: Any, start: Any) -> Any:
    """A rate on a linear rise from a share of it."""
    return select(since < steps, lr * (start + (1.0 - start) * since / steps), lr)


def _learning_rate(table, ints, part, parts):
    """Copy the hyperparameters, the first replaced by the rate of this step.

    Table (float64): hyperparameters (5, written), hyperparameters (5), numbers, step (int64, from 1).
    Words: count at which the schedule begins, number of warm-ups; then of each warm-up, the innermost first, the
    count at which it begins and its steps. Numbers: those of the schedule, then the start of each warm-up.
    """
    if part == 0:
        out, base = vector(table, 0, 0, HYPER), vector(table, 1, 0, HYPER)
        warm_ups = word(ints, 1)
        starts = vector(table, 2, COUNT, warm_ups)
        count = vector_as(table, np.int64(0), 3, 0, 1)[0] - 1
        numbers = known(table, 2, NOTHING, 0, COUNT)
        lr = TEXT(np.float64(max(count - word(ints, 0), 0)), *numbers)
        for k in range(warm_ups):
            since = np.float64(max(count - word(ints, 2 + 2 * k), 0))
            lr = warmed(lr, since, np.float64(word(ints, 3 + 2 * k)), starts[k])
        for i in range(HYPER):
            out[i] = base[i]
        out[0] = lr
    return 0


class Rate(NamedTuple):
    """A formula of a rate, its kernel, and how many numbers it takes."""

    formula: Callable[..., Any]
    kernel: Kernel
    takes: int

    def reference(self, hyper: Array, numbers: Array, step: Array, *words: int) -> list[Array]:
        """The hyperparameters with the rate of a step, as numpy computes it of what the kernel is given."""
        own, starts, before = numbers[: self.takes], numbers[self.takes :], int(step) - 1
        with np.errstate(all="ignore"):
            lr = self.formula(np.float64(max(before - words[0], 0)), *own)
            for start, begin, steps in zip(starts, words[2::2], words[3::2], strict=True):
                lr = warmed(lr, np.float64(max(before - begin, 0)), np.float64(steps), start)
        return [np.array([lr, *hyper[1:]])]


def rate(text: Callable[..., Any]) -> Rate:
    """A decorator that makes the rate of a schedule of a formula ``rate(count, *numbers)``, all float64.

    It takes the count of updates before and the fields of its schedule, in their order, and gives the learning rate.
    It is the schedule's kernel, its reference, which numpy runs, and its rate in ops. It is written as formulas of
    `law` are.

    Raises DomainError for a formula that takes no numbers.

    >>> from dgrr.runtime.optim import rate
    >>> @rate
    ... def slowing(count: float, lr: float, half: float) -> float:
    ...     return lr / (1.0 + count / half)
    >>> slowing.takes
    2
    """
    count = text.__code__.co_argcount - 1
    if count < 1:
        raise DomainError(f"rate: {text.__name__}: expected (count, *numbers), got {signature(text)}")
    return Rate(text, kernel_again(_learning_rate, text, f"{text.__name__}_rate", COUNT=count), count)
