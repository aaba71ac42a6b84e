"""Inputs for the property tests: what an op record must say about where it works and where it must refuse.

Values come from the counter-based generator of `dgrr.tape.numerics.math.random`, so that they are the same everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ..numerics.math.random import uniform
from ..numerics.sizes import Sizes


@dataclass(frozen=True)
class Sample:
    """Arguments on which every property of an op must hold."""

    arrays: tuple[Array | None, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Bad:
    """Arguments that an op must refuse with an error of the given kind, whose text contains ``text``."""

    error: type[Exception]
    text: str
    arrays: Sequence[Any]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def bad(error: type[Exception], text: str, *arrays: Any, **attrs: Any) -> Bad:
    """A `Bad` sample; a tuple of ints stands for a float32 array of that shape."""
    made = [np.zeros(cast(Sizes, a), np.float32) if isinstance(a, tuple) else a for a in arrays]
    return Bad(error, text, made, attrs)


class Make:
    """Makes arrays of one dtype for samples, each call drawing new values.

    >>> Make(np.float32)(2, 3).shape
    (2, 3)
    """

    def __init__(self, dtype: npt.DTypeLike, seed: int = 0) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.seed = seed
        self._drawn = 0

    def unit(self, *shape: int) -> Array:
        """Values from [0, 1)."""
        self._drawn += 1
        return np.asarray(uniform(shape, self.dtype, seed=self.seed, ordinal=self._drawn))

    def __call__(self, *shape: int) -> Array:
        """Values from [-2, 2)."""
        return np.asarray(self.unit(*shape) * self.dtype.type(4) - self.dtype.type(2))

    def positive(self, *shape: int) -> Array:
        """Values from [0.25, 2.25)."""
        return np.asarray(self.unit(*shape) * self.dtype.type(2) + self.dtype.type(0.25))

    def indices(self, bound: int, *shape: int) -> npt.NDArray[np.int64]:
        """Integers from 0 to ``bound - 1``."""
        return np.asarray(self.unit(*shape) * bound).astype(np.int64)

    def mask(self, *shape: int) -> npt.NDArray[np.bool_]:
        """Coin flips."""
        return np.asarray(self.unit(*shape) < self.dtype.type(0.5))


Samples = Callable[[Make], list[Sample]]


def unary(*extra: Sequence[float]) -> Samples:
    """One array of several shapes: scalar, empty, odd, more than one block; then rows of given values."""
    return _elementwise(Make.__call__, extra)


def unary_positive(*extra: Sequence[float]) -> Samples:
    """The same with positive values."""
    return _elementwise(Make.positive, extra)


def _elementwise(draw: Callable[..., Array], extra: Sequence[Sequence[float]]) -> Samples:
    def samples(make: Make) -> list[Sample]:
        drawn = [draw(make, *shape) for shape in ((), (0, 3), (5,), (3, 7), (2, 3, 37))]
        given = [np.array(row, make.dtype) for row in extra]
        return [Sample((x,)) for x in (*drawn, draw(make, 6, 4).T, *given)]

    return samples


def binary(make: Make) -> list[Sample]:
    """Two arrays of one shape."""
    shapes = ((), (0,), (5,), (2, 3, 9))
    return [Sample((make(*s), make.positive(*s))) for s in shapes] + [Sample((make(4, 3).T, make.positive(3, 4)))]
