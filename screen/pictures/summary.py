"""What is in a tensor, in numbers and in a line."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...base.arrays import Array
from ..showing import cell

Number: TypeAlias = float | int | bool


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said of a tensor in a line; least, greatest and mean are of the finite elements."""

    shape: tuple[int, ...]
    dtype: str
    elements: int
    min: Number | None
    max: Number | None
    mean: float | None
    zeros: int
    nan: int
    infinite: int

    @classmethod
    def of(cls, array: Array) -> "Summary":
        """That of an array of floats, whole numbers or truth values.

        >>> print(Summary.of(np.array([[0.0, np.nan], [1.5, -0.5]])))
        (2, 2) float64: -0.5 to 1.5, mean 0.3333; 1 of 4 zero, 1 NaN
        """
        zeros, nan, known = array.size - int(np.count_nonzero(array)), 0, array
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            nan, known = int(np.isnan(array).sum()), array[np.isfinite(array)]
        low, high = (known.min().item(), known.max().item()) if known.size else (None, None)
        infinite = array.size - known.size - nan
        return cls(array.shape, str(array.dtype), array.size, low, high, _mean(known), zeros, nan, infinite)

    def __str__(self) -> str:
        head = f"{self.shape} {self.dtype}: "
        if not self.elements:
            return f"{head}no elements"
        if self.elements == 1:
            return f"{head}{cell(self.min) if self.min is not None else 'NaN' if self.nan else '1 infinite'}"
        lost = [f"{count:,} {what}" for count, what in ((self.nan, "NaN"), (self.infinite, "infinite")) if count]
        ends = (
            f"{cell(self.min)} to {cell(self.max)}, mean {cell(self.mean)}" if self.min is not None else "none finite"
        )
        said = lost or (["all finite"] if self.dtype.startswith("float") else [])
        return f"{head}{ends}; {', '.join([f'{self.zeros:,} of {self.elements:,} zero', *said])}"


def _mean(known: Array) -> float | None:
    """In float64; None of no elements."""
    if not known.size:
        return None
    with np.errstate(over="ignore"):
        mean = float(known.mean(dtype=np.float64))
        return mean if math.isfinite(mean) else float((known / known.size).sum())
