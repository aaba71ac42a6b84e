"""The arrays that a layer needs: their shapes, and how they start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...screen.named_arrays import NamedArrays
from ..errors import DomainError, DTypeError
from ..values.dtypes import FLOATS

Initialiser = Callable[[tuple[int, ...], np.dtype[Any], int, int], Array]
"""``initialise(shape, dtype, seed, ordinal)``: fresh values, keyed by the seed and the parameter's place."""


@dataclass(frozen=True)
class Parameter:
    """An array that a layer needs: its shape, how it starts, and what it is to the layer.

    >>> from dgrr.tape import nn
    >>> nn.Linear(3, 2).parameters()["weight"].shape
    (2, 3)
    """

    shape: tuple[int, ...]
    initialise: Initialiser = field(repr=False)
    role: str = "weight"
    """One of `ROLES`, or a word of your own: a name by which `Layer.having` finds it."""


ROLES = ("weight", "bias", "norm", "embedding", "slope")
"""What parameters are in the layers that are here: ``norm`` are scales and biases of norms, ``slope`` that of PReLU."""

Parameters = Mapping[str, Parameter]


def weight_and_bias(shape: tuple[int, ...], start: Initialiser, biases: int) -> dict[str, Parameter]:
    """``weight`` and, if there are ``biases``, so many in ``bias``, which start alike."""
    named = {"weight": Parameter(shape, start)}
    return {**named, "bias": Parameter((biases,), start, "bias")} if biases else named


@dataclass(frozen=True)
class Having:
    """Whether a parameter of a model has one of some roles: a predicate of its name and value, as trainers take it."""

    roles: tuple[str, ...]
    found: Mapping[str, str] = field(repr=False, hash=False)
    """The role of each parameter of the model."""

    @property
    def __name__(self) -> str:
        return f"having({', '.join(map(repr, self.roles))})"

    def __call__(self, name: str, value: object = None) -> bool:
        """Raises DomainError for a name that the model has not."""
        if name not in self.found:
            have = ", ".join(map(repr, self.found)) or "none"
            raise DomainError(f"{self.__name__}: expected a parameter of the model ({have}), got {name!r}")
        return self.found[name] in self.roles


def having(model: str, roles: tuple[str, ...], found: Mapping[str, str]) -> Having:
    """The predicate. Raises DomainError without a role, and for one that is neither known nor the model's."""
    known = tuple(dict.fromkeys((*ROLES, *found.values())))
    wrong = [role for role in roles if role not in known]
    if wrong or not roles:
        given = repr(wrong[0]) if wrong else "none"
        raise DomainError(f"{model}: having: expected roles among {', '.join(map(repr, known))}, got {given}")
    return Having(roles, found)


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
        started.update({name: replace(named[name], initialise=start) for name in matching})
    return started


def initialised(call: str, named: Parameters, seed: int, dtype: npt.DTypeLike) -> dict[str, Array]:
    """The values that parameters start with. Raises DTypeError for an element type that is no float's."""
    kind = np.dtype(dtype)
    if kind not in FLOATS:
        raise DTypeError(f"{call}: argument 'dtype': expected float32 or float64, got {kind}")
    return NamedArrays({name: p.initialise(p.shape, kind, seed, i) for i, (name, p) in enumerate(named.items())})
