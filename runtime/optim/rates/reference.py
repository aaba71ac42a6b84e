"""The living definition of the kernel of schedules: the formulas of the numerics page, one number at a time."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ..laws.formulas import power
from .kernels import COSINE, NUMBERS, ONE_CYCLE, STEP_DECAY, anneal


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
