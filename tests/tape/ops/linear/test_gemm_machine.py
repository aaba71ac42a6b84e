"""Matrix products on machines: what memory they touch, which shares fill it, what they are compiled to."""

# llvmlite carries no types.
# mypy: disable-error-code="import-untyped"
# pyright: basic
import os
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from dgrr.tape.numerics.engine.kernel import call
from dgrr.tape.numerics.simd import codegen as simd
from dgrr.tape.ops.linear.kernels import tile as linear_tile
from dgrr.tape.ops.linear.kernels.gemm import gemm
from dgrr.tape.ops.linear.kernels.product import Product

pytestmark = pytest.mark.long

BITS = Path(__file__).with_name("test_gemm.py")
JUNK = 7

# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("shape", [(1, 530, 300), (1, 75, 530), (3, 13, 9)])
def test_each_share_fills_and_works_in_memory_of_its_own(shape: tuple[int, int, int]) -> None:
    (batch, m, n), k, parts, dtype = shape, 1024, 3, np.dtype(np.float32)
    a, b = np.ones((batch, m, k), dtype), np.ones((batch, k, n), dtype)
    product, strides = Product(batch, m, n, k, 4), (a.strides, b.strides)
    filled, used = np.zeros(shape, np.int64), np.zeros(product.scratch(strides, parts), np.int64)
    assert bool(used.size) == (m > 13)
    for part in range(parts):
        out, scratch = np.full(shape, JUNK, dtype), np.full(used.size, JUNK, np.uint8)
        arrays = (out, a, b, scratch) if used.size else (out, a, b)
        call(gemm.address(dtype), product.words(strides).address, part, parts, tuple(map(id, arrays)))
        filled += out == k
        used += scratch != JUNK
        assert np.isin(out, (k, JUNK)).all()
        assert 0 < (out == k).sum() < out.size / parts + 20 * (m + n)
    assert (filled == 1).all()
    assert used.size == 0 or used.max() == 1


def test_small_products_need_no_scratch_memory() -> None:
    for m, n, k in ((64, 8, 8), (64, 128, 128), (10, 512, 128), (100, 100, 100)):
        for strides in (((4 * k, 4), (4 * n, 4)), ((4, 4 * m), (4, 4 * k))):
            assert Product(1, m, n, k, 4).scratch(strides, 7) == 0


def test_scratch_memory_grows_with_the_shares_and_never_with_the_contraction() -> None:
    product, longer = Product(1, 512, 512, 512, 4), Product(1, 512, 512, 4096, 4)
    strides = ((4, 2048), (2048, 4))
    once, twice = product.scratch(strides, 1), product.scratch(strides, 2)
    assert 0 < once < twice < 2 * once
    assert longer.scratch(strides, 1) == once


def test_words_are_kept_ready() -> None:
    product = Product(1, 5, 6, 7, 8)
    assert product.words(((56, 8), (48, 8))) is product.words(((56, 8), (48, 8), (6,)))


GUARD_PAGES = """
import ctypes, mmap
import numpy as np
from dgrr.tape.ops.linear.kernels.gemm import gemm
from dgrr.tape.ops.linear.kernels.product import Product
from dgrr.tape.numerics.engine.kernel import call

libc = ctypes.CDLL(None, use_errno=True)
PAGE, kept = mmap.PAGESIZE, []

def fenced(shape, dtype, at_end):
    # an array between two pages that nobody may touch, at one end of its own memory
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = -(-size // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    kept.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        assert libc.mprotect(ctypes.c_void_p(base + page * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    start = PAGE + (pages * PAGE - size if at_end else 0)
    array = np.frombuffer(memory, dtype, int(np.prod(shape)), start).reshape(shape)
    array[...] = 1
    return array

for dtype in (np.float32, np.float64):
    narrow = ((19, 9, 16), (19, 9, 8), (19, 9, 4))
    for m, k, n in (*narrow, (1, 1, 1), (5, 3, 7), (13, 17, 33), (30, 300, 50), (66, 70, 300)):
        for at_end in (False, True):
            for a_t, b_t in ((False, False), (True, False), (False, True), (True, True)):
                out, mask = (fenced((1, m, n), dtype, at_end) for _ in range(2))
                a = fenced((k, m), dtype, at_end).T if a_t else fenced((m, k), dtype, at_end)
                b = fenced((n, k), dtype, at_end).T if b_t else fenced((k, n), dtype, at_end)
                product = Product(1, m, n, k, out.itemsize, bias=True, relu=True, mask=True)
                strides = (a.strides, b.strides)
                scratch = np.empty(product.scratch(strides, 1) + 1, np.uint8)
                arrays = (out, a, b, fenced((n,), dtype, at_end), mask, scratch)
                call(gemm.address(out.dtype), product.words(strides).address, 0, 1, tuple(map(id, arrays)))
                assert (out == k + 1).all(), (dtype, m, k, n)
print("done")
"""


def test_no_byte_outside_the_arrays_is_touched() -> None:
    done = subprocess.run([sys.executable, "-c", GUARD_PAGES], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


# ------------------------------------------------------------------ other CPUs

WIDTH = "from dgrr.tape.numerics.simd.codegen import vector_bytes; print(vector_bytes())"


def compiled_for(cpu: str, *command: str) -> subprocess.CompletedProcess[str]:
    """A Python command whose kernels are compiled for a CPU."""
    env = os.environ | {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("cpu", "width"), [("x86-64", 16), ("x86-64-v2", 16), ("x86-64-v3", 32), ("x86-64-v4", 64), ("znver5", 64)]
)
def test_the_vector_is_as_wide_as_the_registers_of_the_cpu(cpu: str, width: int) -> None:
    assert compiled_for(cpu, "-c", WIDTH).stdout == f"{width}\n"


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
def test_code_for_other_cpus_gives_the_same_bits(cpu: str) -> None:
    chosen = "small_sizes or random_products or minus_zero"
    done = compiled_for(cpu, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", str(BITS), "-k", chosen)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("element", [ir.FloatType(), ir.DoubleType()], ids=str)
@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-darwin"])
def test_the_micro_kernels_compile_for_arm(monkeypatch: pytest.MonkeyPatch, triple: str, element: ir.Type) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for module in (simd, linear_tile):
        monkeypatch.setattr(module, "vector_bytes", lambda: 16)
    written = ir.Module()
    for tile in (linear_tile.TALL, linear_tile.MIDDLE, linear_tile.SHORT, linear_tile.NARROW):
        linear_tile.micro_kernel(written, element, tile)
    machine = llvm.Target.from_triple(triple).create_target_machine()
    assembly = machine.emit_assembly(llvm.parse_assembly(str(written)))
    assert "fmla" in assembly
    assert not re.search(r"\tbl\t", assembly), "a call, where the CPU has an instruction"
