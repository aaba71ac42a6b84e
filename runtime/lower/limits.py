"""The best rates of this machine, to compare the calls of a step with."""

from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from ...tape.record.op import OPS
from ...tape.values.tensor import AnyTensor


@cache
def limits() -> tuple[float, float]:
    """Operations and bytes per second that the engine reaches in cache on this machine with its threads."""
    square, row = (AnyTensor(np.ones(shape, np.float32)) for shape in ((256, 256), (1 << 15,)))
    product = min(_seconds(lambda: OPS["matmul"](square, square)) for _ in range(20))
    addition = min(_seconds(lambda: OPS["add"](row, row)) for _ in range(200))
    return 2 * 256**3 / product, 3 * row.array.nbytes / addition


def _seconds(run: Any) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began
