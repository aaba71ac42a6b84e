"""What machines lack, written in LLVM's language: compiled for this one, and next to exact numbers."""

# llvmlite carries no types.
# mypy: disable-error-code="import-untyped,attr-defined"
# pyright: basic
import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape.numerics.exact_fma import fma
from dgrr.tape.numerics.library.software import with_software
from dgrr.tape.numerics.library.targets import TARGETS

Array = npt.NDArray[Any]

LANES = 8

FLOATS = {32: ("float", np.dtype(np.float32)), 64: ("double", np.dtype(np.float64))}


def module(name: str, bits: int, arguments: int) -> str:
    """A function ``each(out, *arrays, n)`` that applies LLVM's function to vectors, and to the last one of numbers."""
    kind = FLOATS[bits][0]
    lines = list[str]()
    for suffix, value in ((f"v{LANES}f{bits}", f"<{LANES} x {kind}>"), (f"f{bits}", kind)):
        kinds, given = ", ".join([value] * arguments), ", ".join(f"ptr %p{k}" for k in range(arguments))
        loads = [f"  %x{k} = load {value}, ptr %p{k}, align 4" for k in range(arguments)]
        call = f"  %y = call {value} @llvm.{name}.{suffix}({', '.join(f'{value} %x{k}' for k in range(arguments))})"
        lines += [
            f"declare {value} @llvm.{name}.{suffix}({kinds})",
            f"define void @each_{suffix}(ptr %out, {given}) {{",
        ]
        lines += [*loads, call, f"  store {value} %y, ptr %out, align 4", "  ret void", "}"]
    return "\n".join(lines)


def computed(text: str, bits: int, arrays: list[Array]) -> tuple[Array, Array]:
    """What a module gives of arrays, by vectors and by single numbers."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    found = list[Array]()
    for suffix, step in ((f"v{LANES}f{bits}", LANES), (f"f{bits}", 1)):
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(arrays)))(
            engine.get_function_address(f"each_{suffix}")
        )
        out = np.empty_like(arrays[0])
        for i in range(0, out.size, step):
            function(*(a[i:].ctypes.data for a in (out, *arrays)))
        found.append(out)
    return found[0], found[1]


def patterns(rng: Any, dtype: np.dtype[Any], n: int) -> Array:
    """Floats of any bits, and some that are special."""
    info = np.finfo(dtype)
    words = rng.integers(0, 2 ** (8 * dtype.itemsize), n, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    special = [0.0, 1.0, 1.5, 0.5, 2.5, info.tiny, info.smallest_subnormal, info.max, np.inf, np.nan, 1 + info.eps]
    words[: 2 * len(special)] = np.array([*special, *(-x for x in special)], dtype)
    return np.asarray(rng.permutation(words))


def test_fma_of_float32_is_rounded_once() -> None:
    rng, dtype = np.random.default_rng(0), np.dtype(np.float32)
    a, b, c = (patterns(rng, dtype, 8000) for _ in range(3))
    a[5::8], b[5::8] = np.copysign(1 + 2**-12, a[5::8]), 1 + 2**-12  # the product is half way between two numbers
    c[5::8] = np.ldexp(rng.uniform(-1, 1, c[5::8].size), -60)  # and this lost in float64, but for its sign
    with np.errstate(all="ignore"):
        near = (-a * b).view(np.int32) + rng.integers(-3, 4, a.size, dtype=np.int32)
        c[::2] = near.view(dtype)[::2]  # most of it cancels
        a[::3], b[::3] = a[::3] * dtype.type(2**-100), b[::3] * dtype.type(2**-30)  # results that are subnormal
        expected = np.array([fma(*three) for three in zip(a, b, c, strict=True)], dtype)
    text, needs = with_software(module("fma", 32, 3), TARGETS["x86-64"])
    assert "@llvm.fma" not in text
    assert not needs
    for found in computed(text, 32, [a, b, c]):
        np.testing.assert_array_equal(_bits(found), _bits(expected))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "nearbyint", "roundeven"])
def test_whole_numbers(name: str, bits: int) -> None:
    dtype = FLOATS[bits][1]
    rng = np.random.default_rng(1)
    x = np.concatenate([patterns(rng, dtype, 2000), rng.uniform(-300, 300, 2000).round(1).astype(dtype)])
    text, _ = with_software(module(name, bits, 1), TARGETS["armv7"])
    assert f"@llvm.{name}" not in text
    with np.errstate(all="ignore"):
        expected = getattr(np, {"nearbyint": "rint", "roundeven": "rint"}.get(name, name))(x)
    for found in computed(text, bits, [x]):
        np.testing.assert_array_equal(_bits(found), _bits(expected))


def test_what_a_machine_has_is_left_to_it() -> None:
    text = module("fma", 32, 3) + module("floor", 64, 1).replace("each", "other")
    assert with_software(text, TARGETS["x86-64-v3"])[0].strip() == text.strip()
    assert "@llvm.fma.v8f32" in with_software(text, TARGETS["riscv64"])[0]
    assert "@llvm.floor" not in with_software(text, TARGETS["riscv64"])[0]


def test_float64_asks_for_whole_numbers_and_relaxed_for_none() -> None:
    text = module("fma", 64, 3)
    assert with_software(text, TARGETS["wasm32"])[1]
    relaxed, needs = with_software(text, TARGETS["wasm32-relaxed"])
    assert not needs
    assert relaxed.count("call <2 x double> @llvm.wasm.relaxed.madd.v2f64") == LANES // 2 + 1


def _bits(x: Array) -> Array:
    """The bits, all that is no number being one."""
    clean = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    return clean.view(f"u{x.dtype.itemsize}")
