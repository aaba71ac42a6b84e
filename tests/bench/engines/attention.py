"""What is measured of attention: queries, keys and values of several sizes, and cotangents as batches."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BATCHES = 4


@dataclass(frozen=True)
class Attention:
    """Scaled dot-product attention of (batch, heads, positions, features), forward and backward."""

    shape: tuple[int, int, int, int]
    causal: bool

    @property
    def name(self) -> str:
        """The sizes, and whether it is causal."""
        return "x".join(map(str, self.shape)) + (" causal" if self.causal else "")

    def params(self) -> dict[str, Array]:
        """Query, key and value, float32."""
        rng = np.random.default_rng(0)
        return {name: rng.standard_normal(self.shape, np.float32) for name in ("query", "key", "value")}

    def batches(self) -> list[Array]:
        """Cotangents to be taken in turn."""
        rng = np.random.default_rng(1)
        return [rng.standard_normal(self.shape, np.float32) for _ in range(BATCHES)]


_MODELS = tuple(Attention(shape, causal) for shape in ((16, 4, 64, 16), (8, 8, 256, 64)) for causal in (False, True))
MODELS = {model.name: model for model in _MODELS}
