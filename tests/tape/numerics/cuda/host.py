"""CUDA kernels without a device: their sources by a host compiler, a fiber for each thread."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import dgrr
from dgrr.arrays import Array
from dgrr.tape.numerics.cuda.written import SCRATCH, WORDS, Launch, Words, written

PACKAGE = Path(dgrr.__file__).parent
HEADERS = PACKAGE / "tape/numerics/cuda"
COMPILER = shutil.which("g++")
FLAGS = ("-x", "c++", "-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-w")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="g++, which compiles CUDA sources, is missing")


class Call(ctypes.Structure):
    """``Call`` of same_bits.cuh."""

    _fields_ = (("pointers", ctypes.c_void_p * 8), ("words", ctypes.c_int64 * 24))


class Report(ctypes.Structure):
    """``Report`` of same_bits.cuh."""

    _fields_ = (("word", ctypes.c_void_p), ("op", ctypes.c_uint64))


class Host:
    """Runs launches; sources, each with its defines, are compiled once for all tests into a folder."""

    def __init__(self, folder: Path, headers: Path = HEADERS, changed: dict[str, str] | None = None) -> None:
        self.folder, self.headers = folder, headers
        self.changed = changed or {}
        """Sources in place of the package's."""

    def library(self, source: str, defines: Sequence[tuple[str, int | str]]) -> ctypes.CDLL:
        return _library(self.folder, self.headers, self.changed.get(source, str(PACKAGE / source)), tuple(defines))

    def compile_all(self, launches: Sequence[Launch]) -> None:
        """Compile what launches need, side by side."""
        with ThreadPoolExecutor(4) as pool:
            programs = {(launch.source, launch.defines) for launch in launches}
            list(pool.map(lambda program: self.library(*program), programs))

    def launch(self, launch: Launch, table: Sequence[int], report: Report, seed: int) -> None:
        call = Call()
        for i, position in enumerate(launch.pointers):
            call.pointers[i] = table[position]
        for i, word in enumerate(launch.words):
            call.words[i] = word
        entry = getattr(self.library(launch.source, launch.defines), f"host_{launch.entry}")
        (threads, *flat), grid = launch.block, (ctypes.c_uint * 3)(*launch.grid)
        assert flat == [1, 1]
        entry(ctypes.byref(call), ctypes.byref(report), grid, threads, launch.shared, seed)

    def run(self, name: str, arrays: Sequence[Array], words: Words, dtype: np.dtype, seed: int = 1) -> int:  # type: ignore[type-arg]
        """The form of a CPU kernel, for its table and words; the word of the first fault, all ones if there is none."""
        form, device_words = written[name], np.array(words, np.int64)
        scratch = np.full(form.scratch(dtype, words), 0xFF, np.uint8)
        return self.run_launches(form.launches(dtype, words), arrays, device_words, scratch, seed)

    def run_launches(
        self, launches: Sequence[Launch], arrays: Sequence[Array], words: Array, scratch: Array, seed: int = 1
    ) -> int:
        assert (SCRATCH, WORDS) == (-1, -2)
        fault = np.full(1, 2**64 - 1, np.uint64)
        report = Report(fault.ctypes.data, 7)
        table = [int(a.ctypes.data) for a in (*arrays, words, scratch)]
        for launch in launches:
            self.launch(launch, table, report, seed)
        return int(fault[0])


@cache
def _library(folder: Path, headers: Path, source: str, defines: tuple[tuple[str, int | str], ...]) -> ctypes.CDLL:
    out = folder / f"{Path(source).stem}-{sha256(repr((headers, source, defines)).encode()).hexdigest()[:16]}.so"
    macros = [f"-D{name}={value}" for name, value in defines]
    assert COMPILER is not None
    subprocess.run([COMPILER, *FLAGS, f"-I{headers}", *macros, "-o", out, source], check=True)
    return ctypes.CDLL(str(out))


# ---------------------------------------------------------------------- numbers that show a wrong bit

KINDS = ("normal", "wide", "zeros", "tiny", "subnormal", "special")


def values(rng: np.random.Generator, shape: Sequence[int], kind: str, dtype: np.dtype) -> Array:  # type: ignore[type-arg]
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
