"""For which machine this process writes code: its own CPU, or GPUs, on which every thread runs one part of a kernel.

A kernel's text is the same for both. Where the shape of a loop suits one of them alone, it is chosen here, once, before
anything is compiled; code for GPUs is written by processes of its own.
"""

import os

VARIABLE = "DGRR_CODE_FOR"
"""The environment variable that such a process is started with."""

GPU = os.environ.get(VARIABLE) == "gpu"
"""Whether the code is for GPUs."""
