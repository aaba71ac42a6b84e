"""What every test may rely on, and in which order tests run."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

from dgrr.base import kernel_cache
from dgrr.base.collector import collector_paused

from .batches import Batches
from .browser import browser as browser

os.environ.setdefault("DGRR_THREADS", "1")
"""There is a test process per core already; what is said of several threads sets their number itself."""

os.environ.setdefault("DGRR_CACHE_DIR", str(kernel_cache.folder()))
"""Where the home folder is another, as in pytester's projects, kernels are found all the same."""

settings.register_profile("dgrr", deadline=None)  # kernels compile on first use, and machines are shared
settings.load_profile("dgrr")


TESTS = Path(__file__).parent

COMPILES = "tape/numerics/test_ir.py"
"""The tests that compile every kernel, to read it: they come first, so that in a fresh checkout all others load."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say how much is run."""
    parser.addoption("--all-cpus", action="store_true", help="foreign CPUs compute all golden digests (slow)")
    parser.addoption("--long", action="store_true", help="run the longest tests too, as where files or marks are named")
    parser.addoption("--share", metavar="K/N", default="0/1", help="of these, the K-th of N shares: 0/8 to 7/8 are all")


def pytest_configure(config: pytest.Config) -> None:
    """Leave nothing out where tests are chosen. Processes of pytest-xdist do as the first one says."""
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if not hasattr(config, "workerinput") and (chosen or config.option.markexpr or config.option.keyword):
        config.option.long = True


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read only the files of quick tests where only these are asked for: importing all takes as long as they do."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return None if "mark.quick" in collection_path.read_text(encoding="utf-8") else True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Batches:
    """Hand out tests in batches."""
    return Batches(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long ones, and put those that compile first."""
    left_out = [item for item in items if item.get_closest_marker("long") and not _in_share(item, config)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]
    items.sort(key=lambda item: item.path != TESTS / COMPILES)


def _in_share(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether a long test is to run: its name alone decides its share, in every process and on every machine."""
    k, n = map(int, config.option.share.split("/"))
    return config.option.long and crc32(item.nodeid.encode()) % n == k


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """A run that a shell started in the background ignores SIGINT, and so would every process it starts."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def rewritten_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may be written, run and written again within a second.

    Python takes a file of the same second and size for the one whose bytecode it keeps; so it keeps none.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect with Python's search for garbage paused, and keep what was collected out of its sight.

    It would go through all tests time and again: a fifth of what collecting takes.
    """
    with collector_paused():
        result = yield
        gc.collect()
        gc.freeze()
    return result
