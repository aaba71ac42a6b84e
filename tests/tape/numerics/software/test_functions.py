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

from dgrr.tape.numerics.engine.numba_compiler import fma64_module
from dgrr.tape.numerics.exact_fma import fma
from dgrr.tape.numerics.software.functions import FMA64, with_software

Array = npt.NDArray[Any]

LANES = 8

FLOATS: dict[int, tuple[str, np.dtype[Any]]] = {
    32: ("float", np.dtype(np.float32)),
    64: ("double", np.dtype(np.float64)),
}


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
    linked = llvm.parse_assembly(text)
    if FMA64 in text:
        linked.link_in(fma64_module(), preserve=True)
    engine = llvm.create_mcjit_compiler(linked, machine)
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


def rounded_once(bits: int, a: Array, b: Array, c: Array) -> None:
    """Whether software fuses numbers as exact integers do."""
    with np.errstate(all="ignore"):
        expected = np.array([fma(*three) for three in zip(a, b, c, strict=True)], a.dtype)
    text, needs = with_software(module("fma", bits, 3), "software", rounds=True)
    assert "@llvm.fma" not in text
    assert needs is (bits == 64)
    for found in computed(text, bits, [a, b, c]):
        np.testing.assert_array_equal(_bits(found), _bits(expected))


@pytest.mark.parametrize("bits", [32, 64])
def test_a_fused_product_is_rounded_once_whatever_is_given(bits: int) -> None:
    rng, dtype = np.random.default_rng(0), FLOATS[bits][1]
    tiny = [dtype.type(2.0**-by) for by in ((100, 30) if bits == 32 else (800, 250))]
    a, b, c = (patterns(rng, dtype, 8000 if bits == 32 else 1600) for _ in range(3))
    with np.errstate(all="ignore"):
        c[::2] = neighbours(rng, -a * b)[::2]  # most of it cancels
        a[::3], b[::3] = a[::3] * tiny[0], b[::3] * tiny[1]  # results that are subnormal
    rounded_once(bits, a, b, c)


@pytest.mark.parametrize("bits", [32, 64])
def test_sums_that_cancel_or_are_halfway_between_two_floats(bits: int) -> None:
    rng, dtype = np.random.default_rng(1), FLOATS[bits][1]
    digits, eps = np.finfo(dtype).nmant + 1, np.finfo(dtype).eps
    a, b = ((rng.choice([-1, 1], 8000) * rng.uniform(0.5, 2, 8000)).astype(dtype) for _ in range(2))
    a[::2], b[::2] = (rng.integers(1, 2 ** (digits // 2 + 1), 4000).astype(dtype) for _ in range(2))  # few digits
    c = neighbours(rng, -a * b)
    far = dtype.type(2) ** rng.integers(-2 * digits, 2 * digits, 8000).astype(dtype)
    c[::4], c[1::4] = (a * b * far)[::4], (rng.choice([1, 1 + eps, 3], 8000) * far)[1::4]
    rounded_once(bits, a, b, c)


@pytest.mark.parametrize("bits", [32, 64])
def test_what_decides_a_tie_may_lie_far_below(bits: int) -> None:
    """The product has one bit too many, and the addend is a power of two."""
    dtype = FLOATS[bits][1]
    digits = np.finfo(dtype).nmant + 1
    small = np.ldexp(np.ones(8 * digits, dtype), -np.arange(8 * digits))
    c = np.concatenate([small, -small, small, -small])
    a = np.repeat(np.array([1, -1], dtype), c.size // 2) * dtype.type(2 ** (digits // 2) + 1)
    rounded_once(bits, a, np.full_like(c, 2 ** (digits - digits // 2) + 1), c)


def neighbours(rng: Any, x: Array) -> Array:
    """Floats beside others, or these."""
    word = np.dtype(f"i{x.dtype.itemsize}")
    return np.asarray((x.view(word) + rng.integers(-3, 4, x.size, dtype=word)).view(x.dtype))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "nearbyint", "roundeven"])
def test_whole_numbers(name: str, bits: int) -> None:
    dtype = FLOATS[bits][1]
    rng = np.random.default_rng(1)
    x = np.concatenate([patterns(rng, dtype, 2000), rng.uniform(-300, 300, 2000).round(1).astype(dtype)])
    text, _ = with_software(module(name, bits, 1), "native", rounds=False)
    assert f"@llvm.{name}" not in text
    with np.errstate(all="ignore"):
        expected = getattr(np, {"nearbyint": "rint", "roundeven": "rint"}.get(name, name))(x)
    for found in computed(text, bits, [x]):
        np.testing.assert_array_equal(_bits(found), _bits(expected))


def test_what_a_machine_has_is_left_to_it() -> None:
    text = module("fma", 32, 3) + module("floor", 64, 1).replace("each", "other")
    assert with_software(text, "native", rounds=True)[0].strip() == text.strip()
    assert "@llvm.fma.v8f32" in with_software(text, "native", rounds=False)[0]
    assert "@llvm.floor" not in with_software(text, "native", rounds=False)[0]


def test_float64_asks_for_whole_numbers_and_relaxed_for_none() -> None:
    text = module("fma", 64, 3)
    assert with_software(text, "software", rounds=True)[1]
    relaxed, needs = with_software(text, "relaxed", rounds=True)
    assert not needs
    assert relaxed.count("call <2 x double> @llvm.wasm.relaxed.madd.v2f64") == LANES // 2 + 1


def _bits(x: Array) -> Array:
    """The bits, all that is no number being one."""
    clean = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    return clean.view(f"u{x.dtype.itemsize}")
