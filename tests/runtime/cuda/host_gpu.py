"""A GPU that is this machine: the driver's face over plain memory, and its kernels compiled for the CPU.

A launch runs its threads one after the other in random order, a graph its nodes in any order that their edges allow.
Memory holds junk until it is written. What is written in CUDA C++ is compiled by g++, what is translated by LLVM.
"""

import ctypes
import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock, local
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from dgrr.base import kernel_cache
from dgrr.runtime.cuda.driver import Clear, Copy, KernelNode
from dgrr.tape.numerics.cuda.code import Wanted
from dgrr.tape.numerics.cuda.entry import NAME
from dgrr.tape.numerics.cuda.written import REALS, CudaForm, Launch, Words
from dgrr.tape.numerics.llvm.worker import environment
from dgrr.tape.ops.linear.kernels import product as at

SREGS = ("tid", "ctaid", "ntid")

REGISTER = """
@{0} = global i32 0
define i32 @read_{0}() {{
  %r = load i32, ptr @{0}
  ret i32 %r
}}
"""
"""A register that names the thread that runs."""

WORK = """
  %work.{0} = load i64, ptr @work
  %more.{0} = add i64 %work.{0}, {1}
  store i64 %more.{0}, ptr @work
"""
"""What counts the instructions of a basic block, before its last."""

ENDS = re.compile(r"\s+(?:br|ret|switch|unreachable) ")

TRANSLATE = """
import json, sys
from dgrr.tape.numerics.cuda.translator import modules
for line in sys.stdin:
    print(json.dumps(modules(json.loads(line))), flush=True)
"""

KNOWN: dict[Wanted, str] = {}


