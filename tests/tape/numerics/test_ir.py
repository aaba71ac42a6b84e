"""What kernels are compiled to: correctly rounded operations in the order written, and nothing else.

Read from LLVM's IR and the assembly of every kernel, for every dtype that an op or optimizer needs it for.
"""

# numba's functions carry no types.
# mypy: disable-error-code="attr-defined,call-arg,var-annotated"
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false
import io
import json
import math
import platform
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import dgrr.runtime
import dgrr.tape
import dgrr.tape.nn
import dgrr.trace
from dgrr.tape.numerics.engine.code_for import target
from dgrr.tape.numerics.engine.disk_cache import stamp_of
from dgrr.tape.numerics.engine.intrinsics import word
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel, vector
from dgrr.tape.numerics.engine.numba_compiler import KernelCache, fuses
from dgrr.tape.numerics.simd.codegen import vector_bytes
from dgrr.tape.numerics.simd.operations import fma
from dgrr.tape.numerics.software.functions import FMA64

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

ALLOWED = re.compile(
    r"""llvm\.(
        (fma|sqrt|fabs|copysign)\.(v\d+)?f(32|64)                         # rounded correctly, or exact
      | (smax|smin|umax|umin|abs|ctlz|cttz|fshl|fshr)\.(v\d+)?i\d+        # integers
      | [su](add|sub|mul)\.(with\.overflow|sat)\.(v\d+)?i\d+
      | vector\.reduce\.(add|mul|and|or|xor|smax|smin|umax|umin)\.v\d+i\d+
      | masked\.(load|store|gather|scatter)\.[\w.]+                       # memory
      | (memset|memcpy|memmove)\.[\w.]+
      | is\.fpclass\.(v\d+)?f(32|64)                                     # a test of bits
      | bswap\.i64
      | prefetch\.p0 | x86\.sse2\.pause | aarch64\.hint                # hints
      | lifetime\.(start|end)\.p0 | assume | experimental\.noalias\.scope\.decl
    )""",
    re.VERBOSE,
)
"""What the code of a kernel may call, besides functions of dgrr itself."""

ERROR_PATH = {
    "numba_gil_ensure", "numba_gil_release", "numba_unpickle", "numba_do_raise",
    "numba_runtime_build_excinfo_struct", "NRT_Free", "PyUnicode_FromString", "PyBytes_FromStringAndSize",
    "Py_DecRef", "PyErr_WriteUnraisable", "PyErr_Clear", "PyErr_SetNone", "PyErr_SetString", "?",
}  # fmt: skip
"""What the wrapper around a kernel calls to print an exception, also through a pointer in the exception.

It is never reached: `exceptions` shows that there is none.
"""

REFERENCE_COUNT = {"llvm.x86.atomic.sub.cc.i64", "NRT_MemInfo_call_dtor"}
"""What ``NRT_decref`` calls; the arrays of kernels own no memory, so it returns at once."""

CALLING = re.compile(r"5chain|4loop|6choice|7machine")
"""Functions that call kernels: chains, loops, choices, and the machine that runs rows for these."""

FLAGS = "fast|nnan|ninf|nsz|arcp|contract|afn|reassoc"

FUSED = r"\bv?f(n?m)(add|sub)\w*|\bfml[as]\b"
"""Fused multiply-adds of x86 and of ARM."""


@dataclass(frozen=True)
class Code:
    """A kernel as the compiler sees it."""

    callback: Any

    @cached_property
    def ir(self) -> str:
        """In LLVM's language."""
        return str(self.callback.inspect_llvm())

    @cached_property
    def assembly(self) -> str:
        """For the machine: made of the IR once more, which takes a while."""
        return str(self.callback._library.get_asm_str())

    def functions(self) -> Iterator[tuple[str, str]]:
        """Name and body of every function."""
        for found in re.finditer(r'^define [^@]*@"?([\w.$]+)"?\(.*?^}', self.ir, re.MULTILINE | re.DOTALL):
            yield found[1], found[0]


def calls(body: str) -> set[str]:
    """The functions that a body calls by name; ``?`` stands for a call through a pointer."""
    found = re.findall(r'\b(?:call|invoke) [^@\n]*?(?:@"?([\w.$]+)"?|%[\w.]+)\(', body)
    return {name or "?" for name in found}


