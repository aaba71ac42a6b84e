"""What tests of the engine share."""

from collections.abc import Iterator

import pytest

from dgrr.tape import get_threads, set_threads
from dgrr.tape.numerics.engine import launch


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels of any size run in three parts, each in a thread."""
    before = get_threads()
    monkeypatch.setattr(launch, "PARALLEL_WORK", 0)
    set_threads(3)
    yield
    set_threads(before)
