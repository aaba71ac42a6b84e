"""The order of what is asked of a GPU: a driver whose streams put off what they may is never too late."""

# ruff: noqa: N802, N815
import ctypes
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.cuda.driver import Gpu

Work = Callable[[], object]


class LazyDriver(ModuleType):
    """The calls of cuda-bindings, by streams that do nothing before somebody waits for them.

    As in CUDA, copies from memory that is not pinned read it at once and write it later, and streams that are made by
    `cuStreamCreate` do not wait for stream 0. A graph is a function.
    """

    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=1
    )

    def __init__(self) -> None:
        super().__init__("driver")
        self.queues: dict[int, list[Work]] = {0: []}
        self.recorded: dict[int, tuple[int, int]] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: (0, b"lazy" if name == "cuDeviceGetName" else 1)

    def cuStreamCreate(self, flags: int) -> tuple[int, int]:
        assert flags == 1
        self.queues[len(self.queues)] = []
        return 0, len(self.queues) - 1

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> tuple[int]:
        staged = ctypes.string_at(source, nbytes)
        return self._put(stream, lambda: ctypes.memmove(target, staged, nbytes))

    def cuMemcpyHtoD(self, target: int, source: int, nbytes: int) -> tuple[int]:
        return self.cuMemcpyHtoDAsync(target, source, nbytes, 0)

    def cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: int) -> tuple[int]:
        return self._put(stream, lambda: ctypes.memmove(target, source, nbytes))

    def cuMemcpyDtoH(self, target: int, source: int, nbytes: int) -> tuple[int]:
        self.cuMemcpyDtoHAsync(target, source, nbytes, 0)
        return self.cuStreamSynchronize(0)

    cuMemcpyDtoDAsync = cuMemcpyDtoHAsync

    def cuMemcpyDtoD(self, target: int, source: int, nbytes: int) -> tuple[int]:
        return self.cuMemcpyDtoHAsync(target, source, nbytes, 0)

    def cuGraphLaunch(self, graph: Work, stream: int) -> tuple[int]:
        return self._put(stream, graph)

    def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
        self.recorded[event] = stream, len(self.queues[stream])
        return (0,)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> tuple[int]:
        other, behind = self.recorded[event]
        return self._put(stream, lambda: self._run(other, behind))

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        return self._run(stream, len(self.queues[stream]))

    def cuCtxSynchronize(self) -> tuple[int]:
        for stream in self.queues:
            self.cuStreamSynchronize(stream)
        return (0,)

    def _put(self, stream: int, work: Work) -> tuple[int]:
        self.queues[stream].append(work)
        return (0,)

    def _run(self, stream: int, stop: int) -> tuple[int]:
        """Do what a stream has put off, as far as asked; done work stays in its place, as nothing."""
        queue = self.queues[stream]
        for i in range(min(stop, len(queue))):
            work, queue[i] = queue[i], lambda: None
            work()
        return (0,)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", LazyDriver())
    return Gpu(0)


def graph_of(source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> Any:
    """One that copies."""
    return lambda: np.copyto(target, source)


def at(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def test_a_graph_waits_for_what_was_uploaded_before(gpu: Gpu) -> None:
    given, there, made = np.arange(5.0), np.zeros(5), np.zeros(5)
    gpu.upload(at(there), given)
    given[:] = -1  # it has been read
    gpu.launch(graph_of(there, made))
    assert made.tolist() == [0, 1, 2, 3, 4]


def test_an_upload_between_two_graphs_is_there_for_the_second(gpu: Gpu) -> None:
    one, other = np.arange(3.0), np.arange(3.0) + 7
    there, first, second = np.zeros(3), np.zeros(3), np.zeros(3)
    gpu.upload(at(there), one)
    gpu.start(graph_of(there, first))
    gpu.upload(at(second), other)
    gpu.start(graph_of(second, first))
    gpu.wait()
    assert first.tolist() == [7, 8, 9]


def test_a_download_waits_for_uploads_and_graphs(gpu: Gpu) -> None:
    there, found = np.zeros(3), np.zeros(3)
    gpu.upload(at(there), np.arange(3.0))
    gpu.download(found, at(there))
    assert found.tolist() == [0, 1, 2]
    gpu.start(lambda: np.add(there, 1, out=there))
    gpu.download(found, at(there))
    assert found.tolist() == [1, 2, 3]


def test_so_does_a_copy_within(gpu: Gpu) -> None:
    there, made = np.zeros(3), np.zeros(3)
    gpu.upload(at(there), np.arange(3.0))
    gpu.copy(at(made), at(there), there.nbytes)
    assert made.tolist() == [0, 1, 2]
