"""What a sample is - several arrays in turn, or some by name - and how samples become a batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, cast, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar

from ...base.arrays import Array
from ...tape.errors import DgrrError, DomainError, DTypeError, ShapeError

Sample: TypeAlias = tuple[Array, ...]
"""One array per array of the data set: of a sample, or of a batch of samples along the first axis."""

NamedSample: TypeAlias = dict[str, Array]
"""The same by name."""

AnySample: TypeAlias = Sample | NamedSample

Element = TypeVar("Element", default=Any)

Batch: TypeAlias = tuple[Element, ...]
"""What a data set of arrays yields, one for each of them along the samples: a ``Batch[Array]``.

A loss function is given the same of Vars, a ``Batch[AnyVar]``; a ``Batch`` may be either. Where a data set has its
arrays by name, it is a ``dict`` of them.
"""

S = TypeVar("S", bound=AnySample, default=Sample)


@dataclass(frozen=True, eq=False)
class Samples(Generic[S]):
    """Samples that lie in arrays, each of them in one piece.

    Args:
        columns: the arrays, whose first axes count the samples.
        form: makes a sample, or a batch, of one array from each.
    """

    columns: Sequence[Array]
    form: Callable[[list[Array]], S]

    def batch(self, places: npt.NDArray[np.int64]) -> S:
        """The samples at these places."""
        return self.form([column[places] for column in self.columns])


@dataclass(frozen=True, eq=False)
class SampleBatches(Sequence[Any], Generic[S]):
    """The batches of steps in turn, none of which is read before it is asked for.

    Args:
        samples: where they come from.
        places: of the samples, batch by batch; the last one may be smaller.
        size: samples in a batch.
        together: batches of a step; of several it is given a tuple. A rest of fewer is left out.
    """

    samples: Samples[S]
    places: npt.NDArray[np.int64]
    size: int
    together: int = 1

    def __len__(self) -> int:
        return -(-len(self.places) // self.size) // self.together

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "SampleBatches[S]": ...
    def __getitem__(self, index: int | slice) -> Any:
        """The batch of a step, or the batches of several steps in turn."""
        step = self.size * self.together
        if isinstance(index, slice):
            first, stop, _ = index.indices(len(self))
            return replace(self, places=self.places[first * step : stop * step])
        if not 0 <= index < len(self):
            raise IndexError(index)
        starts = range(index * step, index * step + step, self.size)
        batches = tuple([self.samples.batch(self.places[start : start + self.size]) for start in starts])
        return batches if self.together > 1 else batches[0]

    @property
    def full_steps(self) -> int:
        """Of how many steps all batches are full; the others come behind them."""
        return len(self.places) // (self.size * self.together)


def as_array(value: Any, where: str) -> Array:
    """A value as numpy takes it.

    Raises ShapeError for nested lists of different lengths, DTypeError for Python objects and masked arrays.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise DTypeError(f"{where}: expected numbers, got a masked array; fill or leave out what is masked")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"{where}: expected samples of one shape, got parts of different shapes; pad or cut them to one"
        ) from error
    if array.dtype == object:
        raise DTypeError(f"{where}: expected numbers, got Python objects ({type(value).__name__}); {_way_out(value)}")
    return array


def _way_out(value: object) -> str:
    if isinstance(value, Mapping):
        return "pass its arrays by name: Dataset(**arrays)"
    if isinstance(value, Iterator):
        return "read what comes one by one with Stream"
    return "convert them with astype, columns of several types one by one"


def as_sample(value: Any, where: str) -> AnySample:
    """A tuple as arrays in turn, a dict as arrays by name, anything else as one array. Raises as `as_array`."""
    if isinstance(value, dict):
        named = cast(Mapping[str, Any], value)
        return {name: as_array(part, f"{where}: array {name!r}") for name, part in named.items()}
    parts = cast(Sequence[Any], value) if isinstance(value, tuple) else (value,)
    return tuple([as_array(part, f"{where}: array {k}") for k, part in enumerate(parts)])


def stacked(samples: Sequence[AnySample], where: Callable[[int], str]) -> AnySample:
    """At least one sample as a batch; ``where(k)`` names sample k.

    Raises DomainError, ShapeError or DTypeError for a sample that is not like the first.
    """
    first = samples[0]
    for k, sample in enumerate(samples):
        if difference := _difference(first, sample):
            kind, text = difference
            raise kind(f"{where(k)}: {text}")
    if isinstance(first, dict):
        named = cast(Sequence[NamedSample], samples)
        return {name: np.stack([sample[name] for sample in named]) for name in first}
    return tuple(np.stack(parts) for parts in zip(*cast(Sequence[Sample], samples), strict=True))


AS_BEFORE = "as in the first sample of the batch"


def _difference(first: AnySample, sample: AnySample) -> tuple[type[DgrrError], str] | None:
    """What tells a sample from the first, as an error and its text."""
    expected, got = _parts(first), _parts(sample)
    if list(expected) != list(got):
        return DomainError, f"expected arrays {list(expected)} {AS_BEFORE}, got {list(got)}"
    for name, array in got.items():
        like = expected[name]
        if array.shape != like.shape:
            return (
                ShapeError,
                f"array {name!r}: expected shape {like.shape} {AS_BEFORE}, got {array.shape}; pad or cut it",
            )
        if array.dtype != like.dtype:
            return DTypeError, f"array {name!r}: expected {like.dtype} {AS_BEFORE}, got {array.dtype}; convert it"
    return None


def _parts(sample: AnySample) -> Mapping[Any, Array]:
    return sample if isinstance(sample, dict) else dict(enumerate(sample))
