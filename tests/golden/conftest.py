"""The scripts of this folder as modules."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent


def load(name: str) -> ModuleType:
    """A file of this folder as a module."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def bits() -> ModuleType:
    """What computes the digests."""
    return load("bits")


@pytest.fixture(scope="session")
def numpy_training() -> ModuleType:
    """The training run in numpy."""
    return load("numpy_training")
