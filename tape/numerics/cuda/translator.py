"""The process that translates: ``python -m dgrr.tape.numerics.cuda.translator`` reads tasks, a JSON object a line.

Each is answered by a line: the number of the task, and the error in words or null. It runs without numba's own
optimiser, whose output is for the CPU at hand: `process_environment`.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.code_for import VARIABLE
from ..engine.kernel import KERNELS, Kernel
from ..engine.numba_internals import ptx
from .entry import NAME
from .translate import chain_modules, kernel_modules

__all__ = ["main", "process_environment"]


def process_environment() -> dict[str, str]:
    """The environment of such a process, which finds the modules that this one finds."""
    numba = {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    return {**os.environ, **numba, VARIABLE: "gpu", "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}


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


def main() -> None:
    """Translate until the standard input ends."""
    for i, line in enumerate(sys.stdin):
        task = json.loads(line)
        try:
            text, error = ptx(modules(task), NAME), None
            path = Path(task["path"])
            partial = path.with_name(f"{path.stem}-{os.getpid()}.partial")
            partial.write_text(text)
            partial.replace(path)
        except Exception as problem:  # the process that asked says it
            error = f"{type(problem).__name__}: {problem}"
        print(json.dumps([i, error]), flush=True)


if __name__ == "__main__":
    main()
