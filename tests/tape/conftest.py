"""What the tests of the engine share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import Tape
from dgrr.tape.numerics.engine.kernel import Kernel, call
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.engine.threads import HelperPool

Array = npt.NDArray[Any]
Run = Callable[..., int]


@pytest.fixture
def tape() -> Tape[Any]:
    """An empty tape of any element type."""
    return Tape()


@pytest.fixture
def run() -> Run:
    """Run a kernel share by share, the last one first; the least status that is not 0, or 0."""

    def run(kernel: Kernel, words: Words, arrays: list[Array], parts: int = 1, element: Any = None) -> int:
        address = kernel.address(np.dtype(element or arrays[0].dtype))
        ids = tuple(map(id, arrays))
        statuses = [call(address, words.address, part, parts, ids) for part in reversed(range(parts))]
        return min((status for status in statuses if status), default=0)

    return run


@pytest.fixture
def unmanned(monkeypatch: pytest.MonkeyPatch) -> HelperPool:
    """A pool whose only helper never started."""
    monkeypatch.setattr("threading.Thread.start", lambda thread: None)
    return HelperPool(1)
