"""What is measured of loops: gradients by many small arrays, all of which every step reads, in float64."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BATCHES = 4


@dataclass(frozen=True)
class Looped:
    """``h = tanh(h * a[k] + b[k] + x * c[k])`` for every k in turn, in each of so many steps; all are of one width."""

    leaves: int
    steps: int
    width: int

    @property
    def name(self) -> str:
        """How many leaves, steps and elements."""
        return f"{self.leaves} leaves x {self.steps} steps of {self.width}"

    @property
    def cells(self) -> int:
        """How many k there are."""
        return self.leaves // 3

    def params(self) -> dict[str, Array]:
        """a, b and c of every k."""
        rng = np.random.default_rng(0)
        return {f"{name}{k}": rng.uniform(-1, 1, self.width) for k in range(self.cells) for name in "abc"}

    def batches(self) -> list[Array]:
        """x of every step."""
        rng = np.random.default_rng(1)
        return [rng.standard_normal((self.steps, self.width)) for _ in range(BATCHES)]


_MODELS = (Looped(3, 614, 8), Looped(60, 614, 8), Looped(60, 64, 256))
MODELS = {model.name: model for model in _MODELS}
