"""Data sets held in memory, and their batches: the same sequence in every run and on every machine."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ...arrays import Array
from ...tape.errors import DomainError, ShapeError
from ...tape.numerics.math.random import permutation

Sample: TypeAlias = tuple[Array, ...]
"""One array per array of the data set: of a sample, or of a batch of samples along the first axis."""


class Dataset:
    """Arrays whose first axes count the same samples.

    Args:
        arrays: at least one; the data set keeps read-only views of them.

    Raises:
        ShapeError: an array without axes, or arrays of different lengths.

    >>> import numpy as np
    >>> data = Dataset(np.arange(6.0).reshape(3, 2), np.array([1, 0, 1]))
    >>> len(data)
    3
    >>> data[:2]
    (array([[0., 1.],
           [2., 3.]]), array([1, 0]))
    """

    def __init__(self, *arrays: Array) -> None:
        if not arrays:
            raise ShapeError("Dataset: expected at least one array, got none")
        for k, array in enumerate(arrays):
            if array.ndim == 0:
                raise ShapeError(f"Dataset: array {k}: expected an axis of samples, got shape ()")
            if len(array) != len(arrays[0]):
                raise ShapeError(f"Dataset: array {k}: expected {len(arrays[0])} samples, got {len(array)}")
        self.arrays: Sample = tuple(map(_read_only, arrays))

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int | slice | Array) -> Sample:
        """The samples at an index, a slice or an array of indices; IndexError outside the data set."""
        return tuple(np.asarray(array[index]) for array in self.arrays)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.arrays)
        return f"Dataset({arrays})"

    def batches(self, size: int, *, seed: int | None = None, drop_last: bool = False) -> "Batches":
        """The data set in batches of ``size`` samples; see `Batches`."""
        return Batches(self, size, seed=seed, drop_last=drop_last)


class Batches:
    """A data set cut into batches, epoch after epoch.

    Every ``iter()`` is the next epoch, and a fresh object starts at epoch 0, so two fresh objects made alike
    give the same sequence of batches. The order of epoch k is a permutation keyed by (seed, k).

    Args:
        dataset: where the samples come from.
        size: samples in a batch, at least 1.
        seed: key of the shuffles; None keeps the order of the data set in every epoch.
        drop_last: leave out a last batch of fewer samples.

    Raises:
        DomainError: ``size`` is not a whole number of at least 1, or an epoch would have no batch.

    >>> import numpy as np
    >>> [labels.tolist() for labels, in Dataset(np.arange(5)).batches(2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, dataset: Dataset, size: int, *, seed: int | None = None, drop_last: bool = False) -> None:
        if size != int(size) or size < 1:
            raise DomainError(f"batches: size: expected a whole number of at least 1, got {size!r}")
        self.dataset, self.size, self.seed, self.drop_last = dataset, int(size), seed, drop_last
        self._next_epoch = 0
        if len(self) == 0:
            rule = f"at least {size} samples" if drop_last else "at least one sample"
            raise DomainError(f"batches: expected a data set of {rule}, got {len(dataset)}: no batch would be left")

    def __len__(self) -> int:
        """Batches in an epoch."""
        whole, rest = divmod(len(self.dataset), self.size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Sample]:
        """The batches of the next epoch."""
        epoch = self._next_epoch
        self._next_epoch += 1
        return self.epoch(epoch)

    def epoch(self, k: int) -> Iterator[Sample]:
        """The batches of epoch ``k``, whatever was iterated before; ``iter()`` goes on where it was.

        Raises DomainError if ``k`` is negative.
        """
        if k < 0:
            raise DomainError(f"batches: epoch: expected at least 0, got {k}")
        if self.seed is None:
            return (self.dataset[start : start + self.size] for start in self._starts)
        order = permutation(len(self.dataset), seed=self.seed, step=k)
        return (self.dataset[order[start : start + self.size]] for start in self._starts)

    @property
    def _starts(self) -> range:
        return range(0, len(self) * self.size, self.size)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
