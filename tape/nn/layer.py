"""Layers: frozen descriptions of functions of named parameters. They hold no values."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import FLOATS
from ..errors import DomainError, DTypeError
from ..tables import Table
from ..tensor import Array
from ..var import AnyVar

Params = Mapping[str, AnyVar]
Initialiser = Callable[[tuple[int, ...], np.dtype[Any], int, int], Array]
"""``initialise(shape, dtype, seed, ordinal)``: fresh values, keyed by the seed and the parameter's place."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that a layer needs: its shape and how it starts."""

    shape: tuple[int, ...]
    initialise: Initialiser


class Layer(ABC):
    """A function ``layer(p, x)`` of parameters ``p`` and a Var, described by frozen data."""

    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name, in the order in which they are initialised and listed."""

    @abstractmethod
    def __call__(self, p: Params, x: AnyVar) -> AnyVar:
        """The layer's output. ``p`` may hold more names than the layer asks for."""

    def init(self, seed: int, dtype: npt.DTypeLike = np.float32) -> dict[str, Array]:
        """Fresh parameters, a function of the seed alone: name to float32 or float64 array, in a fixed order.

        Raises DTypeError for another dtype.
        """
        kind = np.dtype(dtype)
        if kind not in FLOATS:
            raise DTypeError(f"init: argument 'dtype': expected float32 or float64, got {kind}")
        named = self.parameters().items()
        return {name: p.initialise(p.shape, kind, seed, i) for i, (name, p) in enumerate(named)}

    def table(self) -> Table:
        """One row per layer that has parameters, and the total."""
        return Table("", ("layer", "description", "parameters", "count"), list(self._rows("")))

    def _rows(self, prefix: str) -> Iterator[dict[str, Any]]:
        named = self.parameters()
        shapes = ", ".join(f"{name} {p.shape}" for name, p in named.items())
        count = sum(prod(p.shape) for p in named.values())
        yield {"layer": prefix or "-", "description": repr(self), "parameters": shapes or "-", "count": count}

    def __str__(self) -> str:
        return str(self.table())


def parameter(p: Params, layer: Layer, name: str) -> AnyVar:
    """``p[name]``. Raises DomainError, naming the layer and what there is, if it is missing."""
    try:
        return p[name]
    except KeyError:
        have = ", ".join(map(repr, p)) or "none"
        raise DomainError(f"{layer!r}: argument 'p': expected a parameter {name!r}, got {have}") from None


class Scope(Mapping[str, AnyVar]):
    """The parameters whose names begin with a prefix, under the names without it."""

    def __init__(self, p: Params, prefix: str) -> None:
        self._p, self._prefix = p, prefix

    def __getitem__(self, name: str) -> AnyVar:
        return self._p[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        n = len(self._prefix)
        return (name[n:] for name in self._p if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, init=False, repr=False)
class Sequential(Layer):
    """Layers applied one after the other; their parameters are named ``"0.weight"``, ``"0.bias"``, ``"2.weight"``, …

    >>> from dgrr.tape import nn
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> {name: value.shape for name, value in model.init(seed=0).items()}
    {'0.weight': (2, 3), '0.bias': (2,)}
    """

    layers: tuple[Layer, ...]

    def __init__(self, *layers: Layer) -> None:
        object.__setattr__(self, "layers", layers)

    def parameters(self) -> dict[str, Parameter]:
        """Every layer's parameters under the layer's position."""
        return {f"{i}.{n}": p for i, layer in enumerate(self.layers) for n, p in layer.parameters().items()}

    def __call__(self, p: Params, x: AnyVar) -> AnyVar:
        """The last layer's output."""
        for i, layer in enumerate(self.layers):
            x = layer(Scope(p, f"{i}."), x)
        return x

    def _rows(self, prefix: str) -> Iterator[dict[str, Any]]:
        for i, layer in enumerate(self.layers):
            yield from layer._rows(f"{prefix}.{i}" if prefix else str(i))
        if not prefix:
            total = sum(prod(p.shape) for p in self.parameters().values())
            yield {"layer": "", "description": "", "parameters": "total", "count": total}

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"
