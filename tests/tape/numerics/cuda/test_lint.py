"""PTX of every written kernel, and what the lint refuses of PTX at all."""

import re
from itertools import product

import pytest

from dgrr.runtime.optim import kernels as optimizers
from dgrr.tape.numerics.cuda import nvrtc
from dgrr.tape.numerics.cuda.rows import AT_A_TIME
from dgrr.tape.numerics.cuda.tiles import TILES, Tile
from dgrr.tape.numerics.cuda.written import REALS
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.ops import cuda_forms
from dgrr.tape.ops.attention import cuda as cuda_attention
from dgrr.tape.ops.conv import cuda as cuda_convolutions
from dgrr.tape.ops.indices import cuda as cuda_indices
from dgrr.tape.ops.linear.cuda import products as cuda_products
from dgrr.tape.ops.norm import cuda as cuda_norms
from dgrr.tape.ops.reduce import cuda as cuda_rows
from dgrr.tape.ops.shape import cuda as cuda_copies

from . import lint
from .host import needs_cuda

GROUPS = (0, 1, *AT_A_TIME.values())
"""How a row may be shared among threads."""

REFUSED = """
add.f32 a, b, c; | add.rn.ftz.f32 a, b, c; | fma.rz.f32 a, b, c, d; | mul.f64 a, b, c; | div.full.f32 a, b, c;
div.approx.f32 a, b, c; | sqrt.approx.f32 a, b; | ex2.approx.f32 a, b; | atom.global.add.f32 a, [b], c;
red.global.add.f64 [a], b; | max.f32 a, b, c; | min.NaN.f32 a, b, c; | mad.rz.f32 a, b, c, d; | add.sat.f32 a, b, c;
cvt.rz.f32.f64 a, b; | cvt.rn.sat.f32.f64 a, b; | rsqrt.approx.f64 a, b; | add.rm.f32 a, b, c; | sub.f64 a, b, c;
@%p1 add.f32 %f1, %f2, %f3; | { add.f32 a, b, c; } | rcp.approx.ftz.f32 a, b; | cvt.rz.f64.s64 a, b;
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d, a, b, c; | add.rn.f16 a, b, c; | neg.ftz.f32 a, b;
sin.approx.f32 a, b; | fma.rn.f32 a, b, c, d; mul.f32 a, b, c;
"""
ALLOWED = """
add.rn.f32 a, b, c; | fma.rn.f64 a, b, c, d; | div.rn.f32 a, b, c; | sqrt.rn.f64 a, b; | add.s32 a, b, c;
mad.lo.s32 a, b, c, d; | atom.global.add.u32 a, [b], c; | atom.global.min.u64 a, [b], c; | max.s32 a, b, c;
cvt.rn.f32.f64 a, b; | cvt.rn.f32.s64 a, b; | cvt.u64.u32 a, b; | cvt.f64.f32 a, b; | neg.f32 a, b; | abs.f32 a, b;
setp.gt.f32 p, a, b; | selp.f32 a, b, c, p; | mul.wide.u32 a, b, c; | mov.f32 a, 0f00000000; | @!%p2 bra $L__BB0_2;
// max.f32 in a comment | .reg .f32 %f<9>; | $L__BB0_1: | ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
cp.async.commit_group;
"""


def parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[|\n]", text) if part.strip()]


@pytest.mark.parametrize("line", parts(REFUSED))
def test_what_could_have_other_bits_is_refused(line: str) -> None:
    (found, *_) = lint.findings(f"// PTX\n{line}")
    assert found.line == 2 and found.reason and found.text in line


@pytest.mark.parametrize("line", parts(ALLOWED))
def test_what_has_the_bits_of_the_contract_is_not(line: str) -> None:
    assert lint.findings(line) == []


# ------------------------------------------------------------------ what NVRTC makes of the sources

Program = tuple[str, tuple[tuple[str, int | str], ...], int]
"""A source, its defines, and the fused multiply-adds that are written in it."""


def fma_of(tile: Tile) -> int:
    return tile.bk * tile.tm * tile.tn


