"""What a run takes to the GPU and brings back: a batch, and the loss with the first fault."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.cuda.entry import NO_FAULT
from ..step.memory import aligned, owned_block
from .driver import Copy, Gpu
from .mirror import Mirror
from .order import READ, WRITE, Touch


class Inputs:
    """The inputs of a plan: buffers side by side in pinned memory of the host, and their copy on the GPU."""

    def __init__(self, mirror: Mirror, buffers: Mapping[int, Array]) -> None:
        self._buffers = buffers
        self._block = owned_block(next(iter(buffers.values()))) if buffers else np.empty(0, np.uint8)
        self._start = int(self._block.ctypes.data)
        self._memory = mirror.gpu.allocate(self._block.nbytes)

    def address(self, root: int) -> int | None:
        """Where an input lies on the GPU; None for what is none."""
        buffer = self._buffers.get(root)
        return None if buffer is None else self._memory.address + int(buffer.ctypes.data) - self._start

    def take(self, batch: tuple[Any, ...]) -> bool:
        """Copy a batch into the buffers, if it fits them."""
        for given, buffer in zip(batch, self._buffers.values(), strict=True):
            if not isinstance(given, np.ndarray) or not _alike(cast(Array, given), buffer):
                return False
        for given, buffer in zip(batch, self._buffers.values(), strict=True):
            np.copyto(buffer, given)
        return True

    def copies(self) -> list[tuple[Copy, list[Touch]]]:
        """The copy to the GPU, as a node of the graph."""
        if not self._block.nbytes:
            return []
        target, nbytes = self._memory.address, self._block.nbytes
        return [(Copy(False, target, self._start, nbytes, ()), [Touch(target, target + nbytes, WRITE)])]


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
