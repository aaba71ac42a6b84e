"""What a step of one rank asks of the others: bytes moved, integers compared, and nothing computed.

Floats are added by our own kernels and in the order of the recipe (`fold`), so whoever carries the bytes has no part in
the bits. All ranks call the same methods in the same order.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from ...base.arrays import Array

Wait: TypeAlias = Callable[[], Sequence[Array]]
"""Returns what was asked for, once it has arrived."""


@runtime_checkable
class Exchange(Protocol):
    """A rank among those that train one model together. Buffers are C-contiguous arrays of uint8, or of int64."""

    @property
    def rank(self) -> int:
        """Which one this is: 0, 1, … below ``size``."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    @property
    def local_rank(self) -> int:
        """Which one this is among those of its machine: which of several GPUs there is its own."""
        ...

    @property
    def overlap(self) -> bool:
        """Whether a scatter goes on beside what is computed until the wait; else nothing is gained by an early one."""
        ...

    @property
    def check_every(self) -> int:
        """After how many steps a run compares the parameters of all ranks."""
        ...

    def scatter(self, rows: Sequence[Array], bounds: Sequence[int], counts: Sequence[int]) -> Wait:
        """Give every rank its shard of the rows of all ranks; begun here, done when what is returned is called.

        Args:
            rows: those of this rank, ``counts[rank]`` of them, of ``bounds[-1]`` bytes (uint8) each. They are not
                changed before the wait; what is returned may lie in them.
            bounds: ``size + 1`` offsets that do not fall, from 0: the shard of rank r lies from ``bounds[r]`` up to
                ``bounds[r + 1]``, and may be empty.
            counts: how many rows each rank has, in the order of ranks.

        Returns:
            A function that waits and returns ``sum(counts)`` arrays, the rows of rank 0 first: of each the bytes of
            this rank's shard. They may be overwritten, and are valid until the next scatter of these rows.
        """
        ...

    def gather(self, whole: Array, bounds: Sequence[int]) -> None:
        """Fill ``whole`` (uint8, ``bounds[-1]`` bytes) on all ranks; each has its own shard of it filled, in place."""
        ...

    def collect(self, own: Array, bounds: Sequence[int]) -> Array:
        """The shards of all ranks, side by side, on rank 0; on the others an empty array.

        ``own`` (uint8) is that of this rank and has ``bounds[rank + 1] - bounds[rank]`` bytes.
        """
        ...

    def largest(self, values: Array) -> None:
        """Replace every element of ``values`` (int64, of one length on all ranks) by its maximum over the ranks."""
        ...
