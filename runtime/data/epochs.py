"""Batches epoch after epoch, and the same made ahead by a thread."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sized
from numbers import Integral
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from ...tape.errors import DgrrError, DomainError
from .ahead import Ahead
from .shares import of_groups

B = TypeVar("B", default=Any)
"""A batch."""


class LengthError(DgrrError, TypeError):
    """The length of an iterable of unknown length."""


class Epochs(ABC, Generic[B]):
    """Batches by epoch: `Trainer.fit` iterates them, and resumes without reading earlier ones.

    Every ``iter()`` is the next epoch, and a fresh object starts at epoch 0; a fit takes epochs by their number. Derive
    from it for your own batches: write ``epoch(k)``, and ``__len__`` if the number of batches in an epoch is known.

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
        """The number of the epoch that ``iter()`` would give; that epoch is skipped."""
        epoch = self._next_epoch
        self._next_epoch += 1
        return epoch

    def prefetch(self, n: int = 2) -> "Prefetch[B]":
        """The same batches, up to ``n`` of them prepared ahead by a thread; see `Prefetch`."""
        return Prefetch(self, n)

    def share(self, together: int, own: Container[int], *, rest: bool = False) -> "RankEpochs[B]":
        """Of every ``together`` batches in turn those at the places ``own``: what one of several ranks reads."""
        return RankEpochs(self, together, own, rest=rest)

    def digest(self) -> str:
        """What processes compare to check that they have the same batches; here, only the class."""
        return type(self).__qualname__

    def picked(self, k: int, wanted: Callable[[int], bool]) -> Iterator[B]:
        """The batches of epoch ``k`` whose number ``wanted`` accepts; override it if the others need not be read."""
        return (batch for number, batch in enumerate(self.epoch(k)) if wanted(number))


class RankEpochs(Epochs[B]):
    """The part of batches that one rank reads, epoch after epoch: of every so many in turn those at its places.

    Epochs are counted where the batches are: what is iterated here is iterated there.

    Args:
        batches: any `Epochs`. Where their number is known, those of other ranks are passed over by `Epochs.picked`,
            which for the batches of a data set reads nothing of them.
        together: the batches of all ranks in turn.
        own: the places of this rank among them, from 0.
        rest: whether fewer than ``together`` at the end of an epoch count; else they are left out.

    >>> from dgrr.runtime import Dataset
    >>> batches = Dataset(np.arange(10)).batches(2).share(2, [1])
    >>> len(batches), [labels.tolist() for labels, in batches]
    (2, [[2, 3], [6, 7]])
    """

    def __init__(self, batches: Epochs[B], together: int, own: Container[int], *, rest: bool = False) -> None:
        self._batches, self._together, self._own, self._rest = (
            batches,
            whole_number("share", "together", together),
            own,
            rest,
        )

    def epoch(self, k: int) -> Iterator[B]:
        """The batches of this rank in epoch ``k``, whatever was iterated before."""
        try:
            count = self._count()
        except TypeError:
            return of_groups(self._batches.epoch(k), self._together, self._own, rest=self._rest)
        return self._batches.picked(k, lambda number: number < count and number % self._together in self._own)

    def next_epoch(self) -> int:
        """The number of the batches' own next epoch, which is passed over there."""
        return self._batches.next_epoch()

    def __len__(self) -> int:
        """Batches of this rank in an epoch. Raises TypeError where it is not known."""
        return sum(number % self._together in self._own for number in range(self._count()))

    def __repr__(self) -> str:
        return f"{self._batches!r}.share({self._together}, {self._own})"

    def _count(self) -> int:
        """Of how many batches of an epoch this is a share. Raises TypeError where it is not known."""
        if not isinstance(self._batches, Sized):
            raise LengthError(f"Share: {self._batches!r} has no length; iterate it, or bound a fit by its steps")
        count = len(self._batches)
        return count if self._rest else count // self._together * self._together


class Prefetch(Epochs[B]):
    """Batches that a thread prepares up to ``n`` ahead: the same in the same order, to the bit.

    The thread reads samples and runs the functions of `Dataset.map` while the consumer computes. It begins with the
    first batch of an epoch and ends with its last, with an error, or when the iterator is dropped, as by ``break`` or
    Ctrl-C; the batch in progress is finished before. An error comes where its batch would have come, with its own
    traceback. The batches must not overwrite arrays given earlier.

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
        self._batches, self._n = batches, whole_number("prefetch", "n", n)

    def epoch(self, k: int) -> Iterator[B]:
        """The batches of epoch ``k``, whatever was iterated before; the thread begins with the first one."""
        return Ahead(self._batches.epoch(k), self._n)

    def picked(self, k: int, wanted: Callable[[int], bool]) -> Iterator[B]:
        """The batches of epoch ``k`` whose number ``wanted`` takes, made ahead."""
        return Ahead(self._batches.picked(k, wanted), self._n)

    def digest(self) -> str:
        """That of the batches which it makes ahead."""
        return self._batches.digest()

    def __len__(self) -> int:
        """Batches in an epoch. Raises TypeError where it is not known."""
        if not isinstance(self._batches, Sized):
            raise LengthError(f"Prefetch: {self._batches!r} has no length; iterate it, or bound a fit by its steps")
        return len(self._batches)

    def __repr__(self) -> str:
        return f"Prefetch({self._batches!r}, {self._n})"


def whole_number(op: str, argument: str, value: object, least: int = 1) -> int:
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
