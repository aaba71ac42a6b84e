"""The arrays that a layer needs: their shapes, and how they start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ..errors import DomainError, DTypeError
from ..values.dtypes import FLOATS

Initialiser = Callable[[tuple[int, ...], np.dtype[Any], int, int], Array]
"""``initialise(shape, dtype, seed, ordinal)``: fresh values, keyed by the seed and the parameter's place."""


@dataclass(frozen=True)
class Parameter:
    """An array that a layer needs: its shape and how it starts.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Linear(3, 2).parameters()["weight"].shape
    (2, 3)
    """

    shape: tuple[int, ...]
    initialise: Initialiser = field(repr=False)


Parameters = Mapping[str, Parameter]


def count(named: Parameters) -> int:
    """How many elements parameters have together."""
    return sum(prod(p.shape) for p in named.values())


def overridden(named: Parameters, overrides: Mapping[str, Initialiser]) -> Parameters:
    """Parameters with other starts, by patterns of names. Raises DomainError for a pattern that none matches."""
    started = dict(named)
    for pattern, start in overrides.items():
        matching = [name for name in named if fnmatchcase(name, pattern)]
        if not matching:
            have = ", ".join(map(repr, named)) or "none"
            raise DomainError(f"init: argument 'overrides': expected patterns of names among {have}, got {pattern!r}")
        started.update({name: Parameter(named[name].shape, start) for name in matching})
    return started


def initialised(call: str, named: Parameters, seed: int, dtype: npt.DTypeLike) -> dict[str, Array]:
    """The values that parameters start with. Raises DTypeError for an element type that is no float's."""
    kind = np.dtype(dtype)
    if kind not in FLOATS:
        raise DTypeError(f"{call}: argument 'dtype': expected float32 or float64, got {kind}")
    return {name: p.initialise(p.shape, kind, seed, i) for i, (name, p) in enumerate(named.items())}
