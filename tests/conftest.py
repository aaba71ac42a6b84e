"""What every test may rely on, and in which order tests run."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("dgrr", deadline=None)  # kernels compile on first use, and machines are shared
settings.load_profile("dgrr")


TESTS = Path(__file__).parent

COMPILES = "tape/numerics/test_ir.py"
"""The tests that compile every kernel, to read it: they come first, so that in a fresh checkout all others load."""

QUICK = ("house/test_architecture.py",)
"""Files and folders of the tests marked ``quick``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say how much of the golden digests foreign CPUs compute."""
    parser.addoption("--all-cpus", action="store_true", help="foreign CPUs compute all golden digests (slow)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests, and put those that compile first."""
    for item in items:
        if item.path.relative_to(TESTS).as_posix().startswith(QUICK):
            item.add_marker("quick")
    items.sort(key=lambda item: item.path != TESTS / COMPILES)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """A run that a shell started in the background ignores SIGINT, and so would every process it starts."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
