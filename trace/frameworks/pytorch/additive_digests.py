"""Digests of PyTorch's tensors from additive digests, which are made on the GPU that a tensor lies on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....runtime.cuda.additive import NO_NAN, NanForm, blocks_of, require_sums, start_sums
from ....runtime.cuda.driver import CudaError, gpu
from ...v2.format.additive import additive_digest, stored, value_digest
from ...v2.format.digest import Algorithm, canonical, dtype_name, numpy_dtype
from .arrays import array, brought, format_name, here, reading
from .tensor_digests import TensorDigests

_LARGEST = {
    "f64": 0x7FF << 52,
    "f32": 0x7F800000,
    "f16": 0x7C00,
    "bf16": 0x7F80,
    "f8e4m3fn": 0x7E,
    "f8e5m2": 0x7C,
    "f8e8m0fnu": 0xFE,
}
"""The largest bits of a number that is not NaN, but for its sign, where there is more than one NaN."""


class _Pending:
    """A digest that is known once its sums have been brought."""

    __slots__ = ("digest",)

    def __init__(self) -> None:
        self.digest = b""


class AdditiveDigests(TensorDigests):
    """The digest of a tensor, as `value_digest` has it; on a GPU its sums stay there until `settled` asks for digests.

    Then those of all tensors since are brought in one copy. No tensor is copied, and nobody waits for the GPU before.
    Tensors elsewhere are digested at once.
    """

    def __init__(self, torch: Any, algorithm: Algorithm) -> None:
        super().__init__(torch, algorithm)
        self._torch = torch
        self._waiting = list[tuple[_Pending, str, tuple[int, ...], Any]]()

    def kind(self, tensor: Any) -> None:
        """All go the long way."""

    def long_way(self, tensor: Any) -> Any:
        """What stands for the digest. Raises DTypeError for a dtype that no trace has."""
        if not is_on_gpu(tensor):
            return self.of_array(array(tensor, copy=False))
        with reading():
            there, pending = here(tensor.detach()), _Pending()
            self._waiting.append((pending, format_name(there), tuple(there.shape), self._sums(there)))
        return pending

    def of_array(self, array: Array) -> bytes:
        """The digest of an array."""
        return value_digest(self._algorithm, dtype_name(array.dtype), array.shape, additive_digest(array))

    def settled(self, digests: Sequence[Any]) -> Sequence[Any]:
        """The digests for what stands for them; what is none stays as it is."""
        self._bring()
        return tuple([each.digest if isinstance(each, _Pending) else each for each in digests])

    def _bring(self) -> None:
        waiting, self._waiting = self._waiting, []
        by_device = defaultdict[Any, list[Any]](list)
        for one in waiting:
            by_device[one[3].device].append(one)
        for those in by_device.values():
            with reading():
                words = brought(self._torch.cat([sums for *_, sums in those])).view(np.uint64)
            begin = 0
            for pending, name, shape, sums in those:
                low, high = words[begin : begin + len(sums)].reshape(-1, 2).T.tolist()
                additive = stored(sum(low) + (sum(high) << 64))
                pending.digest = value_digest(self._algorithm, name, shape, additive)
                begin += len(sums)

    def _sums(self, tensor: Any) -> Any:
        """The sums of a tensor on a GPU, which are made behind all that PyTorch has asked of it in this thread."""
        torch = self._torch
        parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        flat, device = parts.reshape(-1), tensor.device
        sums = torch.empty((blocks_of(flat.numel()), 2), dtype=torch.int64, device=device)
        if len(sums):
            with torch.cuda.device(device):
                stream = torch.cuda.current_stream(device).cuda_stream
                places = sums.data_ptr(), flat.data_ptr(), flat.numel(), flat.element_size()
                start_sums(gpu(device.index), stream, *places, _nan_form(format_name(flat)))
        return sums


def is_on_gpu(tensor: Any) -> bool:
    """Whether a tensor lies on an NVIDIA GPU, from which to copy all that is computed takes long."""
    return tensor.device.type == "cuda" and tensor.device.index is not None


def are_wanted(params: Mapping[str, Any], *, additive: bool | None) -> bool:
    """Whether digests are additive: as asked for, else where a param lies on a GPU that can make them.

    Raises ImportError or CudaError where they are asked for and one that has params cannot.
    """
    if additive is False:
        return False
    numbers = {param.device.index for param in params.values() if is_on_gpu(param)}
    try:
        for number in numbers:
            require_sums(number)
    except (ImportError, CudaError):
        if additive:
            raise
        return False
    return additive or bool(numbers)


@cache
def _nan_form(name: str) -> NanForm:
    """Which bits of a dtype are NaN, and what they are written as."""
    if name not in _LARGEST:
        return NO_NAN
    kind = numpy_dtype(name)
    sign = 0 if name == "f8e8m0fnu" else 1 << 8 * kind.itemsize - 1
    bits = int(canonical(np.array(np.nan, kind)).view(f"u{kind.itemsize}"))
    return NanForm((1 << 8 * kind.itemsize) - 1 - sign, _LARGEST[name], bits)
