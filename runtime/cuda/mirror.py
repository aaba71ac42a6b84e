"""The arrays of a step on both sides: where the truth lies, and moving it there."""

from typing import Any

from ...base.arrays import Array
from ..step.memory import owned_block
from .driver import DeviceMemory, Gpu


class Mirror:
    """A copy in the GPU's memory of every block in which arrays of a step lie.

    What is trained changes on the GPU while steps run, and on the host whenever anybody has been shown its arrays: so
    before a run all of it goes to the GPU if it has been shown, and before it is shown it comes from there if steps
    have run.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._blocks: dict[int, tuple[Array, DeviceMemory]] = {}
        self._trained = list[int]()
        self._shown, self._ahead = True, False

    def address(self, array: Array) -> int:
        """Where an array lies in the GPU's memory: as far from the beginning of its block as on the host."""
        block = owned_block(array)
        start = int(block.ctypes.data)
        if start not in self._blocks:
            memory = self.gpu.allocate(block.nbytes)
            self.gpu.upload(memory.address, block)
            self._blocks[start] = block, memory
        return self._blocks[start][1].address + int(array.ctypes.data) - start

    def train(self, arrays: Any) -> None:
        """These arrays change as steps run."""
        for array in arrays:
            self.address(array)
            start = int(owned_block(array).ctypes.data)
            if start not in self._trained:
                self._trained.append(start)

    def before_run(self) -> None:
        """What was shown, and may have been changed, goes to the GPU."""
        if self._shown:
            for start in self._trained:
                block, memory = self._blocks[start]
                self.gpu.upload(memory.address, block)
            self._shown = False

    def after_run(self) -> None:
        """The truth is on the GPU now."""
        self._ahead = True

    def show(self) -> None:
        """What is trained comes from the GPU, if steps have run, for somebody to read and perhaps to change."""
        if self._ahead:
            self.gpu.use()
            for start in self._trained:
                block, memory = self._blocks[start]
                self.gpu.download(block, memory.address)
            self._ahead = False
        self._shown = True
