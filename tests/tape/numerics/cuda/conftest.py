"""The host that runs CUDA kernels without a device."""

from pathlib import Path

import pytest

from .host import Host


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of compiled sources for all test processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "cuda-host"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def host(programs: Path) -> Host:
    return Host(programs)
