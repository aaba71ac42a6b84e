"""Sequences of different lengths in batches of few shapes: padded to the length of their bucket, with a mask."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...tape.errors import DomainError, DTypeError, ShapeError
from ...tape.numerics.math.random import SEEDS, coordinate, permutation
from .digest import arrays_digest
from .epochs import Epochs, epoch_number, whole_number
from .orders import Indices
from .samples import Sample, as_array

OF_BATCHES = 2
"""The ordinal of the permutation of an epoch's batches; that of its samples is 0."""


class Buckets(Epochs[Sample]):
    """What `buckets` gives: batches ``(padded, mask, *targets)``, epoch after epoch.

    Every ``iter()`` is the next epoch, and a fresh object starts at epoch 0, as for `Batches`. The order of epoch k is
    keyed by (seed, k): samples are shuffled within their bucket, then the batches of all buckets.
    """

    def __init__(
        self,
        sequences: Sequence[npt.ArrayLike],
        targets: Sequence[npt.ArrayLike],
        size: int,
        lengths: int | Sequence[int],
        seed: int | None,
        drop_last: bool,
    ) -> None:
        self._sequences = _read(sequences)
        self._targets = [_rows(target, k, len(self._sequences)) for k, target in enumerate(targets)]
        own = np.array([len(each) for each in self._sequences], np.int64)
        self.size, self.drop_last = whole_number("buckets", "argument 'size'", size), drop_last
        self.lengths = _lengths(own, lengths)
        """The length that the sequences of each bucket are padded to."""
        self.seed = None if seed is None else coordinate("buckets", "seed", seed, SEEDS)
        self._bucket = np.searchsorted(self.lengths, own)
        if len(self) == 0:
            raise DomainError(
                f"buckets: expected {self.size} sequences in a bucket, with drop_last, got at most "
                f"{np.bincount(self._bucket).max()}: no batch would be left"
            )

    def __len__(self) -> int:
        """Batches in an epoch."""
        counts = np.bincount(self._bucket)
        return int(np.sum(counts // self.size if self.drop_last else -(-counts // self.size)))

    def epoch(self, k: int) -> Iterator[Sample]:
        """The batches of epoch ``k``, whatever was iterated before. Raises DomainError if ``k`` is negative."""
        return self.picked(k, lambda number: True)

    def picked(self, k: int, wanted: Callable[[int], bool]) -> Iterator[Sample]:
        """The batches of epoch ``k`` whose number ``wanted`` takes; the others are not padded."""
        rows = self._order(epoch_number(k))
        return (self._batch(own) for number, own in enumerate(rows) if wanted(number))

    def digest(self) -> str:
        """16 hex digits over sequences, targets, the size of batches, lengths and order."""
        rest = [self.size, self.lengths, self.seed, self.drop_last]
        return arrays_digest([*self._sequences, *self._targets], rest)

    def __repr__(self) -> str:
        return f"Buckets({len(self._sequences)} sequences, size={self.size}, lengths={self.lengths}, seed={self.seed})"

    def _order(self, k: int) -> list[Indices]:
        """The numbers of the samples of each batch."""
        n = len(self._sequences)
        order = np.arange(n) if self.seed is None else permutation(n, seed=self.seed, step=k)
        by_bucket = [order[self._bucket[order] == b] for b in range(len(self.lengths))]
        batches = list(chain.from_iterable(map(self._cut, by_bucket)))
        if self.seed is None:
            return batches
        return [batches[i] for i in permutation(len(batches), seed=self.seed, step=k, ordinal=OF_BATCHES)]

    def _cut(self, rows: Indices) -> Iterable[Indices]:
        stop = len(rows) // self.size * self.size if self.drop_last else len(rows)
        return (rows[start : start + self.size] for start in range(0, stop, self.size))

    def _batch(self, rows: Indices) -> Sample:
        chosen: list[Array] = [self._sequences[row] for row in rows]
        length = self.lengths[int(self._bucket[rows[0]])]
        padded = np.zeros((len(rows), length, *chosen[0].shape[1:]), chosen[0].dtype)
        mask = np.arange(length) < np.array([len(each) for each in chosen])[:, None]
        for i, each in enumerate(chosen):
            padded[i, : len(each)] = each
        return padded, mask, *[target[rows] for target in self._targets]


def buckets(
    sequences: Sequence[npt.ArrayLike],
    *targets: npt.ArrayLike,
    size: int,
    lengths: int | Sequence[int] = 4,
    seed: int | None = None,
    drop_last: bool = False,
) -> Buckets:
    """Batches of sequences of different lengths, in few shapes: ``(padded, mask, *targets)``.

    Each sequence goes to the first bucket that is long enough. A batch is of one bucket: ``padded`` has shape (samples,
    length of the bucket, …), with zeros after each sequence, and ``mask`` (samples, length) is true inside of it. A
    captured step is captured once for each length, and once more for the last, smaller batches of a bucket.

    Args:
        sequences: arrays of one dtype, of shapes (its length, …) that are alike but for the first axis.
        targets: arrays with a row for each sequence.
        size: sequences in a batch, at least 1.
        lengths: the length of each bucket, in ascending order; or how many there are, which then have about as many
            sequences each. Buckets that would be empty are left out.
        seed: key of the shuffles; None keeps the order of the sequences within each bucket, in every epoch.
        drop_last: leave out the last batch of a bucket if it has fewer samples.

    Raises:
        ShapeError: no sequence, one without an axis, sequences of different shapes, or targets of another number.
        DTypeError: sequences of different dtypes.
        DomainError: a size or count below 1, lengths that do not ascend, a sequence above the last of them, a seed out
            of range, or no batch in an epoch.

    >>> sequences = [np.arange(1, n + 1) for n in (2, 3, 1, 5)]
    >>> for padded, mask, label in buckets(sequences, [0, 1, 0, 1], size=2, lengths=[3, 5], drop_last=False):
    ...     print(padded.tolist(), mask.sum(axis=1), label)
    [[1, 2, 0], [1, 2, 3]] [2 3] [0 1]
    [[1, 0, 0]] [1] [0]
    [[1, 2, 3, 4, 5]] [5] [1]
    """
    return Buckets(sequences, targets, size, lengths, seed, drop_last)


def _read(sequences: Sequence[npt.ArrayLike]) -> list[Array]:
    """The sequences as arrays that are alike."""
    found = [as_array(each, f"buckets: sequence {k}") for k, each in enumerate(sequences)]
    if not found:
        raise ShapeError("buckets: argument 'sequences': expected at least one sequence, got none")
    first = found[0]
    for k, each in enumerate(found):
        if each.ndim == 0 or each.shape[1:] != first.shape[1:]:
            expected = ", ".join(["n", *map(str, first.shape[1:])])
            raise ShapeError(f"buckets: sequence {k}: expected shape ({expected}), as of the first, got {each.shape}")
        if each.dtype != first.dtype:
            raise DTypeError(f"buckets: sequence {k}: expected {first.dtype}, as of the first, got {each.dtype}")
    return found


def _rows(target: npt.ArrayLike, k: int, n: int) -> Array:
    rows = as_array(target, f"buckets: targets {k}")
    if rows.shape[:1] != (n,):
        raise ShapeError(f"buckets: targets {k}: expected a row for each of the {n} sequences, got shape {rows.shape}")
    return rows


def _lengths(own: Indices, lengths: int | Sequence[int]) -> list[int]:
    """The lengths of the buckets that have sequences."""
    if isinstance(lengths, int | np.integer):
        count = whole_number("buckets", "argument 'lengths'", lengths)
        ends = np.maximum(1, np.sort(own)[-(-np.arange(1, count + 1) * len(own) // count) - 1])
    else:
        ends = np.array([whole_number("buckets", "argument 'lengths'", each) for each in lengths], np.int64)
        if len(ends) == 0 or (np.diff(ends) <= 0).any():
            raise DomainError(f"buckets: argument 'lengths': expected them in ascending order, got {list(lengths)}")
        if own.max() > ends[-1]:
            longest = int(own.argmax())
            raise DomainError(
                f"buckets: sequence {longest}: expected a length of at most {ends[-1]}, the last of 'lengths', got "
                f"{own[longest]}; cut it, or add a longer bucket"
            )
    used = np.unique(np.searchsorted(ends, own))
    return sorted({int(ends[b]) for b in used})
