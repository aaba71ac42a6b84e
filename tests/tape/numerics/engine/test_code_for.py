"""Code is for a level of instructions: which one a CPU has, and that of numba's own users is left alone."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.registry import cpu_target

from dgrr.tape.numerics.engine.code_for import LEVELS, highest, host_level, levels, target
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.machine import find_arrays
from dgrr.tape.numerics.engine.numba_compiler import compiling

X86 = len(levels()) > 1

NEHALEM = {"cx16", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"}
SANDYBRIDGE = NEHALEM | {"avx", "pclmul", "xsave"}
HASWELL = SANDYBRIDGE | {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
SKYLAKE_X = HASWELL | {"adx", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "prfchw"}
"""What LLVM finds on such CPUs, of what levels ask for."""


@pytest.mark.skipif(not X86, reason="one level alone")
@pytest.mark.parametrize(
    ("features", "level"),
    [
        ({"sse", "sse2"}, "x86-64"),
        (NEHALEM, "x86-64-v2"),
        (SANDYBRIDGE, "x86-64-v2"),
        (HASWELL, "x86-64-v3"),
        (SKYLAKE_X, "x86-64-v4"),
        (SKYLAKE_X - {"avx512vl"}, "x86-64-v3"),
        (SKYLAKE_X - {"popcnt"}, "x86-64"),
    ],
)
def test_a_cpu_has_the_highest_level_of_which_it_has_all(features: set[str], level: str) -> None:
    assert highest(features).name == level


def targeted(**variables: str) -> str:
    """What another process compiles for."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    program = "from dgrr.tape.numerics.engine.code_for import target; print(*target()[1:])"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=kept | variables, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(not X86, reason="one level alone")
@pytest.mark.long
def test_the_target_is_the_level_of_the_host_or_what_numba_is_told() -> None:
    tuning = {level.name: level.tuning for level in LEVELS}
    assert target()[1:] == (host_level().name, tuning[host_level().name]) or "NUMBA_CPU_NAME" in os.environ
    assert targeted(NUMBA_CPU_NAME="x86-64-v3") == f"x86-64-v3 {tuning['x86-64-v3']}"
    assert targeted(NUMBA_CPU_NAME="x86-64-v3", NUMBA_CPU_FEATURES="") == f"x86-64-v3 {tuning['x86-64-v3']}"
    assert targeted(NUMBA_CPU_NAME="x86-64-v3", NUMBA_CPU_FEATURES="+sse4a") == "x86-64-v3 +sse4a"
    assert targeted(NUMBA_CPU_NAME="znver3", NUMBA_CPU_FEATURES="") == "znver3"
    assert "+sse2" in targeted(NUMBA_CPU_NAME="znver3")


def codegen_of(function: Any) -> str:
    """For which CPU the one version of a function was compiled."""
    (compiled,) = function.overloads.values()
    return str(compiled.library.codegen.magic_tuple()[1])


def test_code_of_others_in_the_process_is_for_the_cpu_at_hand_and_works_with_ours() -> None:
    """A function of the user's, called by a kernel or not, before or after."""
    theirs: Any = njit(lambda x: x + 1)
    first: Any = njit(lambda x: theirs(x) * 2)
    assert first(1) == 4
    with compiling():
        ours: Any = njit(lambda x: theirs(x) * 3)
        assert ours(1) == 6
        inner: Any = njit(lambda x: [theirs(x), x])
        assert inner(1) == [2, 1]
    last: Any = njit(lambda x: ours(x) + inner(x)[0])
    assert last(1) == 8
    assert [codegen_of(f) for f in (theirs, first, last)] == [cpu_target.target_context.codegen().magic_tuple()[1]] * 3
    assert [codegen_of(f) for f in (ours, inner)] == [target()[1]] * 2


def test_kernels_are_for_the_level() -> None:
    (version, _) = KERNELS["relu"]._version(np.dtype(np.float32))  # pyright: ignore[reportPrivateUsage]
    version.compile()
    assert version._library.codegen.magic_tuple() == target()
    find_arrays(0, 0, 0, 0, 0, 0)  # compiled when Python first calls it
    assert codegen_of(find_arrays) == target()[1]


@pytest.mark.long
def test_what_is_kept_is_loaded_without_what_numba_compiles_with() -> None:
    """numba's registries take ten times as long to load as a kernel."""
    program = """
import sys
from dgrr.tape import Tape, ops
ops.relu(Tape().leaf([1.0]))
print("numba.np.arraymath" in sys.modules, "numba.core.inline_closurecall" in sys.modules)
"""
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True)
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "False False\n"