def modules_of(wanted: Sequence[Wanted]) -> list[str]:
    """In the place of `ptx_of`: LLVM's modules, as JSON."""
    for one in wanted:
        path = kernel_cache.folder() / _file(one)
        if one not in KNOWN and path.is_file():
            KNOWN[one] = path.read_text()
    missing = [one for one in dict.fromkeys(wanted) if one not in KNOWN]
    if missing:
        tasks = "".join(json.dumps(one.task(Path())) + "\n" for one in missing)
        command = [sys.executable, "-c", TRANSLATE]
        done = subprocess.run(command, input=tasks, env=environment("gpu"), text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        for one, text in zip(missing, done.stdout.splitlines(), strict=True):
            KNOWN[one] = text
            kernel_cache.keep(_file(one), text.encode())
    return [KNOWN[one] for one in wanted]


def _file(one: Wanted) -> str:
    return one.file.replace(".ptx", ".modules.json")


def named(source: str, defines: Sequence[tuple[str, int | str]], architecture: str) -> bytes:
    """In the place of `nvrtc.compiled`: which program it is."""
    return json.dumps({"source": source, "defines": list(defines)}).encode()


@cache
def translated(code: bytes) -> Any:
    """What runs one thread of a translated kernel, and says how many instructions those were; and its code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    own = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()  # else fma is a call of a library
    machine = llvm.Target.from_default_triple().create_target_machine(*own, opt=1, jit=True)
    first, *others = [llvm.parse_assembly(_untargeted(text)) for text in json.loads(code)]
    for other in others:
        first.link_in(other)
    text = counted(str(first)) + "\n@work = global i64 0\n"
    for name in SREGS:
        text = re.sub(rf"declare [^\n]*@llvm\.nvvm\.read\.ptx\.sreg\.{name}\.x\(\)[^\n]*", "", text)
        text = text.replace(f"@llvm.nvvm.read.ptx.sreg.{name}.x", f"@read_{name}")
        text += REGISTER.format(name)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 6)(engine.get_function_address(NAME))
    registers = [ctypes.c_int32.from_address(engine.get_global_value_address(name)) for name in SREGS]
    work = ctypes.c_int64.from_address(engine.get_global_value_address("work"))
    kept = [engine]

    def run(node: KernelNode, thread: int) -> int:
        assert kept
        work.value = 0
        for register, value in zip(
            registers, (thread % node.block[0], thread // node.block[0], node.block[0]), strict=True
        ):
            register.value = value
        entry(*[argument.value for argument in node.arguments])
        return work.value

    run.code = code.decode()  # type: ignore[attr-defined]
    return run


def counted(text: str) -> str:
    """A module whose functions count the instructions that they run."""
    lines, block = list[str](), 0
    for number, line in enumerate(text.splitlines()):
        if ENDS.match(line):
            lines.append(WORK.format(number, block + 1))
            block = 0
        block += line.startswith("  ")
        lines.append(line)
    return "\n".join(lines)


def _untargeted(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith("target ")]
    return "\n".join(lines).replace("ptx_kernel ", "")


def shim() -> Any:
    """What compiles CUDA C++ by g++, from the tests of those kernels."""
    path = Path(__file__).parents[2] / "tape/numerics/cuda/host.py"
    spec = spec_from_file_location("cuda_host", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def simple_product(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launch of a product in the place of its tiles, which take long to compile."""
    batch, m, n = words[: at.N + 1]
    if batch * m * n == 0:
        return ()
    mask = at.FIRST_OPTIONAL + words[at.BIAS]
    addend = mask + words[at.MASK]
    pointers = (0, 1, 2, at.FIRST_OPTIONAL * words[at.BIAS], mask * words[at.MASK], addend * (words[at.ADDED] > 0))
    source, own = str(Path(__file__).with_name("simple_product.cu")), tuple(words[at.M : at.PACKED])
    defines, grid = (("REAL", REALS[dtype.itemsize]),), (batch * m, 1, 1)
    return (Launch(source, "simple_product", defines, grid, (32, 1, 1), 0, pointers, own),)


SIMPLE_PRODUCT = CudaForm(simple_product, lambda dtype, words: 0)


class HostMemory:
    """A block of junk."""

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.full(max(nbytes, 1) + 256, 0xAB, np.uint8)
        self.address = -(-int(self._bytes.ctypes.data) // 256) * 256


class HostGpu:
    """In the place of `Gpu`: as there, no thread may ask for anything before it has said that it uses it."""

    name, arch = "this machine", "sm_90"

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self._random, self._shim, self._lock = random.Random(seed), shim().Host(folder), Lock()
        self._thread = local()
        self.busiest: dict[str, int] = {}
        """The most instructions that a thread of each translated kernel has run, by its modules."""

    def use(self) -> None:
        self._thread.uses = True

    def _require_use(self) -> None:
        assert getattr(self._thread, "uses", False), "CUDA_ERROR_INVALID_CONTEXT"

    def allocate(self, nbytes: int) -> HostMemory:
        self._require_use()
        return HostMemory(nbytes)

    def pinned(self, nbytes: int) -> Any:
        self._require_use()
        return np.full(nbytes, 0xAB, np.uint8)

    def upload(self, target: int, array: Any) -> None:
        self._require_use()
        ctypes.memmove(target, array.ctypes.data, array.nbytes)

    def download(self, array: Any, source: int) -> None:
        self._require_use()
        ctypes.memmove(array.ctypes.data, source, array.nbytes)

    def function(self, code: bytes, name: str, shared: int = 0) -> Any:
        program = json.loads(code)
        if isinstance(program, list):
            return translated(code)
        return getattr(self._shim.library(program["source"], [tuple(d) for d in program["defines"]]), f"host_{name}")

    def graph(self, nodes: Sequence[KernelNode | Copy | Clear]) -> Any:
        return list(nodes)

    def launch(self, graph: Sequence[KernelNode | Copy | Clear]) -> None:
        self.start(graph)
        self.wait()

    def wait(self) -> None:
        """Nothing: a graph has ended as it was started."""
        self._require_use()

    def start_kernel(self, node: KernelNode, stream: int) -> None:
        self._require_use()
        self._run(node)

    def start(self, graph: Sequence[KernelNode | Copy | Clear]) -> None:
        self._require_use()
        left = set(range(len(graph)))
        with self._lock:  # of several ranks in one process
            while left:
                i = self._random.choice([i for i in left if not left & set(graph[i].after)])
                self._run(graph[i])
                left.remove(i)

    def _run(self, node: KernelNode | Copy | Clear) -> None:
        if isinstance(node, Copy):
            ctypes.memmove(node.target, node.source, node.nbytes)
        elif isinstance(node, Clear):
            ctypes.memset(node.target, 0, node.nbytes)
        elif len(node.arguments) == 2:
            call, report = map(ctypes.byref, node.arguments)
            grid = (ctypes.c_uint * 3)(*node.grid)
            node.function(call, report, grid, node.block[0], node.shared, self._random.randrange(1 << 30))
        else:
            threads = list(range(node.grid[0] * node.block[0]))
            self._random.shuffle(threads)
            most = max([node.function(node, thread) for thread in threads])
            self.busiest[node.function.code] = max(most, self.busiest.get(node.function.code, 0))
