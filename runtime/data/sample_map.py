"""Functions of single samples, with random numbers of their own if asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tape.errors import DomainError
from ...tape.numerics.math.random import SEEDS, coordinate
from .random import AHEAD, BUFFER, Indices, SampleRandom, Words, sample_words
from .samples import AnySample, as_sample


@dataclass(frozen=True)
class SampleMap:
    """A function, the seed of its random numbers, and its place among the maps of a data set.

    Raises DomainError for a seed out of range, or a place that has no random numbers.
    """

    fn: Callable[..., Any]
    seed: int | None
    use: int

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise DomainError(f"map: argument 'fn': expected a function of a sample's arrays, got {self.fn!r}")
        if self.seed is not None:
            coordinate("map", "seed", self.seed, SEEDS)
        if self.use >= BUFFER:
            raise DomainError(f"map: expected at most {BUFFER} maps one on another, got more")

    def all(self, samples: Sequence[AnySample], places: Indices, epoch: int) -> list[AnySample]:
        """The function of samples at these places."""
        words: Sequence[Words | None] = [None] * len(samples)
        if self.seed is not None:
            words = list(sample_words(self.seed, epoch, places, self.use, 0, AHEAD))
        return [self.one(*each, epoch) for each in zip(samples, places.tolist(), words, strict=True)]

    def one(self, sample: AnySample, place: int, words: Words | None, epoch: int) -> AnySample:
        """The function of one sample. What the function raises gets a note of which sample it was."""
        given: tuple[Any, ...] = (sample,) if isinstance(sample, dict) else sample
        if self.seed is not None:
            given = (*given, SampleRandom(self.seed, epoch, place, self.use, words))
        try:
            return as_sample(self.fn(*given), f"map: sample {place}")
        except Exception as error:
            error.add_note(f"in {self.name} of sample {place} in epoch {epoch}")
            raise

    @property
    def name(self) -> str:
        """As ``repr`` shows it."""
        fn = getattr(self.fn, "__qualname__", None) or repr(self.fn)
        return f"map({fn})" if self.seed is None else f"map({fn}, seed={self.seed})"


def applied(maps: Sequence[SampleMap], samples: list[AnySample], places: Indices, epoch: int) -> list[AnySample]:
    """The maps in turn of samples at these places; places count from 0 in the arrays or the stream."""
    for each in maps:
        samples = each.all(samples, np.asarray(places, np.int64), epoch)
    return samples
