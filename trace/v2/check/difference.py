"""Where two arrays differ, and by how much: for people, and for tolerances in ULP."""

from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array, is_float
from ....base.ulp import exact, same_bits, ulp_distances
from ..format.digest import canonical


class Difference(NamedTuple):
    """The first element at which two arrays differ: its index, both values, their distance in ULP."""

    element: tuple[int, ...]
    recorded: Any
    found: Any
    ulp: int | None

    def __str__(self) -> str:
        place = ", ".join(map(str, self.element))
        distance = "" if self.ulp is None else f", {self.ulp} ULP apart"
        return f"element [{place}]: recorded {exact(self.recorded)}, found {exact(self.found)}{distance}"


def first_difference(recorded: Array, found: Array, ulp_tol: int = 0) -> Difference | None:
    """The first element, in C order, that differs by more than `ulp_tol`; at 0 the bits must be equal."""
    recorded, found = canonical(recorded), canonical(found)
    distances = ulp_distances(recorded, found) if is_float(recorded.dtype) else None
    differs = distances > ulp_tol if ulp_tol and distances is not None else ~same_bits(recorded, found)
    if not differs.any():
        return None
    element = tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), recorded.shape))
    ulp = None if distances is None else int(distances[element])
    return Difference(element, recorded[element], found[element], ulp)
