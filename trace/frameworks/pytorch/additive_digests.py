"""Digests of PyTorch's tensors from additive digests, which are made on the device that a tensor lies on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...v2.format.additive import additive_digest, stored, value_digest
from ...v2.format.digest import Algorithm, canonical, dtype_name, numpy_dtype
from .arrays import brought, format_name, here, reading
from .tensor_digests import TensorDigests

_BLOCK = 1 << 18
"""Elements that are summed up at a time: sums of so many products of a byte and 16 bits are exact in float64."""

_PIECES = 8
"""Pieces of 16 bits of a factor of an additive digest."""

_STEP, _FIRST, _SECOND = (word - (1 << 64) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""The factors of SplitMix64 as PyTorch has them, whose integers are signed."""


class _Pending:
    """A digest that is known once its sums have been brought."""

    __slots__ = ("digest",)

    def __init__(self) -> None:
        self.digest = b""


class AdditiveDigests(TensorDigests):
    """The digest of a tensor, as `value_digest` has it; its sums stay on the device until `settled` asks for digests.

    Then those of all tensors since are brought in one copy. No tensor is copied, and nobody waits for a device before.
    """

    def __init__(self, torch: Any, algorithm: Algorithm) -> None:
        super().__init__(torch, algorithm)
        self._torch = torch
        self._waiting = list[tuple[_Pending, str, tuple[int, ...], Any]]()
        self._first = dict[Any, Any]()

    def kind(self, tensor: Any) -> None:
        """All go the long way."""

    def long_way(self, tensor: Any) -> Any:
        """What stands for the digest. Raises DTypeError for a dtype that no trace has."""
        with reading(), self._torch.no_grad():
            there, pending = here(tensor.detach()), _Pending()
            name = format_name(there)
            self._waiting.append((pending, name, tuple(there.shape), self._sums(there)))
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
                brought_sums = brought(self._torch.cat([sums.reshape(-1) for *_, sums in those])).astype(np.int64)
            begin = 0
            for pending, name, shape, own in those:
                sums = brought_sums[begin : begin + own.numel()].reshape(own.shape)
                pending.digest = value_digest(self._algorithm, name, shape, _additive(sums))
                begin += own.numel()

    def _sums(self, tensor: Any) -> Any:
        """For each block the sums of products of a piece of mix(i) and a byte of element i, and of the pieces alone."""
        torch = self._torch
        parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        size, flat = parts.element_size(), parts.reshape(-1)
        kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        bits = flat.view(kinds[size])
        if flat.is_floating_point():
            kind = numpy_dtype(format_name(flat))
            nan = int(canonical(np.array(np.nan, kind)).view(f"u{size}"))
            bits = torch.where(flat.isnan(), nan, bits)
        elements, sums = bits.view(torch.uint8).reshape(-1, size), list[Any]()
        for begin in range(0, len(elements), _BLOCK):
            some = torch.nn.functional.pad(elements[begin : begin + _BLOCK].to(torch.float64), (0, 1), value=1.0)
            sums.append(self._factors(some.device, begin)[:, : len(some)] @ some)
        return torch.stack(sums) if sums else elements.new_zeros((0, _PIECES, size + 1), dtype=torch.float64)

    def _factors(self, device: Any, begin: int) -> Any:
        """Pieces x elements of a block: 16 bits of mix(i) each, the lowest first. Those of the first block are kept."""
        if begin == 0 and device in self._first:
            return self._first[device]
        torch = self._torch
        words = _split_mix(torch.arange(2 * begin, 2 * (begin + _BLOCK), device=device))
        words.view(-1, 2)[:, 0].bitwise_or_(1)
        pieces = (words.view(torch.int16).to(torch.int32) & 0xFFFF).to(torch.float64).view(-1, _PIECES).T
        if begin == 0:
            self._first[device] = pieces
        return pieces


def is_elsewhere(tensors: Mapping[str, Any]) -> bool:
    """Whether any of these lies on a device, from which to copy all that is computed takes long."""
    return any(not tensor.is_cpu for tensor in tensors.values())


def _additive(sums: Array) -> bytes:
    """The additive digest from the sums of each block: of b · mix(i) by pieces and bytes, and of mix(i) by pieces."""
    *by_byte, alone = sums.sum(0).T.tolist()
    return stored(_joined(alone, 16) + _joined([_joined(pieces, 16) for pieces in by_byte], 8))


def _joined(numbers: Sequence[int], bits: int) -> int:
    """The sum of numbers, each moved on by so many bits more than the one before."""
    return sum(number << bits * i for i, number in enumerate(numbers))


def _split_mix(numbers: Any) -> Any:
    """`split_mix` by signed integers, whose bits are the same."""
    z = (numbers + 1) * _STEP
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _shifted(words: Any, by: int) -> Any:
    """Words shifted to the right, with zeros from the left."""
    return words >> by & (1 << 64 - by) - 1
