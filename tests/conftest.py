"""What every test may rely on."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("dgrr", deadline=None)  # kernels compile on first use, and machines are shared
settings.load_profile("dgrr")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """A run that a shell started in the background ignores SIGINT, and so would every process it starts."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
