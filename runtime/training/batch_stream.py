"""What a fit takes from its batches - epoch after epoch, several at once where asked - and how far it has come."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import Any, cast

import numpy as np

from ...tape import DomainError
from ..data import Batches, Dataset, Epochs
from ..data.samples import SampleBatches
from ..data.shares import of_groups

SIZE = 64
"""Of the batches in the advice that errors give."""


Take = Callable[[int], Sequence[Any]]
"""Gives the batches of the next steps of an epoch, so many at most; none at its end."""


@dataclass(frozen=True)
class Cursor:
    """How far a fit has come."""

    epoch: int = 0
    """The epoch of the last step, or the first one."""
    taken: int = 0
    """Batches taken in that epoch."""
    steps: int = 0
    """Steps done."""
    stopped: bool = False
    """Whether a callback has ended the fit."""
    first: int = 0
    """The epoch with which the fit began."""
    begun: int = 0
    """Batches that an earlier fit had taken in that epoch."""


def require_batches(where: str, batches: object) -> None:
    """Refuse what gives samples or whole arrays where batches are expected: a data set, or the arrays of one.

    A tuple of arrays is taken for ``(X, Y)``; batches of one array each are given as a list.
    """
    cut = f"batches({SIZE}, seed=0)"
    if isinstance(batches, Dataset):
        raise DomainError(f"{where}: expected batches, got a Dataset, which gives samples; pass dataset.{cut}")
    if isinstance(batches, np.ndarray):
        raise DomainError(f"{where}: expected batches, got an array; pass Dataset(X).{cut}")
    if isinstance(batches, Mapping):
        names = ", ".join(map(repr, cast(Mapping[object, Any], batches))) or "no entries"
        raise DomainError(f"{where}: expected batches, got a dict of {names}; pass batches, or [batch] for one")
    if isinstance(batches, tuple):
        parts: tuple[Any, ...] = tuple(cast(Any, batches))
        if any(isinstance(part, np.ndarray) for part in parts):
            names = "X" if len(parts) == 1 else "X, Y" if len(parts) == 2 else "X, Y, …"
            raise DomainError(
                f"{where}: expected batches, got a tuple of arrays; pass Dataset({names}).{cut}, or a list if each "
                "array is a batch"
            )


class Feed:
    """The batches of the steps of one fit.

    Args:
        batches: iterated once per epoch.
        steps: how many steps the fit has, None for no bound.
        epochs: how many epochs it has; None for one, or for as many as the steps need.
        accumulate: how many batches are one step; a rest of fewer at the end of an epoch is left out.
        cursor: where to go on. Epochs before it are passed over, then the batches that were taken.
        own: which of the batches of a step are wanted, None for all. Others are not read where `Epochs` can leave them.

    Raises:
        DomainError: a count below 0, or samples in place of batches.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        *,
        steps: int | None,
        epochs: int | None,
        accumulate: int,
        cursor: Cursor,
        own: range | None = None,
    ) -> None:
        for name, value in (("steps", steps), ("epochs", epochs)):
            if value is not None and value < 0:
                raise DomainError(f"fit: argument {name!r}: expected at least 0, got {value}")
        require_batches("fit: argument 'batches'", batches)
        self._batches, self._steps, self._accumulate = batches, steps, accumulate
        self._own = own
        self._first, self._begun = cursor.first, cursor.begun
        self._epochs = 1 if steps is None and epochs is None else epochs
        self._epoch, self._taken, self._count, self._stopped = cursor.epoch, cursor.taken, cursor.steps, cursor.stopped

    @property
    def cursor(self) -> Cursor:
        """Where the fit stands: behind the last step that was counted."""
        return Cursor(self._epoch, self._taken, self._count, self._stopped, self._first, self._begun)

    def next(self, batches: Iterable[Any]) -> Cursor:
        """Where a fit begins that follows this one: the same batches go on, unless only ``iter()`` gives them."""
        if not isinstance(batches, Epochs) or not _are_same(batches, self._batches):
            return Cursor()
        length = _length(self._batches)
        whole = length is not None and self._taken > 0 and self._taken >= length // self._accumulate * self._accumulate
        epoch, taken = (self._epoch + 1, 0) if whole else (self._epoch, self._taken)
        return Cursor(epoch, taken, first=epoch, begun=taken)

    @property
    def epoch_count(self) -> int | None:
        """How many epochs there are at most, where it is known before."""
        return self._epochs

    @property
    def left(self) -> int | None:
        """How many steps are to be done, where it is known before."""
        bounds = [] if self._steps is None else [self._steps]
        length = _length(self._batches)
        if length is not None and self._epochs is not None:
            bounds.append(length // self._accumulate * self._epochs - self._begun // self._accumulate)
        return max(0, min(bounds) - self._count) if bounds else None

    def count_steps(self, n: int) -> None:
        """The next steps, so many, are done."""
        self._taken += n * self._accumulate
        self._count += n

    def stop(self) -> None:
        """Give no more batches."""
        self._stopped = True

    def epochs(self) -> Iterator[tuple[int, Take]]:
        """Number and batches of every epoch that is left; the steps of each are to be counted before the next.

        Raises DomainError if an epoch gives no step, or fewer batches than were taken before.
        """
        first = self._epoch
        if self._ended(first):
            return
        self._pass_over(first)
        for epoch in count(first):
            if self._ended(epoch):
                return
            if epoch > first:
                self._epoch, self._taken = epoch, 0
            yield epoch, partial(self._taken_of, self._opened(epoch))

    def _ended(self, epoch: int) -> bool:
        return self._done or (self._epochs is not None and epoch - self._first >= self._epochs)

    @property
    def _done(self) -> bool:
        return self._stopped or (self._steps is not None and self._count >= self._steps)

    def _pass_over(self, epochs: int) -> None:
        """Read what stands before the first epoch; an `Epochs` gives any epoch without that."""
        if not isinstance(self._batches, Epochs):
            for _ in range(epochs):
                for _ in self._batches:
                    pass

    def _taken_of(self, opened: Take, most: int) -> Sequence[Any]:
        """The batches of the next steps of an epoch: as many as are needed, at most ``most``."""
        left = most if self._steps is None else min(most, self._steps - self._count)
        found: Sequence[Any] = () if self._done else opened(left)
        if not len(found) and self._taken == 0:
            raise DomainError(self._nothing())
        return found

    def _opened(self, epoch: int) -> Take:
        """What is left of an epoch. Only what nobody sees, or reads, is taken several steps at a time."""
        batches, n, taken = self._batches, self._accumulate, self._taken // self._accumulate * self._accumulate
        if self._own is not None:
            items, n = self._items(epoch), len(self._own)
            return partial(self._of_iterator, _skipped(items, taken // self._accumulate * n, epoch), n)
        in_place = batches.in_place(epoch) if isinstance(batches, Batches) else None
        if in_place is not None:
            _require_taken(len(in_place), taken, epoch)
            return partial(self._of_steps, replace(in_place, together=n))
        if type(batches) in (list, tuple):
            every = cast(Sequence[Any], batches)
            _require_taken(len(every), taken, epoch)
            return partial(self._of_list, every)
        return partial(self._of_iterator, _skipped(self._items(epoch), taken, epoch), n)

    def _of_steps(self, steps: SampleBatches[Any], most: int) -> Sequence[Any]:
        first = self._taken // self._accumulate
        return steps[first : first + most]

    def _of_list(self, batches: Sequence[Any], most: int) -> Sequence[Any]:
        n = self._accumulate
        first = self._taken // n * n
        found = batches[first : first + most * n]
        return found if n == 1 else [tuple(found[i : i + n]) for i in range(0, len(found) - n + 1, n)]

    def _of_iterator(self, items: Iterator[Any], n: int, most: int) -> Sequence[Any]:
        """Those of one step: it may be seen how far an iterator has come."""
        together = tuple(islice(items, n))
        if len(together) < n:
            return ()
        return [together if n > 1 or self._own is not None else together[0]]

    def _items(self, epoch: int) -> Iterator[Any]:
        """The batches of an epoch, or of each step of it those that are wanted."""
        batches, own = self._batches, self._own
        if isinstance(batches, Epochs):
            whole = batches
            return (whole if own is None else whole.share(self._accumulate, own)).epoch(epoch)
        return iter(batches) if own is None else of_groups(iter(batches), self._accumulate, own)

    def _nothing(self) -> str:
        least = "one batch" if self._accumulate == 1 else f"{self._accumulate} batches"
        got = "none" if self._accumulate == 1 else "fewer"
        return (
            f"fit: argument 'batches': expected at least {least} per epoch, got {got}; "
            "an iterator is used up after one epoch, so pass something that can be iterated again"
        )


def _are_same(one: Epochs[Any], other: Iterable[Any]) -> bool:
    """Whether these are the same batches: one object, or of one kind with the digest of its own content."""
    if one is other:
        return True
    tells = type(one) is type(other) and type(one).digest is not Epochs[Any].digest
    return tells and one.digest() == cast(Epochs[Any], other).digest()


def _length(batches: Iterable[Any]) -> int | None:
    """How many batches an epoch has, where it is known: streams have a length that raises TypeError."""
    try:
        return len(batches) if isinstance(batches, Sized) else None
    except TypeError:
        return None


def _skipped(items: Iterator[Any], taken: int, epoch: int) -> Iterator[Any]:
    """The batches behind those that were taken before."""
    _require_taken(sum(1 for _ in islice(items, taken)), taken, epoch)
    return items


def _require_taken(there: int, taken: int, epoch: int) -> None:
    """Raise DomainError if an epoch has fewer batches than were taken before."""
    if there < taken:
        raise DomainError(
            f"fit: argument 'batches': expected at least {taken} batches in epoch {epoch}, from where the checkpoint "
            f"goes on, got {there}; pass the batches of the run that saved it"
        )
