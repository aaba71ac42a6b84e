"""What stands in for the GPU is there for the tests that ask for it, and for no others of their process."""

from types import ModuleType

import pytest

import dgrr.runtime.cuda.bind as bind
import dgrr.runtime.cuda.driver as driver
from dgrr.tape.numerics.cuda import code, nvrtc

pytestmark = pytest.mark.xdist_group("cuda")

OWN: tuple[tuple[ModuleType, str, str], ...] = (
    (driver, "_gpu", driver.__name__),
    (bind, "ptx_of", code.__name__),
    (nvrtc, "compiled", nvrtc.__name__),
)
"""What is replaced, and the module that its own function is from."""


def test_a_test_that_asks_has_another_gpu(host_gpu: object) -> None:
    assert driver.gpu() is host_gpu
    assert bind.FORMS["gemm"].launches.__name__ == "simple_product"
    assert all(getattr(module, name).__module__ != own for module, name, own in OWN)


def test_the_next_one_has_what_was_there() -> None:
    assert bind.FORMS["gemm"].launches.__name__ == "launches"
    for module, name, own in OWN:
        assert getattr(module, name).__module__ == own, name
