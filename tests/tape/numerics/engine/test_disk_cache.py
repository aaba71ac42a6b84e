"""Kernels of many environments stand in one folder: what was compiled for another CPU or numba is never loaded."""

from typing import Any

import numpy as np
import pytest
from numba.core.codegen import JITCPUCodegen

from dgrr.tape import Tape, ops
from dgrr.tape.numerics.engine import disk_cache
from dgrr.tape.numerics.engine.code_for import target
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel

F32 = np.dtype(np.float32)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel that this process has to load, and that is kept for the CPU at hand."""
    ops.relu(Tape[Any]().leaf(np.ones(3, np.float32)))
    kernel = KERNELS["relu"]
    monkeypatch.setattr(kernel, "_compiled", {})
    assert kernel.is_ready(F32)
    return kernel


@pytest.mark.parametrize(("place", "other"), [(0, "aarch64-none-linux-gnu"), (1, "another"), (2, "+other,-feature")])
def test_a_kernel_of_another_cpu_is_another_file(
    kept: Kernel, monkeypatch: pytest.MonkeyPatch, place: int, other: str
) -> None:
    machine = list(target())
    machine[place] = other
    monkeypatch.setattr(JITCPUCodegen, "magic_tuple", lambda self: tuple(machine))
    assert not kept.is_ready(F32)


def test_a_kernel_of_another_numba_is_another_file(kept: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "VERSIONS", "0.1 0.1")
    disk_cache.stamp_of.cache_clear()
    assert not kept.is_ready(F32)
    monkeypatch.undo()
    disk_cache.stamp_of.cache_clear()
    assert kept.is_ready(F32)
