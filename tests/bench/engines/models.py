"""What is measured: fully connected networks, their start values and their batches, alike for every engine."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Batch = tuple[Array, Array]
LEARNING_RATE = 1e-3
BATCHES = 4


@dataclass(frozen=True)
class Model:
    """Linear layers with ReLU between them, a loss, and the goal: the best peer's time over ours."""

    sizes: tuple[int, ...]
    batch: int
    loss: Literal["mse", "cross entropy"]
    goal: float

    @property
    def name(self) -> str:
        """The sizes of the layers."""
        return "-".join(map(str, self.sizes))

    def params(self) -> list[tuple[Array, Array]]:
        """(weight, bias) of each layer, float32; a weight is (out, in), as dgrr and PyTorch hold it."""
        rng = np.random.default_rng(0)
        bounds = [(n, m, 1 / np.sqrt(n)) for n, m in pairwise(self.sizes)]
        return [(_uniform(rng, b, (m, n)), _uniform(rng, b, (m,))) for n, m, b in bounds]

    def batches(self) -> list[Batch]:
        """Batches to be taken in turn."""
        rng = np.random.default_rng(1)
        return [self._batch(rng) for _ in range(BATCHES)]

    def _batch(self, rng: np.random.Generator) -> Batch:
        inputs = rng.standard_normal((self.batch, self.sizes[0]), np.float32)
        if self.loss == "mse":
            return inputs, rng.standard_normal((self.batch, self.sizes[-1]), np.float32)
        return inputs, rng.integers(0, self.sizes[-1], self.batch)


def _uniform(rng: np.random.Generator, bound: float, shape: tuple[int, ...]) -> Array:
    return rng.uniform(-bound, bound, shape).astype(np.float32)


_MODELS = (
    Model((8, 8, 8), 64, "mse", goal=15.0),
    Model((64, 128, 128, 10), 64, "cross entropy", goal=2.5),
    Model((784, 512, 512, 10), 128, "cross entropy", goal=1.5),
    Model((2048, 2048, 2048, 2048), 256, "mse", goal=1.0),
)
MODELS = {model.name: model for model in _MODELS}
