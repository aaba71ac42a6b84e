"""Steps on a GPU that is this machine."""

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import dgrr.runtime.cuda.bind as bind
import dgrr.runtime.cuda.driver as driver


def _host_gpu() -> Any:
    spec = spec_from_file_location("host_gpu", Path(__file__).with_name("host_gpu.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module of the GPU that is this machine, with one: what it has compiled is kept for all tests."""
    module = _host_gpu()
    if missing := module.shim().MISSING:
        pytest.skip(f"missing: {', '.join(missing)}")
    module.GPU = module.HostGpu(tmp_path_factory.mktemp("cuda"))
    return module


@pytest.fixture
def host_gpu(stand_in: Any) -> Iterator[Any]:
    """The GPU, for ``device="cuda"``; other tests of this process have what they would have without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_gpu", lambda number: stand_in.GPU)
        patch.setattr(bind, "ptx_of", stand_in.modules_of)
        patch.setattr(bind.nvrtc, "compiled", stand_in.named)
        patch.setitem(bind.FORMS, "gemm", stand_in.SIMPLE_PRODUCT)
        yield stand_in.GPU
