"""One digest everywhere: `bits.json` is met whatever the CPU, the threads, the libraries' choice of code.

The CPU at hand computes all of the file under every setting of threads. Another CPU needs every kernel compiled for
it, which is nearly all of its time, so it computes a sixteenth: every eighth op in one float type, and no network; and
of CPUs with the same instructions only one does. ``pytest tests/golden --all-cpus`` has every CPU compute all.
"""

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.code_for import host_level
from dgrr.tape.ops import OPS

SCRIPT = Path(__file__).with_name("bits.py")

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
    share: int | None = None
    twin: str | None = None
    """A case with the same instructions for floats, which stands for this one unless all CPUs are asked for."""

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


X86 = {  # the first two have neither AVX nor FMA
    "x86-64": Case(2, True, "x86-64", False, {"OPENBLAS_CORETYPE": "Prescott"}, plain_numpy=True, share=0),
    "x86-64-v2": Case(1, True, "x86-64-v2", False, {"OPENBLAS_CORETYPE": "Nehalem"}, twin="x86-64"),
    "x86-64-v3": Case(7, True, "x86-64-v3", True, {"OPENBLAS_CORETYPE": "Haswell"}, share=3),
}
ARM = {
    "generic": Case(2, True, "generic", True, {"OPENBLAS_CORETYPE": "ARMV8"}, plain_numpy=True, share=0),
    "cortex-a72": Case(7, True, "cortex-a72", True, {"OPENBLAS_CORETYPE": "CORTEXA57"}, share=3),
}
FOREIGN = {"x86_64": X86, "AMD64": X86, "aarch64": ARM, "arm64": ARM}[platform.machine()]

CASES = {
    **FOREIGN,
    "default": Case(),
    "seven threads": Case(7, True, blas={"OPENBLAS_NUM_THREADS": "1"}),
    "one thread, plain numpy": Case(1, blas={"OPENBLAS_CORETYPE": "Prescott"}, plain_numpy=True),
}


def run(name: str, whole: bool) -> dict[str, Any]:
    """What the script prints in an environment."""
    case = CASES[name]
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    options = ["--parallel"] * case.parallel + ([] if whole or case.share is None else ["--share", str(case.share)])
    command = [sys.executable, "-W", "error", str(SCRIPT), *options]
    done = subprocess.run(command, env=kept | case.variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{case.variables}: {done.stderr}"
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def asked_for(bits: ModuleType, known: dict[str, str], share: int | None) -> dict[str, str]:
    """What of the file an environment must meet: all, or what is not left to others."""
    if share is None:
        return known
    own = {
        f"{kind}/{name}/{dtype}"
        for kind, names in (("op", OPS), ("patterns", bits.ELEMENTARY))
        for number, name in enumerate(names)
        for dtype in bits.types_of(number, share)
    }
    shared, never = ("op/", "patterns/"), ("networks/", "optimizer of ops/")
    return {
        name: value
        for name, value in known.items()
        if not name.startswith(never) and (not name.startswith(shared) or "/".join(name.split("/")[:3]) in own)
    }


def differences(expected: dict[str, str], found: dict[str, str], environment: object) -> str:
    """Which digests differ, and where; empty if none does."""
    names = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
    lines = [f"{n}: expected {expected.get(n)}, got {found.get(n)}" for n in names]
    return "\n".join([f"{len(names)} digests differ in {environment}:", *lines]) if names else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``name`` is an environment."""
    if "name" in metafunc.fixturenames:
        every = metafunc.config.getoption("all_cpus")
        names = [name for name, case in CASES.items() if every or case.twin is None]
        # The environment at hand is tried always, the others where the longest tests are.
        marks = {name: [] if name == "default" else [pytest.mark.long] for name in names}
        metafunc.parametrize("name", [pytest.param(name, marks=marks[name]) for name in names])


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether foreign CPUs compute all of the file."""
    return bool(request.config.getoption("all_cpus"))


def test_the_bits_are_those_of_the_file(bits: ModuleType, name: str, whole: bool) -> None:
    """In the environment that is asked for, and by a captured step too."""
    case, printed, known = CASES[name], run(name, whole), json.loads(bits.FILE.read_text())
    assert_is_the_one_asked_for(case, printed["environment"])
    share = None if whole else case.share
    environment = {"case": name, **printed["environment"]}
    assert differences(asked_for(bits, known, share), printed["bits"], environment) == ""
    prefixes = ("training/", "networks/") if share is None else ("training/",)
    captured = {key: value for key, value in known.items() if key.startswith(prefixes)}
    assert differences(captured, printed["captured"], environment) == ""


def assert_is_the_one_asked_for(case: Case, found: dict[str, Any]) -> None:
    assert found["threads"] == case.threads or case.threads is None
    assert found["worker threads"] is (case.threads != 1)
    assert found["cpu"] == (case.cpu or host_level().name)
    assert found["hardware fma"] is case.fma or case.fma is None
    assert found["numpy features"] == ([] if case.plain_numpy else PLAIN_NUMPY.split())


def test_the_shares_are_the_whole(bits: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "results", lambda op, sample: {"y": np.zeros(())})
    monkeypatch.setattr(bits, "ELEMENTARY", ())
    whole = [name for name, _ in bits.op_bits()]
    shares = [[name for name, _ in bits.op_bits(share)] for share in range(bits.SHARES)]
    assert sorted(chain(*shares)) == sorted(whole)
    known = dict.fromkeys(whole, "")
    assert [list(asked_for(bits, known, share)) for share in range(bits.SHARES)] == shares


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
