"""What is measured: networks, their start values and their batches, alike for every engine."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Params = dict[str, Array]
Batch = tuple[Array, Array]
LEARNING_RATE = 1e-3
BATCHES = 4


class Model(ABC):
    """A network with a loss, and the goal: the best peer's time over ours.

    Names, shapes and layouts of the parameters are PyTorch's: a linear weight is (out, in), a convolution's (out, in,
    3, 3). Each engine turns them into what suits it.
    """

    batch: int
    goal: float
    of_images: ClassVar[bool] = False
    """Whether channels first or last make a difference."""

    @property
    @abstractmethod
    def what(self) -> str:
        """Batch and loss in words."""

    @abstractmethod
    def params(self) -> Params:
        """Start values, float32."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Batch:
        """One batch."""

    def batches(self) -> list[Batch]:
        """Batches to be taken in turn."""
        rng = np.random.default_rng(1)
        return [self.draw(rng) for _ in range(BATCHES)]


@dataclass(frozen=True)
class Mlp(Model):
    """Linear layers with ReLU between them."""

    sizes: tuple[int, ...]
    batch: int
    loss: Literal["mse", "cross entropy"]
    goal: float

    @property
    def what(self) -> str:
        return f"batch {self.batch}, {self.loss}"

    @property
    def layers(self) -> list[str]:
        """The names of the layers."""
        return [f"linear{i}" for i in range(1, len(self.sizes))]

    def params(self) -> Params:
        start = Start()
        for layer, (n, m) in zip(self.layers, pairwise(self.sizes), strict=True):
            start.layer(layer, (m, n))
        return start.params

    def draw(self, rng: np.random.Generator) -> Batch:
        inputs = rng.standard_normal((self.batch, self.sizes[0]), np.float32)
        if self.loss == "mse":
            return inputs, rng.standard_normal((self.batch, self.sizes[-1]), np.float32)
        return inputs, rng.integers(0, self.sizes[-1], self.batch)


@dataclass(frozen=True)
class Cnn(Model):
    """3x3 convolutions that keep the size, each with ReLU, then a linear layer to 10 classes.

    With pooling "max" 2x2 maxima follow each convolution, and the last layer sees every pixel that is left; with "mean"
    it sees the mean over all pixels.
    """

    channels: tuple[int, ...]
    size: int
    pooling: Literal["max", "mean"]
    batch: int
    goal: float
    of_images = True

    @property
    def what(self) -> str:
        return f"batch {self.batch}, cross entropy"

    @property
    def layers(self) -> list[str]:
        """The names of the convolutions."""
        return [f"conv{i}" for i in range(1, len(self.channels))]

    @property
    def left(self) -> int:
        """The pixels along an axis that the last layer sees."""
        return self.size >> len(self.layers) if self.pooling == "max" else 1

    def params(self) -> Params:
        start = Start()
        for layer, (n, m) in zip(self.layers, pairwise(self.channels), strict=True):
            start.layer(layer, (m, n, 3, 3))
        start.layer("linear", (10, self.channels[-1] * self.left**2))
        return start.params

    def draw(self, rng: np.random.Generator) -> Batch:
        images = rng.standard_normal((self.batch, self.channels[0], self.size, self.size), np.float32)
        return images, rng.integers(0, 10, self.batch)


@dataclass(frozen=True)
class Transformer(Model):
    """Embedding and learned positions, pre-norm blocks of causal attention and GELU, a last norm, a linear layer."""

    symbols: int
    tokens: int
    width: int
    heads: int
    hidden: int
    blocks: int
    batch: int
    goal: float

    @property
    def what(self) -> str:
        return f"batch {self.batch} of {self.tokens} tokens, cross entropy of each"

    @property
    def layers(self) -> list[str]:
        """The names of the blocks."""
        return [f"block{i}" for i in range(1, self.blocks + 1)]

    def params(self) -> Params:
        start, d = Start(), self.width
        start.params["embedding"] = start.uniform((self.symbols, d), 1.0)
        start.params["positions"] = start.uniform((self.tokens, d), 1.0)
        for block in self.layers:
            start.norm(f"{block}.norm1", d)
            start.layer(f"{block}.qkv", (3 * d, d))
            start.layer(f"{block}.out", (d, d))
            start.norm(f"{block}.norm2", d)
            start.layer(f"{block}.linear1", (self.hidden, d))
            start.layer(f"{block}.linear2", (d, self.hidden))
        start.norm("norm", d)
        start.layer("linear", (self.symbols, d))
        return start.params

    def draw(self, rng: np.random.Generator) -> Batch:
        read, expected = rng.integers(0, self.symbols, (2, self.batch, self.tokens))
        return read, expected


class Start:
    """Start values, layer by layer."""

    def __init__(self) -> None:
        self.params: Params = {}
        self._rng = np.random.default_rng(0)

    def uniform(self, shape: tuple[int, ...], bound: float) -> Array:
        return self._rng.uniform(-bound, bound, shape).astype(np.float32)

    def layer(self, name: str, shape: tuple[int, ...]) -> None:
        """Weight, with the outputs as its first axis, and bias."""
        bound = prod(shape[1:]) ** -0.5
        self.params[f"{name}.weight"] = self.uniform(shape, bound)
        self.params[f"{name}.bias"] = self.uniform(shape[:1], bound)

    def norm(self, name: str, size: int) -> None:
        self.params[f"{name}.weight"] = np.ones(size, np.float32)
        self.params[f"{name}.bias"] = np.zeros(size, np.float32)


MODELS: dict[str, Model] = {
    "8-8-8": Mlp((8, 8, 8), 64, "mse", goal=15.0),
    "64-128-128-10": Mlp((64, 128, 128, 10), 64, "cross entropy", goal=2.5),
    "784-512-512-10": Mlp((784, 512, 512, 10), 128, "cross entropy", goal=1.5),
    "2048-2048-2048-2048": Mlp((2048, 2048, 2048, 2048), 256, "mse", goal=1.0),
    "cnn-8x8": Cnn((1, 8, 16), 8, "max", 32, goal=4.0),
    "cnn-28x28": Cnn((1, 16, 32), 28, "max", 64, goal=2.0),
    "conv-64": Cnn((64, 64, 64), 16, "mean", 32, goal=1.1),
    "transformer": Transformer(symbols=64, tokens=64, width=64, heads=4, hidden=256, blocks=2, batch=16, goal=2.0),
}
