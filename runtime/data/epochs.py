"""Batches epoch after epoch, and the same made ahead by a thread."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sized
from numbers import Integral
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from ...tape.errors import DgrrError, DomainError
from .ahead import Ahead

B = TypeVar("B", default=Any)
"""A batch."""


class LengthError(DgrrError, TypeError):
    """The length of what ends nobody knows when."""


class Epochs(ABC, Generic[B]):
    """Batches that can be had epoch by epoch: what `Trainer.fit` iterates, and resumes without reading what was.

    Every ``iter()`` is the next epoch, and a fresh object starts at epoch 0. Derive from it for batches of one's own:
    write ``epoch(k)``, and ``__len__`` where the number of batches in an epoch is known.

    >>> class Countdown(Epochs):
    ...     def epoch(self, k):
    ...         return iter(range(3 + k, 0, -1))
    >>> countdown = Countdown()
    >>> list(countdown), list(countdown), list(countdown.epoch(0))
    ([3, 2, 1], [4, 3, 2, 1], [3, 2, 1])
    """

    _next_epoch = 0

    @abstractmethod
    def epoch(self, k: int) -> Iterator[B]:
        """The batches of epoch ``k``, whatever was iterated before; nothing is read before the first is asked for."""

    def __iter__(self) -> Iterator[B]:
        """The batches of the next epoch."""
        return self.epoch(self.next_epoch())

    def next_epoch(self) -> int:
        """The number of the epoch that ``iter()`` would give, which is passed over."""
        epoch = self._next_epoch
        self._next_epoch += 1
        return epoch

    def share(self, together: int, own: range) -> "Share[B]":
        """Of every ``together`` batches those of a range; see `Share`."""
        return Share(self, together, own)

    def shared_epoch(self, k: int, together: int, own: range) -> Iterator[B]:
        """The batches of epoch ``k`` that `Share` gives. All are read, unless a class can do better."""
        return shared(self.epoch(k), together, own)

    def prefetch(self, n: int = 2) -> "Prefetch[B]":
        """The same batches, up to ``n`` of them made ahead by a thread; see `Prefetch`."""
        return Prefetch(self, n)


class Share(Epochs[B]):
    """Of every ``together`` batches in turn those whose numbers among them are in a range: what one of several ranks
    computes of a step.

    A rest of fewer than ``together`` at the end of an epoch is left out. Epochs are counted where the batches are: what
    is iterated here is iterated there.

    >>> import numpy as np
    >>> from dgrr.runtime import Dataset
    >>> batches = Dataset(np.arange(9)).batches(1)
    >>> [int(x[0]) for x, in batches.share(4, range(1, 3))]
    [1, 2, 5, 6]
    """

    def __init__(self, batches: Epochs[B], together: int, own: range) -> None:
        self._batches, self._together, self._own = batches, together, own

    def epoch(self, k: int) -> Iterator[B]:
        """The batches of epoch ``k``, whatever was iterated before."""
        return self._batches.shared_epoch(k, self._together, self._own)

    def __iter__(self) -> Iterator[B]:
        """The batches of the next epoch."""
        return self.epoch(self._batches.next_epoch())

    def __repr__(self) -> str:
        return f"Share({self._batches!r}, {self._together}, {self._own})"


class Prefetch(Epochs[B]):
    """Batches of which one thread makes up to ``n`` ahead: the same in the same order, to the bit.

    The thread reads samples and runs the functions of `Dataset.map` while the consumer computes. It begins with the
    first batch of an epoch and ends with its last, with an error, or when the iterator is dropped, as by ``break`` or
    Ctrl-C; the batch in progress is finished before. An error comes where its batch would have come, with its own
    traceback. What is iterated must not overwrite the arrays that it gave before.

    Args:
        batches: any `Epochs`.
        n: at least 1.

    Raises:
        DomainError: ``n`` is not a whole number of at least 1.

    >>> import numpy as np
    >>> from dgrr.runtime import Dataset
    >>> batches = Dataset(np.arange(5)).batches(2).prefetch(2)
    >>> batches
    Prefetch(Batches(Dataset(int64[5]), 2), 2)
    >>> len(batches), [labels.tolist() for labels, in batches]
    (3, [[0, 1], [2, 3], [4]])
    """

    def __init__(self, batches: Epochs[B], n: int = 2) -> None:
        self._batches, self._n = batches, whole("prefetch", "n", n)

    def epoch(self, k: int) -> Iterator[B]:
        """The batches of epoch ``k``, whatever was iterated before; the thread begins with the first one."""
        return Ahead(self._batches.epoch(k), self._n)

    def shared_epoch(self, k: int, together: int, own: range) -> Iterator[B]:
        """As `Epochs.shared_epoch`; the others' batches are made only where they must be."""
        return Ahead(self._batches.shared_epoch(k, together, own), self._n)

    def __len__(self) -> int:
        """Batches in an epoch. Raises TypeError where it is not known."""
        if not isinstance(self._batches, Sized):
            raise LengthError(f"Prefetch: {self._batches!r} has no length; iterate it, or bound a fit by its steps")
        return len(self._batches)

    def __repr__(self) -> str:
        return f"Prefetch({self._batches!r}, {self._n})"


def shared(batches: Iterable[B], together: int, own: range) -> Iterator[B]:
    """Of every ``together`` batches those of a range; a rest of fewer is left out. All of them are taken.

    >>> list(shared(range(9), 4, range(1, 3)))
    [1, 2, 5, 6]
    """
    items, kept = iter(batches), list[B]()
    for place, batch in enumerate(items):
        if place % together in own:
            kept.append(batch)
        if (place + 1) % together == 0:
            yield from kept
            kept.clear()


def whole(op: str, argument: str, value: object, least: int = 1) -> int:
    """A whole number as an int. Raises DomainError for others, or one below ``least``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, Integral) or value < least:
        raise DomainError(f"{op}: {argument}: expected a whole number of at least {least}, got {value!r}")
    return int(cast(int, value))


def epoch_number(k: int) -> int:
    """The number of an epoch. Raises DomainError if it is negative."""
    if k < 0:
        raise DomainError(f"batches: epoch: expected at least 0, got {k}")
    return k
