"""For which machine this process writes code: CPUs of a level, GPUs, where every thread runs one part of a kernel, or a
CPU that is elsewhere.

A kernel's text is the same for all. Where the shape of a loop suits one of them alone, it is chosen here, once, before
anything is compiled; code for GPUs and for CPUs elsewhere is written by processes of its own.

A level is a set of instructions, so that what one machine compiles serves every other that has them. The levels of
x86-64 are those of its psABI (section 3.1.1); elsewhere there is one, ``generic``: armv8-a on ARM. ``NUMBA_CPU_NAME``
names another, or any CPU that LLVM knows.
"""

# llvmlite carries no types.
# pyright: basic, reportAttributeAccessIssue=false
import os
from collections.abc import Set
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba import config

VARIABLE = "DGRR_CODE_FOR"
"""The environment variable that a process which writes code for another machine is started with."""

CODE_FOR = os.environ.get(VARIABLE, "cpu")
"""``cpu``, ``gpu``, or as `elsewhere` writes it."""

GPU = CODE_FOR == "gpu"
"""Whether the code is for GPUs."""


def elsewhere(vector: int, bundle: int) -> str:
    """What a process is started with that writes code for CPUs whose vector registers have so many bytes.

    ``bundle`` are the bytes of the vectors of long loops.
    """
    return f"cpu {vector} {bundle}"


_, *_SIZES = CODE_FOR.split()

VECTOR, BUNDLE = map(int, _SIZES) if _SIZES else (None, 256)
"""Bytes of a vector register, where the CPU is elsewhere; of the vectors of long loops on a CPU: four of the widest
registers, whose operations run interleaved."""

MASKED = VECTOR is not None and VECTOR > 16
"""Whether the CPU elsewhere moves some lanes of a vector by an instruction: AVX does, vectors of 16 bytes do not."""

APART = VECTOR is not None and not MASKED
"""Whether it moves them one after the other."""


class Level(NamedTuple):
    """A level: what LLVM calls it, which instructions it has beyond the level below, and how code for it is tuned.

    ``fuses`` is whether it has one for a product with a sum, rounded once.
    """

    name: str
    needs: str
    tuning: str = ""
    fuses: bool = True


LEVELS = (
    Level("x86-64", "", fuses=False),
    Level("x86-64-v2", "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3", fuses=False),
    Level("x86-64-v3", "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave", "+prfchw"),
    Level("x86-64-v4", "avx512bw avx512cd avx512dq avx512f avx512vl", "+prfchw,-prefer-256-bit"),
)
"""Those of x86-64, each with all that the ones before it have.

``prefetchw`` is in no level, and does nothing on a CPU of v3 that lacks it. LLVM tunes v4 for the first CPUs that had
its instructions, which slowed down when they used vectors of 512 bits.
"""

ELSEWHERE = Level("generic", "")


def levels() -> tuple[Level, ...]:
    """The levels of this architecture, ascending."""
    return LEVELS if llvm.get_process_triple().startswith("x86_64") else (ELSEWHERE,)


def highest(features: Set[str]) -> Level:
    """The highest level of this architecture whose instructions are all among ``features``."""
    lowest, *others = levels()
    for level in others:
        if not features.issuperset(level.needs.split()):
            break
        lowest = level
    return lowest


@cache
def host_features() -> Any:
    """The features of this machine's CPU by LLVM's names, and whether it has them; none where LLVM cannot tell."""
    try:
        return llvm.get_host_cpu_features()
    except RuntimeError:
        return llvm.FeatureMap()


def host_level() -> Level:
    """The highest level that this machine has."""
    return highest({name for name, present in host_features().items() if present})


@cache
def target() -> tuple[str, str, str]:
    """Triple, name of the CPU and features for which kernels are compiled."""
    name, features = config.CPU_NAME, config.CPU_FEATURES
    level = host_level() if name is None else next((level for level in levels() if level.name == name), None)
    if level is not None and not features:
        name, features = level.name, level.tuning
    elif features is None:  # as numba has it
        features = host_features().flatten()
    return llvm.get_process_triple(), name or llvm.get_host_cpu_name(), features