def programs() -> list[Program]:
    found: list[Program] = []
    for size, tiles in TILES.items():
        for i, (name, tile) in enumerate(tiles.items()):
            modes = (("A_MODE", i % 3), ("B_MODE", (i + 2) % 3), ("SPLIT", int(name == "split")))
            found.append((cuda_products.SOURCE, (*tile.defines(size), *modes), fma_of(tile)))
    for size, tiles in cuda_convolutions.TILES.items():
        for i, tile in enumerate(tiles.values()):
            modes = (("RESULT_MODE", 1 + i % 2), ("MIDDLE_AXES", i % 2))
            found.append((cuda_convolutions.SOURCE, (*tile.defines(size), *modes), fma_of(tile)))
    for size, tiles in cuda_convolutions.WEIGHT_TILES.items():
        for i, tile in enumerate(tiles.values()):
            modes = (("WEIGHTS", i % 2), ("MIDDLE_AXES", i // 2))
            found.append((cuda_convolutions.SOURCE, (*tile.defines(size), *modes), fma_of(tile)))
    found += [(s, (("REAL", r),), 0) for s in (cuda_products.SOURCE, cuda_convolutions.SOURCE) for r in REALS.values()]
    for r, one_block in product(REALS.values(), (0, 1)):
        found.append((cuda_indices.SOURCE, (("REAL", r), ("ONE_BLOCK", one_block)), 0))
    for r, axes in product(cuda_copies.ELEMENTS.values(), (0, 1, cuda_copies.MOST_AXES)):
        found.append((cuda_copies.SOURCE, (("REAL", r), ("AXES", axes), ("PER", cuda_copies.EACH)), 0))
    columns = (cuda_rows.COLUMNS, cuda_norms.COLUMNS)
    found += [(s, (("REAL", r),), 0) for s in columns for r in REALS.values()]
    found += [(cuda_norms.SOURCE, (("REAL", r), ("GROUPS", g)), 0) for r in REALS.values() for g in GROUPS]
    clusters = product(REALS.values(), (1, cuda_norms.CLUSTER))
    found += [(cuda_norms.SOURCE, (("REAL", r), ("GROUPS", 1), ("CLUSTER", c)), 0) for r, c in clusters]
    return found


def loop_programs() -> list[tuple[str, tuple[tuple[str, int | str], ...]]]:
    """Programs whose fused operations stand there as often as they are inlined and loops unrolled."""
    sources = (cuda_rows.SOURCE, cuda_attention.SOURCE)
    found = list[tuple[str, tuple[tuple[str, int | str], ...]]]()
    for r, middle, more in product(REALS.values(), (0, 1), ((("PER", 4),), (("WEIGHTS", 1),))):
        sizes = (("REAL", r), ("THREADS", 128), ("MIDDLE_AXES", middle))
        sources_of = (cuda_convolutions.DIRECT, *([] if middle else [cuda_convolutions.PLANES]))
        found += [(s, (*sizes, *more)) for s in sources_of]
    return found + [(s, (("REAL", r), ("GROUPS", g))) for s in sources for r in REALS.values() for g in GROUPS]


def ptx(program: Program, architecture: str) -> str:
    return nvrtc.compiled(program[0], program[1], architecture).rstrip(b"\0").decode()


@needs_cuda
@pytest.mark.parametrize("i", range(len(programs())))
@pytest.mark.long
def test_every_program_has_the_operations_that_are_written(i: int) -> None:
    program = programs()[i]
    text = ptx(program, "compute_90")
    assert lint.findings(text) == []
    assert lint.fused(text) == program[2]


@needs_cuda
@pytest.mark.long
def test_loops_have_no_other_operations() -> None:
    for source, defines in loop_programs():
        text = nvrtc.compiled(source, defines, "compute_90").rstrip(b"\0").decode()
        assert lint.findings(text) == [] and lint.fused(text) > 0


@needs_cuda
@pytest.mark.parametrize("architecture", ["compute_80", "sm_90"])
@pytest.mark.long
def test_other_architectures_compile(architecture: str) -> None:
    for program in programs()[2::8]:
        code = nvrtc.compiled(*program[:2], architecture)
        if architecture == "sm_90":
            assert code[:4] == b"\x7fELF"
        else:
            assert lint.findings(code.rstrip(b"\0").decode()) == []


@needs_cuda
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("out[0] = expf(out[0]);", "approximates|flushes"),
        ("out[0] = __fdividef(out[0], out[1]);", "approximates"),
        ("atomicAdd(out, out[1]);", "no fixed order"),
        ("out[0] = fmaxf(out[0], out[1]);", "drops NaN"),
        ("out[0] = __fadd_rz(out[0], out[1]);", "round to nearest"),
    ],
)
def test_what_a_source_may_not_call_is_found(line: str, reason: str) -> None:
    text = f'extern "C" __global__ void f(float* out) {{ {line} }}'
    found = lint.findings(nvrtc.compiled_text("f.cu", text, (), "compute_90").rstrip(b"\0").decode())
    assert re.search(reason, " ".join(f.reason for f in found))


@needs_cuda
def test_plain_sums_and_products_are_not_fused() -> None:
    text = 'extern "C" __global__ void f(float* out) { out[0] = out[0] * out[1] + out[2]; }'
    code = nvrtc.compiled_text("f.cu", text, (), "compute_90").rstrip(b"\0").decode()
    assert lint.findings(code) == [] and lint.fused(code) == 0


def test_the_forms_are_those_of_kernels_of_the_cpu() -> None:
    assert cuda_forms.FORMS.keys() <= KERNELS.keys()
    assert optimizers.tensor_norm.name in cuda_forms.FORMS
