"""CUDA kernels without a device: their sources by a host compiler, a fiber for each thread."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

import dgrr
from dgrr.base.arrays import Array
from dgrr.tape.numerics.cuda.written import SCRATCH, WORDS, Launch, Words
from dgrr.tape.ops.cuda_forms import FORMS

PACKAGE = Path(dgrr.__file__).parent


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


HEADERS = PACKAGE / "tape/numerics/cuda"
SHIM = Path(__file__).parent
"""Where shim.h is, by which a host compiler stands in for CUDA."""
COMPILER = shutil.which("g++")
FLAGS = ("-x", "c++", "-std=c++17", "-Og", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-w")

MISSING = [
    *(["g++"] if COMPILER is None else []),
    *(name for name in ("cuda.bindings", "nvidia.cu13") if not _is_installed(name)),
]
needs_cuda = pytest.mark.skipif(
    bool(MISSING), reason=f'missing: {", ".join(MISSING)}; pip install "dgrr[cuda]" and g++ compile the CUDA sources'
)


class Call(ctypes.Structure):
    """``Call`` of same_bits.cuh."""

    _fields_ = (("pointers", ctypes.c_void_p * 8), ("words", ctypes.c_int64 * 24))


class Report(ctypes.Structure):
    """``Report`` of same_bits.cuh."""

    _fields_ = (("word", ctypes.c_void_p), ("op", ctypes.c_uint64))


class Host:
    """Runs launches of the package's sources, or of changed copies: of headers and sources in other folders."""

    def __init__(self, folder: Path, headers: Path = HEADERS, sources: Path | None = None) -> None:
        self.folder, self.headers, self.sources = folder, headers, sources

    def library(self, source: str, defines: Sequence[tuple[str, int | str]]) -> ctypes.CDLL:
        path = PACKAGE / source if self.sources is None else self.sources / Path(source).name
        return _library(self.folder, self.headers, path, tuple(defines))

    def launch(self, launch: Launch, table: Sequence[int], report: Report, seed: int) -> None:
        call = Call()
        for i, position in enumerate(launch.pointers):
            call.pointers[i] = table[position]
        for i, word in enumerate(launch.words):
            call.words[i] = word
        entry = getattr(self.library(launch.source, launch.defines), f"host_{launch.entry}")
        entry.restype = ctypes.c_char_p
        (threads, *flat), grid = launch.block, (ctypes.c_uint * 3)(*launch.grid)
        assert flat == [1, 1]
        failure = entry(ctypes.byref(call), ctypes.byref(report), grid, threads, launch.shared, seed)
        if failure is not None:
            raise HostError(f"{launch.entry}: {failure.decode()}")

    def run(self, name: str, arrays: Sequence[Array], words: Words, dtype: Any, seed: int = 1) -> int:
        """The form of a CPU kernel, for its table and words; the word of the first fault, all ones if there is none."""
        form = FORMS[name]
        return self.run_launches(form.launches(dtype, words), arrays, words, form.scratch(dtype, words), seed)

    def run_launches(
        self, launches: Sequence[Launch], arrays: Sequence[Array], words: Words, scratch: int, seed: int = 1
    ) -> int:
        assert (SCRATCH, WORDS) == (-1, -2)
        fault, device_words = np.full(1, NO_FAULT, np.uint64), np.array(words, np.int64)
        memory = np.full(scratch + GUARD, 0xFF, np.uint8)  # NaN: what nobody wrote shows
        table = [int(a.ctypes.data) for a in (*arrays, device_words, memory)]
        for launch in launches:
            self.launch(launch, table, Report(fault.ctypes.data, OP), seed)
        assert (memory[scratch:] == 0xFF).all(), "a kernel writes behind its scratch"
        return int(fault[0])


class HostError(AssertionError):
    """What a kernel does that no device allows."""


NO_FAULT, OP, GUARD = 2**64 - 1, 7, 256


@cache
def _library(folder: Path, headers: Path, source: Path, defines: tuple[tuple[str, int | str], ...]) -> ctypes.CDLL:
    name = f"{source.stem}-{sha256(repr((headers, source, defines)).encode()).hexdigest()[:16]}"
    out, partial = folder / f"{name}.so", folder / f"{name}-{uuid4().hex}.so"
    if not out.exists():
        macros = [f"-D{key}={value}" for key, value in defines]
        subprocess.run([str(COMPILER), *FLAGS, f"-I{headers}", f"-I{SHIM}", *macros, "-o", partial, source], check=True)
        partial.rename(out)
    return ctypes.CDLL(str(out))


def output(shape: Sequence[int], dtype: Any) -> tuple[Array, Callable[[], bool]]:
    """An array to fill, which often begins where vectors may not, and whether what lies around it is as it was."""
    count = prod(shape)
    start = GUARD + count // 4 % 2
    memory = np.full(count + 2 * GUARD, 5, dtype)
    own = memory[start : start + count].reshape(shape)
    return own, lambda: bool((memory[:start] == 5).all() and (memory[start + count :] == 5).all())


# ---------------------------------------------------------------------- numbers that show a wrong bit

KINDS = ("normal", "wide", "zeros", "tiny", "subnormal", "special")


def values(rng: np.random.Generator, shape: Sequence[int], kind: str, dtype: Any) -> Array:
    """Numbers of one kind: what makes an order, a contraction, a flush or a padding visible."""
    single = dtype == np.float32
    x = rng.standard_normal(tuple(shape))
    if kind == "wide":
        x *= np.exp2(rng.integers(-30, 30, x.shape))
    elif kind == "zeros":
        x = np.where(rng.random(x.shape) < 0.7, np.where(rng.random(x.shape) < 0.5, 0.0, -0.0), x)
    elif kind == "tiny":  # products below the smallest subnormal: chains of +0 and -0
        x *= 1e-25 if single else 1e-170
    elif kind == "subnormal":
        x *= np.where(rng.random(x.shape) < 0.5, 1e-20, 1e-19) if single else np.exp2(rng.integers(-540, -530, x.shape))
    elif kind == "special":
        odd = rng.random(x.shape)
        x = np.where(odd < 0.002, np.inf, np.where(odd < 0.004, -np.inf, np.where(odd < 0.005, np.nan, x)))
    return np.ascontiguousarray(x.astype(dtype))


def canonical(x: Array) -> Array:
    """The bits, every NaN as one."""
    bits = x.view(np.uint32 if x.dtype == np.float32 else np.uint64)
    return np.where(np.isnan(x), bits.dtype.type(1), bits)


def wrong(got: Array, want: Array) -> int:
    """How many elements differ in bits."""
    return int((canonical(np.ascontiguousarray(got)) != canonical(np.ascontiguousarray(want))).sum())


def enumerators(path: Path, first: str) -> dict[str, int]:
    """Names and numbers of the enumeration of a CUDA source that begins with a name."""
    body = next(e for e in re.findall(r"enum \{([^}]*)\}", path.read_text()) if e.split(",")[0].strip() == first)
    return {name.strip(): i for i, name in enumerate(body.split(",")) if name.strip()}
