"""The loss of named parameters as a function of one vector."""

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....base.arrays import Array, Arrays
from ....tape.errors import DomainError, NonFiniteError
from ..arrays import check_float, check_in_place, check_like, check_names
from .vectors import total

Closure: TypeAlias = Callable[[dict[str, Array]], tuple[Any, Arrays]]
"""``closure(params)``: the loss at these parameters, and the gradients by name, absent for what it does not reach."""

COMMAND = "LBFGS.step"


class Place(NamedTuple):
    """The loss somewhere, and its gradient."""

    loss: float
    gradient: Array


class Landscape:
    """A closure over all parameters as one float64 vector; counts how often it is evaluated.

    Raises DTypeError for a parameter that is no array of float32 or float64, DomainError for one that cannot be updated
    in place.
    """

    def __init__(self, closure: Closure, params: Arrays) -> None:
        for name, array in params.items():
            checked = check_float(array, "{}: parameter {!r}", COMMAND, name)
            check_in_place(checked, "{}: parameter {!r}", COMMAND, name)
        self._closure, self._params, self.evaluations = closure, params, 0

    @property
    def here(self) -> Array:
        """The parameters as they are."""
        return flat(self._params)

    def arrays(self, x: Array) -> dict[str, Array]:
        """A vector as arrays of the parameters' names, shapes and dtypes, each element rounded once."""
        ends = np.cumsum([array.size for array in self._params.values()])
        parts = np.split(x, ends[:-1])
        pairs = zip(self._params.items(), parts, strict=True)
        return {name: part.reshape(array.shape).astype(array.dtype) for (name, array), part in pairs}

    def __call__(self, x: Array) -> Place:
        """The loss and its gradient at a vector. Raises DomainError or ShapeError for results that do not fit."""
        self.evaluations += 1
        loss, grads = self._closure(self.arrays(x))
        if np.shape(loss) != ():
            raise DomainError(f"{COMMAND}: closure: expected a loss without axes, got shape {np.shape(loss)}")
        check_names(grads, self._params, "{}: closure: gradients", COMMAND)
        return Place(float(loss), flat({name: self._gradient(name, grads) for name in self._params}))

    def _gradient(self, name: str, grads: Arrays) -> Array:
        p = self._params[name]
        if name not in grads:
            return np.zeros(p.shape, p.dtype)
        return check_like(grads[name], p.shape, p.dtype, "{}: closure: gradient of {!r}", COMMAND, name)


def flat(arrays: Arrays) -> Array:
    """All elements in their order, as float64."""
    return np.concatenate([array.reshape(-1).astype(np.float64) for array in arrays.values()])


def require_finite(place: Place) -> Place:
    """``place``, unless its loss or gradient is infinite or NaN, for which NonFiniteError is raised."""
    if isfinite(place.loss) and isfinite(total(place.gradient)):
        return place
    raise NonFiniteError(
        f"{COMMAND}: expected a finite loss and finite gradients, got a loss of {place.loss!r}; nothing was changed: "
        "lower lr, or search along the line with line_search='strong_wolfe'"
    )
