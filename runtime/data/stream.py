"""Samples that come one by one, and their batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import count, islice
from typing import Any, cast

import numpy as np

from ...tape.errors import DomainError
from ...tape.numerics.math.random import SEEDS, coordinate
from .epochs import Epochs, LengthError, epoch_number, whole_number
from .random import picks
from .sample_map import SampleMap, applied
from .samples import as_sample, stacked


class Stream(Epochs[Any]):
    """Samples from a function that returns a fresh iterator for every epoch: a generator function, say.

    A sample is a tuple of arrays, a dict of them, or one array; numbers count as arrays. If the function yields batches
    already, train on the stream itself.

    Args:
        samples: the function, or an iterable for several passes. An iterator lasts for one epoch.

    Raises:
        DomainError: neither a function nor an iterable.

    >>> def squares():
    ...     for k in range(5):
    ...         yield k, k * k
    >>> stream = Stream(squares)
    >>> [(x.tolist(), y.tolist()) for x, y in stream.batches(2)]
    [([0, 1], [0, 1]), ([2, 3], [4, 9]), ([4], [16])]
    """

    def __init__(self, samples: Callable[[], Iterable[Any]] | Iterable[Any]) -> None:
        self._given = samples
        self._source = _source(samples)
        self._maps: tuple[SampleMap, ...] = ()

    def epoch(self, k: int) -> Iterator[Any]:
        """The samples of epoch ``k``; the function is called when the first is asked for.

        Raises DomainError if ``k`` is negative; then, if the function returns no iterable, or an iterator is used up.
        """
        return self._samples(epoch_number(k))

    def map(self, fn: Callable[..., Any], *, seed: int | None = None) -> "Stream":
        """The stream with a function of each sample; what `Dataset.map` says, a sample's place being that in the epoch.

        >>> [x.tolist() for x, in Stream(range(4)).map(lambda x: x * 10).batches(4)]
        [[0, 10, 20, 30]]
        """
        other = copy(self)
        other._maps, other._next_epoch = (*self._maps, SampleMap(fn, seed, len(self._maps))), 0
        return other

    def batches(
        self, size: int, *, seed: int | None = None, buffer: int | None = None, drop_last: bool = False
    ) -> "StreamBatches":
        """The samples in batches of ``size``; see `StreamBatches`."""
        return StreamBatches(self, size, seed=seed, buffer=buffer, drop_last=drop_last)

    def __len__(self) -> int:
        """Raises TypeError: nobody knows before the end."""
        raise LengthError(f"{self!r} has no length; iterate it, or bound a fit by its steps")

    def __repr__(self) -> str:
        given = getattr(self._given, "__qualname__", None) or type(self._given).__name__
        return ".".join([f"Stream({given})", *(each.name for each in self._maps)])

    def _samples(self, epoch: int) -> Iterator[Any]:
        for place, sample in enumerate(self._source(epoch)):
            if self._maps:
                given = [as_sample(sample, f"map: sample {place}")]
                sample = applied(self._maps, given, np.array([place]), epoch)[0]
            yield sample


class StreamBatches(Epochs[Any]):
    """The samples of a stream in batches, epoch after epoch.

    Args:
        stream: read again in every epoch.
        size: samples in a batch.
        seed: key of the shuffles, which then need a buffer.
        buffer: how many samples wait: each new sample replaces a random one of them, which is given next. 1 does not
            shuffle; with as many as there are samples, every order is equally likely.
        drop_last: leave out a last batch of fewer samples.

    Raises:
        DomainError: a size or a buffer below 1, or one of ``seed`` and ``buffer`` without the other. While iterated:
            ShapeError, DTypeError or DomainError for samples of a batch that are not alike.

    >>> shuffled = Stream(range(6)).batches(3, seed=0, buffer=4)
    >>> [x.tolist() for x, in shuffled], [x.tolist() for x, in shuffled]
    ([[3, 1, 4], [0, 2, 5]], [[1, 2, 3], [0, 4, 5]])
    """

    def __init__(
        self,
        stream: Stream,
        size: int,
        *,
        seed: int | None = None,
        buffer: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if (seed is None) != (buffer is None):
            raise DomainError(f"batches: expected both seed and buffer or neither, got {seed} and {buffer}")
        self.stream, self.size, self.drop_last = stream, whole_number("batches", "size", size), drop_last
        self.seed = None if seed is None else coordinate("batches", "seed", seed, SEEDS)
        self.buffer = None if buffer is None else whole_number("batches", "buffer", buffer)

    def epoch(self, k: int) -> Iterator[Any]:
        """The batches of epoch ``k``, whatever was iterated before; the stream is opened for the first of them.

        Raises DomainError if ``k`` is negative.
        """
        return self._batches(epoch_number(k))

    def __len__(self) -> int:
        """Raises TypeError: nobody knows before the end."""
        raise LengthError(f"{self!r} has no length; iterate it, or bound a fit by its steps")

    def __repr__(self) -> str:
        options = {"seed": self.seed, "buffer": self.buffer, "drop_last": self.drop_last or None}
        shown = "".join(f", {name}={value}" for name, value in options.items() if value is not None)
        return f"StreamBatches({self.stream!r}, {self.size}{shown})"

    def _batches(self, k: int) -> Iterator[Any]:
        samples = self.stream.epoch(k)
        if self.seed is not None and self.buffer is not None:
            samples = _shuffled(samples, self.buffer, picks(self.seed, k))
        for first in count(step=self.size):
            together = list(islice(samples, self.size))
            if len(together) < (self.size if self.drop_last else 1):
                return
            yield _batch(together, f"{self.stream!r}: epoch {k}: sample", first)


def _batch(together: Sequence[Any], where: str, first: int) -> Any:
    samples = [as_sample(sample, f"{where} {first + n}") for n, sample in enumerate(together)]
    return stacked(samples, lambda n: f"{where} {first + n}")


def _shuffled(samples: Iterator[Any], buffer: int, numbers: Iterator[int]) -> Iterator[Any]:
    """The samples, each in exchange for a random one of those held back; at the end the rest in random order."""
    held = list(islice(samples, buffer))
    for sample in samples:
        place = next(numbers) % len(held)
        held[place], sample = sample, held[place]
        yield sample
    while held:
        place = next(numbers) % len(held)
        held[place], held[-1] = held[-1], held[place]
        yield held.pop()


def _source(samples: Any) -> Callable[[int], Iterable[Any]]:
    """What gives the samples of an epoch."""
    if isinstance(samples, Iterator):
        return _Once(cast(Any, samples))
    if callable(samples):
        return partial(_called, cast(Any, samples))
    if not isinstance(samples, Iterable) and not hasattr(samples, "__getitem__"):
        expected = "expected a function that returns an iterator, or an iterable"
        raise DomainError(f"Stream: argument 'samples': {expected}, got {type(samples).__name__}")
    return partial(_again, samples)


def _called(function: Any, epoch: int) -> Any:
    samples: Any = function()
    if not isinstance(samples, Iterable):
        name = getattr(function, "__qualname__", repr(function))
        raise DomainError(f"Stream: {name}(): expected an iterator, got {type(samples).__name__}; yield samples")
    return cast(Any, samples)


def _again(samples: Iterable[Any], epoch: int) -> Iterable[Any]:
    return samples


class _Once:
    """An iterator, which serves one epoch."""

    def __init__(self, samples: Iterator[Any]) -> None:
        self._samples, self._used = samples, False

    def __call__(self, epoch: int) -> Iterable[Any]:
        if self._used or epoch > 0:
            kind = type(self._samples).__name__
            raise DomainError(
                f"Stream: epoch {epoch}: expected samples that can be iterated again, got a {kind}, which is used up "
                "after one epoch; pass the function that makes it: Stream(samples), not Stream(samples())"
            )
        self._used = True
        return self._samples