def foreign_calls(code: Code) -> list[str]:
    """Calls that no kernel may make, as ``caller: callee``."""
    faults: list[str] = []
    for name, body in code.functions():
        if name.startswith("cfunc."):
            allowed = {c for c in calls(body) if c in ERROR_PATH or "4dgrr" in c or c == "NRT_decref"}
        elif name in ("NRT_decref", "NRT_incref"):
            allowed = REFERENCE_COUNT
        else:
            allowed = {c for c in calls(body) if ALLOWED.fullmatch(c) or c.startswith(("_ZN4dgrr", "dgrr.", FMA64))}
            allowed -= set() if fuses() else {c for c in calls(body) if c.startswith("llvm.fma.")}  # libm's there
            allowed |= {"NRT_decref", "NRT_incref"} | ({"?"} if CALLING.search(name) else set())
        faults += [f"{name}: {callee}" for callee in sorted(calls(body) - allowed)]
    return faults


def loose_arithmetic(code: Code) -> list[str]:
    """Instructions with a fast-math flag, remainders (libm's fmod), functions with loose attributes."""
    opcode = r"= (?:(?:tail|musttail|notail) )?(?:f[a-z]+|select|phi|call)"
    flagged = rf"{opcode}(?: [a-z]+)*? (?:{FLAGS})\b|\bfrem\b"
    loose = r'"(?:unsafe|no-nans|no-infs|no-signed-zeros|approx-func)-fp-math"="true"|"denormal-fp-math'
    return [line.strip() for line in code.ir.splitlines() if re.search(f"{flagged}|{loose}", line)]


def exceptions(code: Code) -> list[str]:
    """Exceptions that the kernel can raise: their pickled types and arguments."""
    return re.findall(r"^@\.const\.pickledata[\w.]*", code.ir, re.MULTILINE)


def contractions(code: Code) -> list[str]:
    """Fused instructions in the assembly of a kernel that asks for none."""
    return [] if "@llvm.fma." in code.ir else [found[0] for found in re.finditer(FUSED, code.assembly)]


