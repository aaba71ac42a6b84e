"""What a sample is - several arrays in turn, or some by name - and how samples become a batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from typing_extensions import TypeVar

from ...base.arrays import Array
from ...tape.errors import DgrrError, DomainError, DTypeError, ShapeError

Sample: TypeAlias = tuple[Array, ...]
"""One array per array of the data set: of a sample, or of a batch of samples along the first axis."""

NamedSample: TypeAlias = dict[str, Array]
"""The same by name."""

AnySample: TypeAlias = Sample | NamedSample

S = TypeVar("S", bound=AnySample, default=Sample)


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
