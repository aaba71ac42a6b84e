"""Functions of single samples, with random numbers of their own if asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tape.errors import DomainError
from ...tape.numerics.math.random import SEEDS, coordinate
from .random import BUFFER, MOST, Indices, SampleRandom, sample_words
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
        """The function of at least one sample, each at its place."""
        if self.seed is None:
            return [self._one(sample, (), place, epoch) for sample, place in zip(samples, places.tolist(), strict=True)]
        first = SampleRandom(self.seed, epoch, int(places[0]), self.use)
        mapped = [self._one(samples[0], (first,), int(places[0]), epoch)]
        # Others draw as much as the first, mostly: all their words at once cost little more than those of one.
        words = sample_words(self.seed, epoch, places[1:], self.use, 0, min(first.blocks, MOST))
        for sample, place, own in zip(samples[1:], places[1:].tolist(), words, strict=True):
            mapped.append(self._one(sample, (SampleRandom(self.seed, epoch, place, self.use, own),), place, epoch))
        return mapped

    def _one(self, sample: AnySample, random: tuple[SampleRandom, ...], place: int, epoch: int) -> AnySample:
        """The function of one sample. What the function raises gets a note of which sample it was."""
        given: tuple[Any, ...] = (sample,) if isinstance(sample, dict) else sample
        try:
            return as_sample(self.fn(*given, *random), f"map: sample {place}")
        except Exception as error:
            error.add_note(f"in {self.name} of sample {place} in epoch {epoch}")
            raise

    @property
    def code(self) -> tuple[str, int | None]:
        """By what processes know it: the name of the function, or of its class, and the seed."""
        return getattr(self.fn, "__qualname__", None) or type(self.fn).__qualname__, self.seed

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
