"""Sums of additive digests, made by a GPU where the elements lie."""

from functools import cache
from typing import Any, NamedTuple

from ...tape.numerics.cuda import nvrtc
from ...tape.numerics.cuda.written import Launch
from .arguments import CallArguments, Told
from .driver import Gpu, KernelNode, gpu

SOURCE = "runtime/cuda/additive.cu"
THREADS, MOST_BLOCKS = 256, 128
UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
"""The integers of so many bytes in CUDA C++."""


class NanForm(NamedTuple):
    """Which elements are NaN, and what they count as: those whose bits under a mask are above a limit."""

    mask: int = 0
    limit: int = 0
    bits: int = 0


NO_NAN = NanForm()


def blocks_of(count: int) -> int:
    """Sums that so many elements have: two words each, the lower first, that add up modulo 2^128."""
    return min(-(-count // THREADS), MOST_BLOCKS)


def require_sums(number: int) -> None:
    """Raise CudaError where there is no such GPU, and ImportError where the code for it cannot be compiled."""
    _function(gpu(number), 4)


def start_sums(gpu: Gpu, stream: int, sums: int, elements: int, count: int, itemsize: int, nan: NanForm) -> None:
    """Have the sums of elements at an address written to another, on a stream of whoever calls, whose GPU it is."""
    launch = _launch(itemsize, blocks_of(count), (count, *nan))
    arguments: list[Any] = [CallArguments.of(launch, (sums, elements)), Told(0, 0)]
    function = _function(gpu, itemsize)
    gpu.start_kernel(KernelNode(function, launch.grid, launch.block, launch.shared, arguments, ()), stream)


def _launch(itemsize: int, blocks: int, words: tuple[int, ...]) -> Launch:
    defines = (("REAL", UNSIGNED[itemsize]),)
    return Launch(SOURCE, "additive", defines, (blocks, 1, 1), (THREADS, 1, 1), 16 * THREADS, (0, 1), words)


@cache
def _function(gpu: Gpu, itemsize: int) -> Any:
    launch = _launch(itemsize, 1, ())
    return gpu.function(nvrtc.compiled(launch.source, launch.defines, gpu.arch), launch.entry, launch.shared)
