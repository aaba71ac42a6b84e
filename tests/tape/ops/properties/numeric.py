"""Derivatives by differences along a direction, with what is known of their error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cases import Array, Arrays

TRUNCATION = 1e-6
"""Relative error that the extrapolated difference may have on the functions that ops compute."""

ROUNDING = 16
"""Roundings of the function's value, in units of the last place, that its differences may show."""


@dataclass(frozen=True)
class Slope:
    """A derivative along a direction, how far rounding may have moved it, and whether there is a kink."""

    value: float
    rounding: float
    kink: bool

    def assert_equals(self, analytic: float, scale: float, label: str) -> None:
        """``analytic`` is this slope; ``scale`` is the size of the terms it was added from."""
        bound = TRUNCATION * scale + self.rounding
        difference = abs(analytic - self.value)
        assert difference <= bound, (
            f"{label}: analytic {analytic!r}, numeric {self.value!r}, difference {difference:.2g} over {bound:.2g}"
        )


def slope(function: Callable[[float], Array], weight: Array, eps: float, cancelled: float = 0.0) -> Slope:
    """The derivative at 0 of ``<weight, function(t)>``, by central differences at h and h/2, extrapolated.

    ``eps`` is the relative precision of the function's values, ``cancelled`` the size of larger terms that
    they are differences of. A kink is a jump of the one-sided slopes that does not shrink with the step.
    """
    h = max(2e-4, eps ** (1 / 3))
    w = weight.astype(np.float64)

    def at(t: float) -> float:
        return float(np.sum(w * function(t).astype(np.float64)))

    middle, size = at(0), cancelled + float(np.sum(np.abs(w * function(0).astype(np.float64))))
    right, left = at(h), at(-h)
    near_right, near_left = at(h / 2), at(-h / 2)
    wide, near = (right - left) / (2 * h), (near_right - near_left) / h
    rounding = ROUNDING * eps * size / h
    jumps = abs(right - 2 * middle + left) / h, abs(near_right - 2 * middle + near_left) / (h / 2)
    kink = jumps[1] > 0.75 * jumps[0] and jumps[1] > 8 * rounding
    return Slope((4 * near - wide) / 3, rounding, kink)


def moved(arrays: Arrays, directions: dict[int, Array], t: float) -> list[Array | None]:
    """``arrays`` with ``t`` times its direction added to each array that has one."""
    return [a + t * directions[i] if a is not None and i in directions else a for i, a in enumerate(arrays)]


def normal(rng: np.random.Generator, like: Array) -> Array:
    """Standard normal values of the shape and dtype of ``like``."""
    return np.asarray(rng.standard_normal(like.shape)).astype(like.dtype)


def dot(pairs: Sequence[tuple[Any, Any]]) -> tuple[float, float]:
    """The sum of the products of pairs of arrays in float64, and the sum of their sizes."""
    products = [np.multiply(a, b, dtype=np.float64) for a, b in pairs]
    return sum(float(np.sum(p)) for p in products), sum(float(np.sum(np.abs(p))) for p in products)
