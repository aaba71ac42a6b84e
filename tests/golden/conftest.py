"""The scripts of this folder as modules."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent


def load(name: str) -> ModuleType:
    """A file of this folder as a module; it finds its neighbours as it does when it runs as a script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return import_module(name)


@pytest.fixture(scope="session")
def bits() -> ModuleType:
    """What computes the digests."""
    return load("bits")


@pytest.fixture(scope="session")
def numpy_training() -> ModuleType:
    """The training run in numpy."""
    return load("numpy_training")


@pytest.fixture(scope="session")
def networks() -> ModuleType:
    """The networks that are trained."""
    return load("networks")
