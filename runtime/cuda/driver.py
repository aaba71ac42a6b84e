"""What is asked of the driver of an NVIDIA GPU: memory, copies, code, graphs. All of it through cuda-bindings."""

# The bindings' functions carry no types.
# pyright: basic, reportMissingImports=false
import ctypes
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array
from ...tape.errors import DgrrError

GRANULE = 256
"""Bytes to which the driver aligns what it allocates."""


class CudaError(DgrrError, RuntimeError):
    """No GPU, no driver, or a driver that failed."""


class KernelNode(NamedTuple):
    """A kernel's launch in a graph: its arguments as values of ctypes; ``after`` are the nodes that it waits for."""

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: Sequence[Any]
    after: tuple[int, ...]


class Copy(NamedTuple):
    """A copy in a graph between the two sides; one of the addresses is the host's, which must be pinned."""

    to_host: bool
    target: int
    source: int
    nbytes: int
    after: tuple[int, ...]


class Clear(NamedTuple):
    """Zeros written in a graph, in whole words of four bytes."""

    target: int
    nbytes: int
    after: tuple[int, ...]


class Gpu:
    """A GPU, through the context that other libraries of the process use too: one stream, and another for uploads.

    Neither waits for other streams by itself.
    """

    def __init__(self, number: int) -> None:
        try:
            driver = import_module("cuda.bindings.driver")
        except ImportError:
            raise CudaError(
                "device 'cuda': expected the package cuda-bindings, which is not installed; pip install \"dgrr[cuda]\""
            ) from None
        self._cu: Any = driver
        try:
            self._do("cuInit", 0)
            device = self._do("cuDeviceGet", number % self._do("cuDeviceGetCount"))
        except (CudaError, RuntimeError) as error:  # the bindings raise their own where there is no driver at all
            raise CudaError(f"device 'cuda': expected an NVIDIA GPU and its driver, found none: {error}") from None
        self._context = self._do("cuDevicePrimaryCtxRetain", device)
        self.use()
        attribute = driver.CUdevice_attribute
        self.name: str = self._do("cuDeviceGetName", 128, device).split(b"\0")[0].decode()
        major = self._do("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
        minor = self._do("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
        self.arch = f"sm_{major}{minor}"
        self._stream, self._uploads = (self._do("cuStreamCreate", 1) for _ in range(2))
        self._uploaded = self._do("cuEventCreate", driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        self._functions: dict[bytes, Any] = {}

    def _do(self, name: str, *arguments: Any) -> Any:
        """Call the driver. Raises CudaError for anything but success."""
        error, *values = getattr(self._cu, name)(*arguments)
        if int(error):
            raise CudaError(f"the driver answered {name} with {error.name}")
        return values[0] if len(values) == 1 else values

    def use(self) -> None:
        """Let the calling thread talk to this GPU."""
        self._do("cuCtxSetCurrent", self._context)

    # ------------------------------------------------------------------ memory

    def allocate(self, nbytes: int) -> "DeviceMemory":
        """Memory of the GPU; its contents are junk."""
        return DeviceMemory(self, int(self._do("cuMemAlloc", max(nbytes, 1))))

    def free(self, address: int) -> None:
        """Give memory back, from whatever thread; at the end of the process nobody listens."""
        self._cu.cuCtxSetCurrent(self._context)
        self._cu.cuMemFree(address)

    def pinned(self, nbytes: int) -> Array:
        """Bytes of the host that the GPU copies from and to by itself."""
        address = int(self._do("cuMemAllocHost", max(nbytes, 1)))
        memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        memory._owner = _Pinned(self._cu, address)
        found: Array = np.frombuffer(memory, np.uint8)
        return found

    def upload(self, target: int, array: Array) -> None:
        """Copy a dense array to the GPU, beside what was started before; all that is asked for later waits for it.

        When it returns the array has been read, or if its memory is pinned, when `wait` does. The driver reads memory
        that is not pinned into its own, and goes on from there when this has returned.
        """
        if array.nbytes:
            self._do("cuMemcpyHtoDAsync", target, array.ctypes.data, array.nbytes, self._uploads)
            self._do("cuEventRecord", self._uploaded, self._uploads)
            self._do("cuStreamWaitEvent", self._stream, self._uploaded, 0)

    def download(self, array: Array, source: int) -> None:
        """Copy to a dense array from the GPU; done when it returns."""
        if array.nbytes:
            self._do("cuMemcpyDtoHAsync", array.ctypes.data, source, array.nbytes, self._stream)
            self.wait()

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the GPU; done when it returns."""
        self._do("cuMemcpyDtoDAsync", target, source, nbytes, self._stream)
        self.wait()

    # ------------------------------------------------------------------ code

    def function(self, code: bytes, name: str, shared: int = 0) -> Any:
        """A kernel of some code, PTX or the GPU's own, that may have so much shared memory; loaded once."""
        key = code + name.encode()
        if key not in self._functions:
            module = self._do("cuModuleLoadData", code)
            self._functions[key] = self._do("cuModuleGetFunction", module, name.encode())
        if shared > 48 << 10:
            attribute = self._cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._do("cuFuncSetAttribute", self._functions[key], attribute, shared)
        return self._functions[key]

    # ------------------------------------------------------------------ graphs

    def graph(self, nodes: Sequence[KernelNode | Copy | Clear]) -> Any:
        """An executable graph."""
        graph, made = self._do("cuGraphCreate", 0), list[Any]()
        for node in nodes:
            after = [made[i] for i in node.after]
            if isinstance(node, Copy):
                made.append(self._add_copy(graph, after, node))
            elif isinstance(node, Clear):
                made.append(self._add_clear(graph, after, node))
            else:
                made.append(self._add_kernel(graph, after, node))
        return self._do("cuGraphInstantiate", graph, 0)

    def _add_kernel(self, graph: Any, after: list[Any], node: KernelNode) -> Any:
        parameters = self._cu.CUDA_KERNEL_NODE_PARAMS()
        parameters.func, parameters.sharedMemBytes = node.function, node.shared
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = node.grid
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = node.block
        arguments = (ctypes.c_void_p * len(node.arguments))(*map(ctypes.addressof, node.arguments))
        parameters.kernelParams = ctypes.addressof(arguments)
        return self._do("cuGraphAddKernelNode", graph, after, len(after), parameters)

    def _add_copy(self, graph: Any, after: list[Any], node: Copy) -> Any:
        kinds, parameters = self._cu.CUmemorytype, self._cu.CUDA_MEMCPY3D()
        host, device = kinds.CU_MEMORYTYPE_HOST, kinds.CU_MEMORYTYPE_DEVICE
        if node.to_host:
            parameters.srcMemoryType, parameters.srcDevice = device, node.source
            parameters.dstMemoryType, parameters.dstHost = host, node.target
        else:
            parameters.srcMemoryType, parameters.srcHost = host, node.source
            parameters.dstMemoryType, parameters.dstDevice = device, node.target
        parameters.WidthInBytes, parameters.Height, parameters.Depth = node.nbytes, 1, 1
        return self._do("cuGraphAddMemcpyNode", graph, after, len(after), parameters, self._context)

    def _add_clear(self, graph: Any, after: list[Any], node: Clear) -> Any:
        parameters = self._cu.CUDA_MEMSET_NODE_PARAMS()
        parameters.dst, parameters.value, parameters.elementSize = node.target, 0, 4
        parameters.width, parameters.height = node.nbytes // 4, 1
        return self._do("cuGraphAddMemsetNode", graph, after, len(after), parameters, self._context)

    def launch(self, graph: Any) -> None:
        """Run a graph, and wait until it has ended."""
        self.start(graph)
        self.wait()

    def start(self, graph: Any) -> None:
        """Run a graph behind those that were started before."""
        self._do("cuGraphLaunch", graph, self._stream)

    def wait(self) -> None:
        """Until all graphs that were started have ended, and what they waited for."""
        self._do("cuStreamSynchronize", self._stream)


class DeviceMemory:
    """A block of the GPU's memory, given back when nobody holds it any more."""

    def __init__(self, gpu: Gpu, address: int) -> None:
        self._gpu, self.address = gpu, address

    def __del__(self) -> None:
        self._gpu.free(self.address)


class _Pinned:
    """Keeps pinned memory as long as an array views it."""

    def __init__(self, driver: Any, address: int) -> None:
        self._driver, self._address = driver, address

    def __del__(self) -> None:
        self._driver.cuMemFreeHost(self._address)


_gpu = cache(Gpu)


def gpu(number: int = 0) -> Gpu:
    """A GPU of this machine, counted around, for the calling thread to use. Raises CudaError if there is none."""
    found = _gpu(number)
    found.use()
    return found
