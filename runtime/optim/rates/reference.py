"""The living definition of the kernel of schedules: the formulas of the numerics page, one number at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....arrays import Array
from ....tape.numerics.exact_fma import fma
from ....tape.numerics.simd.operations import polynomial
from ..reference import power
from .kernels import COS, COSINE, NUMBERS, ONE_CYCLE, PI, PI_LOW, SIN, SQUARE, SQUARE_LOW, STEP_DECAY


def cospi(x: Any) -> Any:
    """``cos(pi x)`` of a number in [0, 1]."""
    y = 1 - x if x > 0.5 else x
    z = 0.5 - y if y > 0.25 else y
    s, one, square, pi = (np.float64(number) for number in (z * z, 1, SQUARE, PI))
    if y > 0.25:
        value = fma(z, pi, z * fma(s, polynomial(s, _numbers(SIN)), np.float64(PI_LOW)))
    else:
        high = fma(s, square, one)
        lost = fma(s, square, one - high)
        value = high + fma(s, fma(s, polynomial(s, _numbers(COS)), np.float64(SQUARE_LOW)), lost)
    return -value if x > 0.5 else value


def _numbers(table: Sequence[float]) -> tuple[Any, ...]:
    return tuple([np.float64(number) for number in table])


def anneal(start: Any, end: Any, share: Any) -> Any:
    """From ``start`` to ``end`` along half a cosine."""
    weight = 0.5 * (1 + cospi(np.float64(share)))
    return start * weight + end * (1 - weight)


def rate(kind: int, whole: int, numbers: Array, count: int) -> Any:
    """The rate of an unwarmed schedule."""
    first, second, third, fourth = numbers[:NUMBERS]
    held = min(count, whole)
    if kind == STEP_DECAY:
        return first * power(second, count // whole)
    if kind == COSINE:
        return anneal(first, second, np.float64(held) / whole)
    if kind == ONE_CYCLE and held < fourth:
        return anneal(first, second, held / fourth)
    return anneal(second, third, (held - fourth) / (whole - fourth)) if kind == ONE_CYCLE else first


def learning_rate(hyper: Array, numbers: Array, step: Array, *words: int) -> list[Array]:
    """The hyperparameters, the first replaced by the rate of update ``step``."""
    kind, whole, begin, warm_ups = words[:4]
    count = int(step) - 1
    lr = rate(kind, whole, numbers, max(count - begin, 0))
    for k in range(warm_ups):
        begins, steps = words[4 + 2 * k : 6 + 2 * k]
        since, start = max(count - begins, 0), numbers[NUMBERS + k]
        if since < steps:
            lr = lr * (start + (1 - start) * np.float64(since) / steps)
    return [np.array([lr, *hyper[1:]])]
