"""How long a GPU takes for launches, and what it reaches at best."""

from collections.abc import Callable, Sequence
from functools import cache
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from ...tape.numerics.cuda import nvrtc
from ...tape.ops.cuda_forms import FORMS
from ...tape.ops.linear.kernels.product import Product
from .arguments import CallArguments, Told
from .driver import Clear, Gpu, KernelNode
from .order import in_turn

PRODUCT, COPIED = 4096, 1 << 29
"""The size of the product, and the bytes of the copy, by which limits are found."""


def seconds_of(gpu: Gpu, nodes: Sequence[KernelNode | Clear], repeats: int) -> float:
    """The time of launches that wait for each other, in a graph that has them so many times."""
    if not nodes:
        return 0.0
    graph = gpu.graph(in_turn([*nodes] * repeats))
    return _median(lambda: gpu.launch(graph), 3) / repeats


def _median(run: Callable[[], None], times: int) -> float:
    found = list[float]()
    run()
    for _ in range(times):
        began = perf_counter()
        run()
        found.append(perf_counter() - began)
    return median(found)


class SquareProduct:
    """A product of n x n float32 on a GPU, as a plan would launch it."""

    def __init__(self, gpu: Gpu, n: int) -> None:
        words = tuple(int(w) for w in Product(1, n, n, n, itemsize=4).words(((4 * n, 4), (4 * n, 4))).values)
        form, dtype = FORMS["gemm"].on(gpu.arch), np.dtype(np.float32)
        sizes = (*(4 * n * n,) * 3, form.scratch(dtype, words), 8)
        self._gpu, self._held = gpu, [gpu.allocate(nbytes) for nbytes in sizes]
        *table, scratch, report = [memory.address for memory in self._held]
        data = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
        for address in table:
            gpu.upload(address, data)
        gpu.upload(report, np.full(1, 2**64 - 1, np.uint64))
        places = [*table, 0, scratch]
        self._nodes = list[KernelNode]()
        for launch in form.launches(dtype, words):
            call = CallArguments.of(launch, places)
            function = gpu.function(
                nvrtc.compiled(launch.source, launch.defines, gpu.arch), launch.entry, launch.shared
            )
            arguments: list[Any] = [call, Told(report, 0)]
            self._nodes.append(KernelNode(function, launch.grid, launch.block, launch.shared, arguments, ()))

    def seconds(self, repeats: int) -> float:
        """Its time, in a graph of so many."""
        return seconds_of(self._gpu, self._nodes, repeats)


@cache
def limits(gpu: Gpu) -> tuple[float, float]:
    """Arithmetic operations per second of a large product, and bytes read and written per second of a copy."""
    product = SquareProduct(gpu, PRODUCT).seconds(5)
    source, target = gpu.allocate(COPIED), gpu.allocate(COPIED)
    copy = _median(lambda: gpu.copy(target.address, source.address, COPIED), 9)
    return 2 * PRODUCT**3 / product, 2 * COPIED / copy
