"""What a run takes to the GPU and brings back: a batch, and the loss with the first fault."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, cast

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.cuda.entry import NO_FAULT
from ..step.memory import aligned, owned_block
from .driver import Copy, Gpu
from .mirror import Mirror
from .order import READ, WRITE, Touch

DIRECT = 1 << 18
"""Bytes of an input from which it goes to the GPU from where the batch has it: sooner than by way of pinned memory."""


class Inputs:
    """The inputs of a plan: buffers side by side in pinned memory of the host, and their copy on the GPU.

    Small ones are copied there by the graph, as it begins. Large ones, which are `direct`, are sent from wherever they
    lie, each just before the first op that reads it, while the GPU is busy with those before.
    """

    def __init__(self, mirror: Mirror, buffers: Mapping[int, Array]) -> None:
        self._buffers = buffers
        self._block = owned_block(next(iter(buffers.values()))) if buffers else np.empty(0, np.uint8)
        self._start = int(self._block.ctypes.data)
        self._gpu, self._memory = mirror.gpu, mirror.gpu.allocate(self._block.nbytes)
        self.direct = [root for root, buffer in buffers.items() if buffer.nbytes >= DIRECT]
        """Those that the graph does not copy."""

    def address(self, root: int) -> int | None:
        """Where an input lies on the GPU; None for what is none."""
        buffer = self._buffers.get(root)
        return None if buffer is None else self._memory.address + int(buffer.ctypes.data) - self._start

    def take(self, batch: tuple[Any, ...]) -> dict[int, Array] | None:
        """Where a batch that fits the buffers has the direct inputs; the others are copied into their buffers."""
        for given, buffer in zip(batch, self._buffers.values(), strict=True):
            if not isinstance(given, np.ndarray) or not _alike(cast(Array, given), buffer):
                return None
        found = dict[int, Array]()
        for given, (root, buffer) in zip(batch, self._buffers.items(), strict=True):
            if root in self.direct and given.flags.c_contiguous:
                found[root] = given
            else:
                np.copyto(buffer, given)
        return found

    def send(self, root: int, taken: Mapping[int, Array]) -> None:
        """Copy a direct input to the GPU: what was taken, else what its buffer has."""
        buffer = self._buffers[root]
        self._gpu.upload(self._memory.address + int(buffer.ctypes.data) - self._start, taken.get(root, buffer))

    def keep(self, taken: Mapping[int, Array]) -> None:
        """Copy what was taken into the buffers, for whoever asks what the last batch was."""
        for root, given in taken.items():
            np.copyto(self._buffers[root], given)

    def copies(self) -> list[tuple[Copy, list[Touch]]]:
        """The copies of the others to the GPU, neighbours together, as nodes of the graph."""
        found = list[tuple[Copy, list[Touch]]]()
        for is_direct, run in groupby(self._buffers.items(), lambda item: item[0] in self.direct):
            buffers = [buffer for _, buffer in run]
            source, last = int(buffers[0].ctypes.data), buffers[-1]
            nbytes, target = int(last.ctypes.data) + last.nbytes - source, self._memory.address + source - self._start
            if nbytes and not is_direct:
                touch = Touch(target, target + nbytes, WRITE)
                found.append((Copy(False, target, source, nbytes, ()), [touch]))
        return found


class RunAnswer:
    """What every run brings back: the first fault, and the loss if the plan has one in its arena."""

    def __init__(self, gpu: Gpu, loss: tuple[int, int] | None) -> None:
        self._gpu, self._source = gpu, loss
        self._memory = gpu.allocate(8)
        self.device = self._memory.address
        """Where kernels report on the GPU."""
        self.reset()
        self._pinned = gpu.pinned(aligned(8) + (0 if loss is None else loss[1]))
        self._word = self._pinned[:8].view(np.uint64)
        self.loss = self._pinned[aligned(8) :]
        """The bytes of the loss on the host."""

    def reset(self) -> None:
        """Forget what is reported."""
        self._gpu.upload(self.device, np.array([NO_FAULT], np.uint64))

    def report(self) -> int:
        """The report of the last run; the next begins without one."""
        found = int(self._word[0])
        if found != NO_FAULT:
            self.reset()
        return found

    def copies(self) -> list[tuple[Copy, list[Touch]]]:
        """The copies to the host, as nodes of the graph."""
        start = int(self._pinned.ctypes.data)
        found = [(Copy(True, start, self.device, 8, ()), [Touch(self.device, self.device + 8, READ)])]
        if self._source is not None:
            source, nbytes = self._source
            copy = Copy(True, start + aligned(8), source, nbytes, ())
            found.append((copy, [Touch(source, source + nbytes, READ)]))
        return found


def _alike(given: Array, buffer: Array) -> bool:
    return given.dtype == buffer.dtype and given.shape == buffer.shape
