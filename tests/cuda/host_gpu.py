"""A GPU that is this machine: the driver's face over plain memory, and translated kernels compiled for the CPU.

A launch runs its threads one after the other in random order, a graph its nodes in any order that their edges allow.
Memory holds junk until it is written.
"""

import ctypes
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from dgrr.runtime.cuda.driver import Copy, Node
from dgrr.tape.numerics.cuda.code import Wanted
from dgrr.tape.numerics.cuda.entry import NAME
from dgrr.tape.numerics.cuda.translator import process_environment

SREGS = ("tid", "ctaid", "ntid")

TRANSLATE = """
import json, sys
from dgrr.tape.numerics.cuda.translator import modules
for line in sys.stdin:
    print(json.dumps(modules(json.loads(line))), flush=True)
"""


def modules_of(wanted: Sequence[Wanted]) -> list[str]:
    """In the place of `ptx_of`: the modules themselves, as JSON."""
    missing = [one for one in dict.fromkeys(wanted) if one not in _KNOWN]
    if missing:
        from pathlib import Path

        tasks = "".join(json.dumps(one.task(Path())) + "\n" for one in missing)
        command = [sys.executable, "-c", TRANSLATE]
        done = subprocess.run(command, input=tasks, env=process_environment(), text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        _KNOWN.update(zip(missing, done.stdout.splitlines(), strict=True))
    return [_KNOWN[one] for one in wanted]


_KNOWN: dict[Wanted, str] = {}


@cache
def _compiled(code: bytes) -> tuple[Any, Any, dict[str, ctypes.c_int32]]:
    """The engine that holds some code, its entry, and the registers that name the thread that runs."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
    texts = []
    for text in json.loads(code):
        lines = [line for line in text.splitlines() if not line.startswith("target ")]
        texts.append("\n".join(lines).replace("ptx_kernel ", ""))
    first, *others = [llvm.parse_assembly(text) for text in texts]
    first.triple = llvm.get_default_triple()
    for other in others:
        first.link_in(other)
    registers = "".join(
        f"@{name} = global i32 0\n"
        f"define i32 @llvm_nvvm_read_{name}() {{\n  %r = load i32, ptr @{name}\n  ret i32 %r\n}}\n"
        for name in SREGS
    )
    whole = str(first)
    for name in SREGS:
        whole = whole.replace(f"@llvm.nvvm.read.ptx.sreg.{name}.x", f"@llvm_nvvm_read_{name}")
        whole = "\n".join(
            line for line in whole.splitlines() if not line.startswith("declare") or f"read_{name}" not in line
        )
    module = llvm.parse_assembly(whole + "\n" + registers)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 6)
    entry = kind(engine.get_function_address(NAME))
    found = {name: ctypes.c_int32.from_address(engine.get_global_value_address(name)) for name in SREGS}
    return engine, entry, found


class HostMemory:
    """A block of junk."""

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.full(max(nbytes, 1) + 64, 0xAB, np.uint8)
        self.address = int(self._bytes.ctypes.data) + 64 - int(self._bytes.ctypes.data) % 64


class HostGpu:
    """In the place of `Gpu`."""

    name, arch = "this machine", "sm_90"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.launches = 0

    def use(self) -> None: ...

    def allocate(self, nbytes: int) -> HostMemory:
        return HostMemory(nbytes)

    def pinned(self, nbytes: int) -> Any:
        return np.full(nbytes, 0xAB, np.uint8)

    def upload(self, target: int, array: Any) -> None:
        ctypes.memmove(target, array.ctypes.data, array.nbytes)

    def download(self, array: Any, source: int) -> None:
        ctypes.memmove(array.ctypes.data, source, array.nbytes)

    def function(self, code: bytes, name: str, shared: int = 0) -> Any:
        return _compiled(code)

    def graph(self, nodes: Sequence[Node | Copy]) -> Any:
        return list(nodes)

    def launch(self, graph: Sequence[Node | Copy]) -> None:
        left = set(range(len(graph)))
        while left:
            ready = [i for i in left if not left & set(graph[i].after)]
            i = self._random.choice(ready)
            self._run(graph[i])
            left.remove(i)

    def _run(self, node: Node | Copy) -> None:
        self.launches += 1
        if isinstance(node, Copy):
            ctypes.memmove(node.target, node.source, node.nbytes)
            return
        _, entry, registers = node.function
        registers["ntid"].value = node.block[0]
        numbers = [argument.value for argument in node.arguments]
        threads = list(range(node.grid[0] * node.block[0]))
        self._random.shuffle(threads)
        for thread in threads:
            registers["ctaid"].value, registers["tid"].value = divmod(thread, node.block[0])
            entry(*numbers)
