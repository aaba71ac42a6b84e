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
def host_gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The GPU, for ``device="cuda"``."""
    module = _host_gpu()
    if missing := module.shim().MISSING:
        pytest.skip(f"missing: {', '.join(missing)}")
    gpu = module.HostGpu(tmp_path_factory.mktemp("cuda"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "gpu", lambda: gpu)
        patch.setattr(bind, "ptx_of", module.modules_of)
        patch.setattr(bind.nvrtc, "compiled", module.named)
        patch.delitem(bind.FORMS, "gemm")  # its tiles have tests of their own, and take long to compile
        yield gpu
