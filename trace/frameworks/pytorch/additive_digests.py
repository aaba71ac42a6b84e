"""Digests of PyTorch's tensors from additive digests, which are made on the device that a tensor lies on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...v2.format.additive import SUMS, additive_digest, of_sums, value_digest
from ...v2.format.digest import Algorithm, canonical, dtype_name, numpy_dtype
from .arrays import brought, format_name, here, reading
from .tensor_digests import TensorDigests

_BLOCK = 1 << 20
"""Elements that are summed up at a time, so that what is needed for it stays small."""

_LOW = (1 << 32) - 1
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

    def kind(self, tensor: Any) -> None:
        """All go the long way."""

    def long_way(self, tensor: Any) -> Any:
        """What stands for the digest. Raises DTypeError for a dtype that no trace has."""
        with reading(), self._torch.no_grad():
            there, pending = here(tensor.detach()), _Pending()
            name = format_name(there)
            self._waiting.append((pending, name, tuple(there.shape), self._rows(there)))
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
                rows = iter(brought(self._torch.cat([rows for *_, rows in those])).view(np.uint64))
            for pending, name, shape, own in those:
                additive = of_sums([next(rows) for _ in range(len(own))])
                pending.digest = value_digest(self._algorithm, name, shape, additive)

    def _rows(self, tensor: Any) -> Any:
        """The rows of `of_sums`, where the tensor lies."""
        torch = self._torch
        parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        bits, nan = self._bits(parts), self._nan(parts)
        rows = [self._row(bits, nan, begin) for begin in range(0, bits.numel(), _BLOCK)]
        return torch.stack(rows) if rows else bits.new_zeros((0, SUMS), dtype=torch.int64)

    def _bits(self, tensor: Any) -> Any:
        """The elements in row-major order, as integers."""
        torch = self._torch
        kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        return tensor.reshape(-1).view(kinds[tensor.element_size()])

    def _nan(self, tensor: Any) -> tuple[Any, int] | None:
        """Which elements are NaN, and the bits of its canonical form; None of integers."""
        if not tensor.is_floating_point():
            return None
        kind = numpy_dtype(format_name(tensor))
        return tensor.isnan().reshape(-1), int(canonical(np.array(np.nan, kind)).view(f"u{kind.itemsize}"))

    def _row(self, bits: Any, nan: tuple[Any, int] | None, begin: int) -> Any:
        torch, some = self._torch, bits[begin : begin + _BLOCK]
        words = some.to(torch.int64)
        if some.element_size() < 8:
            words = words & (1 << 8 * some.element_size()) - 1
        if nan is not None:
            words = torch.where(nan[0][begin : begin + _BLOCK], nan[1], words)
        twice = 2 * torch.arange(begin, begin + some.numel(), device=some.device)
        low, high = _split_mix(twice) | 1, _split_mix(twice + 1)
        (b0, b1), (m0, m1) = _halves(words), _halves(low)
        products = [(b0 * m0,), (b0 * m1, b1 * m0), (b1 * m1,), (low,)]
        halves = [sum(_halves(word)[i].sum() for word in each) for i in (0, 1) for each in products]
        return torch.stack([*halves, ((words + 1) * high).sum()])


def is_elsewhere(tensors: Mapping[str, Any]) -> bool:
    """Whether any of these lies on a device, from which to copy all that is computed takes long."""
    return any(not tensor.is_cpu for tensor in tensors.values())


def _split_mix(numbers: Any) -> Any:
    """`split_mix` by signed integers, whose bits are the same."""
    z = (numbers + 1) * _STEP
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _shifted(words: Any, by: int) -> Any:
    """Words shifted to the right, with zeros from the left."""
    return words >> by & (1 << 64 - by) - 1


def _halves(words: Any) -> tuple[Any, Any]:
    return words & _LOW, _shifted(words, 32)
