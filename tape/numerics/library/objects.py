"""The process that makes libraries: ``python -m dgrr.tape.numerics.library.objects`` does the tasks that come in.

Of a task it takes the entries, which call kernels by symbol, adds these, and leaves one object file. Equal tasks give
equal files: what numba and LLVM name, they name by counters and addresses, so all that is private is named anew.
"""

from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from numba import types

from ....base import kernel_cache
from ....base.atomic_file import replacing
from ....base.errors import DgrrError
from ..engine import numba_compiler
from ..engine.disk_cache import stamp_of
from ..engine.kernel import KERNELS
from ..engine.numba_compiler import callback, llvm_code
from ..llvm import kernel_text as texts
from ..llvm.link import linked, machine_for, optimised
from ..llvm.worker import serve
from ..software import fma64
from ..software.functions import FMA64, with_software
from .lint import findings
from .targets import TARGETS, Target


class RefusedCodeError(DgrrError, RuntimeError):
    """Code that must not leave: another machine could give it other bits."""


def make(task: dict[str, Any]) -> int:
    """Write the object of a task into its file; how many bytes it has."""
    target = TARGETS[task["target"]]
    machine = machine_for(target.triple, target.cpu, target.features, target.abi)
    kernels = [_kernel(*version) for version in task["versions"]]
    module = _with_software(
        linked([*task["entries"], *kernels], machine, task["public"]), machine, target, task["public"]
    )
    module = optimised(module, machine, vectorised=True)
    hidden = [x for x in (*module.functions, *module.global_variables) if not x.is_declaration]
    for i, each in enumerate(x for x in hidden if x.name not in task["public"]):
        each.name = f"{task['name']}.{i}"
    if refused := findings(str(module)):
        raise RefusedCodeError(f"{refused[0].reason}: {refused[0].text}")
    data = machine.emit_object(module)
    with replacing(task["path"]) as file:
        file.write(data)
    return len(data)


def _with_software(module: Any, machine: Any, target: Target, public: list[str]) -> Any:
    """A module with what the target lacks, before LLVM has seen that it is lacking."""
    text, needed = with_software(str(module), target.fused, rounds=target.rounds)
    return linked([text, _fma64()] if needed else [text], machine, public)


def _kernel(module: str, name: str, dtype: str) -> str:
    import_module(module)
    kernel = KERNELS[name]
    source = Path(kernel.body.__code__.co_filename)
    return _kept(f"{name}-{dtype}", source, lambda: texts.kernel_text(kernel, np.dtype(dtype)).text)


def _fma64() -> str:
    kind = types.float64(types.float64, types.float64, types.float64)
    source, body = Path(fma64.__file__), cast(Any, fma64).fma64
    return _kept(FMA64, source, lambda: texts.cleaned(*llvm_code(callback(body, kind), kind), FMA64))


def _kept(name: str, source: Path, write: Any) -> str:
    """A text, from the folder of kernels if it is there."""
    writers = (source, Path(texts.__file__), Path(numba_compiler.__file__))
    stamps = " ".join([name, *map(stamp_of, writers)])
    path = kernel_cache.folder() / f"{name}-{sha256(stamps.encode()).hexdigest()[:32]}.ll"
    if path.is_file():
        return path.read_text()
    text: str = write()
    kernel_cache.keep(path.name, text.encode())
    return text


if __name__ == "__main__":
    serve(make)
