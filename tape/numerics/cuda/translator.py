"""The process that translates: ``python -m dgrr.tape.numerics.cuda.translator`` writes the PTX of tasks."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.kernel import KERNELS, Kernel
from ..llvm.link import linked, machine_for, optimised
from ..llvm.worker import serve
from .entry import NAME
from .translate import chain_modules, kernel_modules

NVIDIA = "nvptx64-nvidia-cuda"

VIRTUAL = "sm_75"
"""The architecture that PTX is written for: the driver compiles it for the GPU that is there, of that age or later."""


def _kernel(module: str, name: str) -> Kernel:
    import_module(module)
    return KERNELS[name]


def modules(task: dict[str, Any]) -> list[str]:
    """LLVM's modules of what a task asks for."""
    versions = [(_kernel(module, name), np.dtype(dtype)) for module, name, dtype in task["versions"]]
    if task["operands"] is None:
        return kernel_modules(*versions[0])
    links = [(*version, operands) for version, operands in zip(versions, task["operands"], strict=True)]
    return chain_modules(links, task["locals"])


def write(task: dict[str, Any]) -> None:
    """Write the PTX of a task into its file, whole or not at all."""
    machine, path = machine_for(NVIDIA, VIRTUAL), Path(task["path"])
    module = optimised(linked(modules(task), machine, [NAME]), machine, vectorised=False)
    partial = path.with_name(f"{path.stem}-{os.getpid()}.partial")
    partial.write_text(machine.emit_assembly(module))
    partial.replace(path)


if __name__ == "__main__":
    serve(write)
