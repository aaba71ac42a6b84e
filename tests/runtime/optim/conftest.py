"""What tests of the kernels of optimizers share."""

from collections.abc import Iterator

import pytest

from dgrr.tape.numerics.engine import launch, threads


@pytest.fixture
def split_everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any amount of work is worth several threads; the number of threads is restored."""
    before = threads.get_threads()
    monkeypatch.setattr(launch, "PARALLEL_WORK", 1)
    yield
    threads.set_threads(before)