def fused(code: Code) -> tuple[int, int]:
    """Fused instructions that the IR asks for, vectors being as wide as the registers, and those in the assembly."""
    written = re.findall(r"\bcall [^@\n]*@llvm\.fma\.(?:v(\d+))?f(32|64)\(", code.ir)
    registers = [-(-int(lanes or 1) * int(bits) // (8 * vector_bytes())) for lanes, bits in written]
    return sum(registers), len(re.findall(FUSED, code.assembly))


CHECKS = (foreign_calls, loose_arithmetic, exceptions, contractions)


@cache
def used() -> dict[str, list[np.dtype[Any]]]:
    """The dtypes that each kernel is used with, found by running every op, derivative and optimizer.

    In a process of its own, because ops keep the addresses that they were given.
    """
    command = [sys.executable, "-m", "dgrr.tests.tape.numerics.used_kernels"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: [np.dtype(dtype) for dtype in dtypes] for name, dtypes in json.loads(done.stdout).items()}


def compiled(kernel: Kernel, dtype: Any, keep: bool = False) -> Code:
    """The kernel compiled once more as ever, past what is kept in memory and on disk: cached code has no IR."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_compiled", {})
        patch.setattr(KernelCache, "has", lambda *_: False)
        patch.setattr(KernelCache, "load_overload", lambda *_: None)
        if not keep:
            patch.setattr(KernelCache, "save_overload", lambda *_: None)
        return Code(kernel.compiled(np.dtype(dtype)))


def version(kernel: Kernel) -> str:
    """What the machine code of a kernel depends on, and what looks at it."""
    stamp = stamp_of(Path(kernel.body.__code__.co_filename))
    return f"{stamp} {target()} {used()[kernel.name]} {sha256(Path(__file__).read_bytes()).hexdigest()}"


OWN = [name for name, kernel in KERNELS.items() if kernel.body.__module__.startswith("dgrr.")]
"""The kernels of the package: tests of users' rules bring others."""


@pytest.mark.parametrize("name", OWN)
def test_kernels_are_exact_arithmetic_in_the_order_written(name: str, pytestconfig: pytest.Config) -> None:
    """What is compiled here is kept, so that in a fresh environment this is the only time it is compiled.

    Nor is it compiled again to be looked at again: pytest's cache holds the version that passed.
    """
    assert used()[name], "no op, derivative or optimizer runs this kernel"
    passed = getattr(pytestconfig, "cache", None)
    if passed and passed.get(f"dgrr/ir/{name}", "") == version(KERNELS[name]):
        return
    for dtype in used()[name]:
        code = compiled(KERNELS[name], dtype, keep=True)
        assert any(name in function for function, _ in code.functions())
        assert {check.__name__: check(code) for check in CHECKS} == {check.__name__: [] for check in CHECKS}
    if passed:
        passed.set(f"dgrr/ir/{name}", version(KERNELS[name]))


# The checks must see what they look for.


@njit(fastmath=True)
def fast_sum(x: Any) -> Any:
    total = x[0]
    for i in range(1, x.size):
        total += x[i]
    return total


@njit(fastmath={"contract"})
def contracted(x: Any, y: Any) -> None:
    for i in range(x.size):
        y[i] = x[i] * x[i] + y[i]


def reassociates(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    vector(table, 0, 0, 1)[0] = fast_sum(vector(table, 1, 0, word(ints, 0)))
    return 0


def contracts(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    contracted(vector(table, 1, 0, word(ints, 0)), vector(table, 0, 0, word(ints, 0)))
    return 0


def calls_libm(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    out = vector(table, 0, 0, 1)
    out[0] = math.exp(out[0])
    return 0


def calls_numpy(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    out = vector(table, 0, 0, 1)
    out[0] = np.exp(out[0])
    return 0


def calls_rounding_libm(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    out = vector(table, 0, 0, 1)
    out[0] = math.sqrt(out[0])
    return 0


def divides_with_remainder(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    out = vector(table, 0, 0, 2)
    out[0] = out[0] % out[1]
    return 0


def raises(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    if word(ints, 0) == 0:
        raise ValueError("nothing to do")
    return 0


def assigns_slices(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    n = word(ints, 0)
    vector(table, 0, 0, n)[:] = vector(table, 1, 0, word(ints, 1))
    return 0


def contracts_beside_fma(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    out = vector(table, 0, 0, 1)
    out[0] = fma(out[0], out[0], out[0])
    contracted(vector(table, 1, 0, word(ints, 0)), vector(table, 0, 0, word(ints, 0)))
    return 0


BROKEN: list[tuple[Any, Callable[[Code], list[str]], str]] = [
    (reassociates, loose_arithmetic, "fadd fast"),
    (contracts, loose_arithmetic, "contract"),
    (contracts, contractions, "fm"),
    (calls_libm, foreign_calls, "exp"),
    (calls_numpy, foreign_calls, "exp"),
    (calls_rounding_libm, foreign_calls, "sqrt"),
    (divides_with_remainder, loose_arithmetic, "frem"),
    (raises, exceptions, "pickledata"),
    (assigns_slices, exceptions, "pickledata"),
    (assigns_slices, foreign_calls, "log10"),
]


@pytest.mark.parametrize(("body", "check", "text"), BROKEN)
def test_a_broken_kernel_is_caught(
    monkeypatch: pytest.MonkeyPatch, body: Any, check: Callable[[Code], list[str]], text: str
) -> None:
    monkeypatch.setattr("dgrr.tape.numerics.engine.kernel.KERNELS", {})
    faults = check(compiled(Kernel(body), np.float32))  # which are found by names, whatever the width
    assert any(text in fault for fault in faults), faults


@pytest.mark.parametrize("name", ["exp", pytest.param("gemm", marks=pytest.mark.long)])
def test_the_machine_fuses_as_often_as_is_written(name: str) -> None:
    assert platform.machine() in ("x86_64", "AMD64", "aarch64", "arm64")
    written, found = fused(compiled(KERNELS[name], np.float32))
    assert found == written
    assert fuses() is (found > 0)


@pytest.mark.skipif(not fuses(), reason="nothing to contract into")
def test_a_contraction_beside_what_is_written_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgrr.tape.numerics.engine.kernel.KERNELS", {})
    code = compiled(Kernel(contracts_beside_fma), np.float32)
    assert not contractions(code)
    written, found = fused(code)
    assert found > written > 0


def fastmath_tokens(source: str) -> list[int]:
    """The lines on which ``fastmath`` stands as a name or as a whole string."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = (tokenize.NAME, tokenize.STRING)
    return [t.start[0] for t in tokens if t.type in kinds and t.string.strip("'\"") == "fastmath"]


@pytest.mark.parametrize("package", [dgrr.tape, dgrr.runtime, dgrr.trace], ids=lambda p: str(p.__name__))
def test_no_source_asks_for_fast_math(package: Any) -> None:
    files = sorted(Path(package.__file__).parent.rglob("*.py"))
    assert files
    assert [(path.name, line) for path in files for line in fastmath_tokens(path.read_text())] == []


def test_fast_math_is_found_in_code_and_not_in_comments() -> None:
    assert fastmath_tokens("njit(fastmath=True)\n'fastmath is off'  # fastmath\noptions = {'fastmath': 1}\n") == [1, 3]
