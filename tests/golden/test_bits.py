"""One digest everywhere: `bits.json` is met whatever the CPU, the threads, the libraries' choice of code."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

SCRIPT = Path(__file__).with_name("bits.py")

SIDE_BY_SIDE = 2
"""Environments tried at a time: most of their time is compiling, which uses one core."""

VARIABLES = (
    "DGRR_THREADS",
    "NUMBA_CPU_NAME",
    "NUMBA_CPU_FEATURES",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "NPY_DISABLE_CPU_FEATURES",
)

NUMPY: Any = np.show_config(mode="dicts")
PLAIN_NUMPY = " ".join(NUMPY["SIMD Extensions"].get("found", []))
"""What numpy dispatches to on this machine, all of it to be switched off."""


@dataclass(frozen=True)
class Case:
    """An environment: threads, CPU to compile for, and the libraries' choice of code."""

    threads: int | None = None
    parallel: bool = False
    cpu: str | None = None
    fma: bool | None = None
    blas: dict[str, str] = field(default_factory=dict[str, str])
    plain_numpy: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """The variables that make it; numba adds the host's features to a CPU unless told not to."""
        set_: dict[str, str] = dict(self.blas)
        if self.threads is not None:
            set_["DGRR_THREADS"] = str(self.threads)
        if self.cpu is not None:
            set_ |= {"NUMBA_CPU_NAME": self.cpu, "NUMBA_CPU_FEATURES": ""}
        if self.plain_numpy:
            set_["NPY_DISABLE_CPU_FEATURES"] = PLAIN_NUMPY
        return set_


X86 = {
    "generic": Case(2, True, "generic", False, {"OPENBLAS_CORETYPE": "Prescott"}, plain_numpy=True),
    "nehalem": Case(1, True, "nehalem", False, {"OPENBLAS_CORETYPE": "Nehalem"}),
    "haswell": Case(7, True, "haswell", True, {"OPENBLAS_CORETYPE": "Haswell"}),
}
ARM = {
    "generic": Case(2, True, "generic", True, {"OPENBLAS_CORETYPE": "ARMV8"}, plain_numpy=True),
    "cortex-a72": Case(7, True, "cortex-a72", True, {"OPENBLAS_CORETYPE": "CORTEXA57"}),
}
FOREIGN = {"x86_64": X86, "AMD64": X86, "aarch64": ARM, "arm64": ARM}[platform.machine()]

CASES = {
    **FOREIGN,
    "default": Case(),
    "seven threads": Case(7, True, blas={"OPENBLAS_NUM_THREADS": "1"}),
    "two threads": Case(2, True),
    "one thread, plain numpy": Case(1, blas={"OPENBLAS_CORETYPE": "Prescott"}, plain_numpy=True),
}

Runs = dict[str, Future[dict[str, Any]]]


def run(case: Case) -> dict[str, Any]:
    """What the script prints in an environment."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-W", "error", str(SCRIPT), *(["--parallel"] if case.parallel else [])]
    done = subprocess.run(command, env=kept | case.variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{case.variables}: {done.stderr}"
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def differences(expected: dict[str, str], found: dict[str, str], environment: object) -> str:
    """Which digests differ, and where; empty if none does."""
    names = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
    lines = [f"{n}: expected {expected.get(n)}, got {found.get(n)}" for n in names]
    return "\n".join([f"{len(names)} digests differ in {environment}:", *lines]) if names else ""


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """Every case, under way."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield {name: pool.submit(run, case) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_the_file(runs: Runs, bits: ModuleType, name: str) -> None:
    printed = runs[name].result()
    expected = json.loads(bits.FILE.read_text())
    assert differences(expected, printed["bits"], {"case": name, **printed["environment"]}) == ""


@pytest.mark.parametrize("name", CASES)
def test_a_captured_step_meets_the_file(runs: Runs, bits: ModuleType, name: str) -> None:
    printed = runs[name].result()
    known = json.loads(bits.FILE.read_text())
    expected = {key: value for key, value in known.items() if key.startswith(("training/", "networks/"))}
    assert differences(expected, printed["captured"], {"case": name, **printed["environment"]}) == ""


@pytest.mark.parametrize("name", CASES)
def test_the_environment_is_the_one_asked_for(runs: Runs, name: str) -> None:
    case, found = CASES[name], runs[name].result()["environment"]
    assert found["threads"] == case.threads or case.threads is None
    assert found["worker threads"] is (case.threads != 1)
    assert found["cpu"] == (case.cpu or get_host_cpu_name())
    assert found["hardware fma"] is case.fma or case.fma is None
    assert found["numpy features"] == ([] if case.plain_numpy else PLAIN_NUMPY.split())


def test_a_difference_is_named_with_its_environment() -> None:
    text = differences({"op/add": "1", "op/mul": "2"}, {"op/add": "3", "op/sub": "4"}, {"cpu": "generic"})
    assert text.splitlines() == [
        "3 digests differ in {'cpu': 'generic'}:",
        "op/add: expected 1, got 3",
        "op/mul: expected 2, got None",
        "op/sub: expected None, got 4",
    ]


def test_a_digest_sees_one_bit_dtype_and_shape_but_not_which_nan(bits: ModuleType) -> None:
    x = np.array([[1.0, np.nan]], np.float32)
    other = {
        "one bit": np.nextafter(x, np.float32(2)),
        "dtype": x.astype(np.float64),
        "shape": x.T,
        "sign": -x,
    }
    assert len({bits.digest(y) for y in (x, *other.values())}) == 1 + len(other)
    assert bits.digest(x) == bits.digest(np.array([[1.0, -np.nan]], np.float32))


def test_patterns_reach_every_kind_of_float(bits: ModuleType) -> None:
    for dtype in bits.DTYPES:
        x, smallest = bits.patterns(dtype), np.finfo(dtype).smallest_normal
        assert np.isnan(x).any()
        assert ((x != 0) & (abs(x) < smallest)).any()
        assert np.isinf(x).any()
        assert (x < -1e30).any()
        assert len(np.unique(np.frexp(x[np.isfinite(x)])[1])) > 100
