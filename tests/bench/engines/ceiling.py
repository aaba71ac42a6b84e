"""What the machine can do at most: ``python -m engines.ceiling THREADS`` prints a `Ceiling` as JSON.

Two loops that are no kernels of dgrr, compiled for the CPU that its kernels are compiled for: fused multiply-adds that
stay in registers, and ``c[i] = a[i] + b[i]`` over arrays of many sizes, each thread on its own. The best of `REPEATS`
counts.
"""

import ctypes
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit

from dgrr.tape.numerics.engine.code_for import target
from dgrr.tape.numerics.simd.codegen import vector_bytes

from .worker import keep_to

REPEATS = 15
SECONDS = 0.004
"""What one repeat takes at least."""
CHAINS = 12
"""Sums that do not wait for each other: more than a CPU has in flight, and no more than it has registers for."""
SIZES = [1 << bits for bits in range(13, 29)]
"""Bytes that all threads touch."""

Loop = Callable[[int], Any]
"""It repeats its work so many times."""


@dataclass(frozen=True)
class Ceiling:
    """Operations per second, of which a fused multiply-add is two, and bytes per second by the bytes touched."""

    flops: float
    sizes: list[int]
    bandwidths: list[float]

    def least(self, flops: int, nbytes: int) -> float:
        """The seconds that a call takes at least, with all that it touches in the nearest cache that holds it."""
        bandwidth = np.interp(np.log2(max(nbytes, 1)), np.log2(self.sizes), self.bandwidths)
        return max(flops / self.flops, nbytes / float(bandwidth))


def measured(threads: int) -> Ceiling:
    """The rates of so many threads."""
    with ThreadPoolExecutor(threads) as pool:
        best = partial(_least_seconds, pool)
        flops = 2 * lanes() * CHAINS * threads / best([multiply_add() for _ in range(threads)])
        bandwidths = [size / best([addition(size // threads) for _ in range(threads)]) for size in SIZES]
    return Ceiling(flops, SIZES, bandwidths)


def _least_seconds(pool: ThreadPoolExecutor, loops: Sequence[Loop]) -> float:
    """The seconds of one repetition in every thread."""
    times = 1
    while _seconds(pool, loops, times) < SECONDS:
        times *= 2
    return min(_seconds(pool, loops, times) for _ in range(REPEATS)) / times


def _seconds(pool: ThreadPoolExecutor, loops: Sequence[Loop], times: int) -> float:
    began = perf_counter()
    for running in [pool.submit(loop, times) for loop in loops]:
        running.result()
    return perf_counter() - began


def lanes() -> int:
    """The float32 of a vector."""
    return vector_bytes() // 4


def addition(nbytes: int) -> Loop:
    """The sum of two arrays, which touches so many bytes."""
    a, b, c = np.ones((3, nbytes // 12), np.float32)
    _add(c, a, b, 1)
    return partial(_add, c, a, b)


@njit(nogil=True)
def _add(c: Any, a: Any, b: Any, times: int) -> None:
    for _ in range(times):
        for i in range(c.size):
            c[i] = a[i] + b[i]


def multiply_add() -> Loop:
    """A loop that multiplies and adds `CHAINS` vectors."""
    triple, cpu, features = target()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_text()), machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("multiply_add"))
    return partial(_run, np.full(lanes(), 0.5, np.float32), function, engine)


def _run(data: Any, function: Any, engine: llvm.ExecutionEngine, times: int) -> None:
    """Call a function that lies in the memory of an engine."""
    function(data.ctypes.data, times)


def _text() -> str:
    """The loop in LLVM's assembly."""
    vector, name = f"<{lanes()} x float>", f"@llvm.fma.v{lanes()}f32"
    sums = range(CHAINS)
    begin = "\n".join(f"  %s{i} = phi {vector} [ %m, %entry ], [ %t{i}, %loop ]" for i in sums)
    step = "\n".join(f"  %t{i} = call {vector} {name}({vector} %s{i}, {vector} %m, {vector} %m)" for i in sums)
    end = "\n".join(f"  store volatile {vector} %t{i}, ptr %data, align 4" for i in sums)
    return f"""
declare {vector} {name}({vector}, {vector}, {vector})
define void @multiply_add(ptr %data, i64 %times) {{
entry:
  %m = load {vector}, ptr %data, align 4
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
{begin}
{step}
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %out
out:
{end}
  ret void
}}
"""


def main() -> None:
    threads = int(sys.argv[1])
    keep_to(threads)
    print(json.dumps(asdict(measured(threads))))


if __name__ == "__main__":
    main()
