"""Code for CPUs that do not fuse a product with a sum: software stands in it, and nothing of C's library is called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.tape.numerics.engine import disk_cache, numba_compiler
from dgrr.tape.numerics.engine.code_for import LEVELS, levels, target
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.sources import sources
from dgrr.tape.numerics.software import fma64, functions

pytestmark = pytest.mark.skipif(len(levels()) == 1, reason="the one level fuses")

CPUS = [(level.name, level.tuning, level.fuses) for level in LEVELS]
CPUS += [("sandybridge", "", False), ("haswell", "", True), ("haswell", "-fma", False), ("bdver1", "", True)]

SOFTWARE = [Path(str(module.__file__)) for module in (fma64, functions)]

NUMERICS = Path(__file__).parents[1]


@pytest.mark.parametrize(("cpu", "features", "fuses"), CPUS)
def test_a_cpu_fuses_if_llvm_has_an_instruction_for_it(
    monkeypatch: pytest.MonkeyPatch, cpu: str, features: str, *, fuses: bool
) -> None:
    monkeypatch.setattr(numba_compiler, "target", lambda: (target()[0], cpu, features))
    assert numba_compiler.fuses.__wrapped__() is fuses
    assert ("fmaf" not in numba_compiler.assembly(numba_compiler.FUSED)) is fuses


def test_code_for_elsewhere_is_left_to_what_makes_it_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_compiler, "target", lambda: (target()[0], "generic", ""))
    assert not numba_compiler.fuses.__wrapped__()
    monkeypatch.setattr(numba_compiler, "CODE_FOR", "cpu 16 64")
    assert numba_compiler.fuses.__wrapped__()


def test_kept_code_depends_on_the_software_that_stands_in_it_and_other_code_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Path(KERNELS["gemm"].body.__code__.co_filename)

    def stamp(*, fuses: bool, edited: Path | None) -> str:
        monkeypatch.setattr(disk_cache, "fuses", lambda: fuses)
        monkeypatch.setattr(disk_cache, "sources_digest", lambda path: f"{path} {path == edited}")
        return disk_cache.stamp_of.__wrapped__(kernel)

    assert len({stamp(fuses=False, edited=path) for path in (None, *SOFTWARE)}) == 3
    assert len({stamp(fuses=True, edited=path) for path in (None, *SOFTWARE)}) == 1
    assert not sources(kernel) & {*SOFTWARE}


def pass_without_fma(*selected: str) -> None:
    """Run tests in a process that compiles for a CPU without a fused multiply-add."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *selected]
    env = os.environ | {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_compiled_numbers_and_vectors_are_rounded_once() -> None:
    """Against fractions, subnormal results, ties, overflow and NaN among them, and what operations mean."""
    pass_without_fma(str(NUMERICS / "math" / "test_fma.py"))
    pass_without_fma(str(NUMERICS / "simd" / "test_operations.py"), "-k", "numbers and (fma or polynomial)")


@pytest.mark.long
def test_no_kernel_calls_the_fma_of_c() -> None:
    pass_without_fma(str(NUMERICS / "test_ir.py"), "-k", "[exp]")
