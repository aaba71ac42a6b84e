"""For which machine this process writes code: its own CPU, GPUs, on which every thread runs one part of a kernel, or a
CPU that is elsewhere.

A kernel's text is the same for both. Where the shape of a loop suits one of them alone, it is chosen here, once, before
anything is compiled; code for other machines is written by processes of its own.
"""

import os

VARIABLE = "DGRR_CODE_FOR"
"""The environment variable that such a process is started with."""

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
