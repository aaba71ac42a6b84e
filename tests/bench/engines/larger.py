"""Larger networks, each written once over the functions that an engine has (`Functions`)."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from .models import MODELS, Batch, Model, Params, Start, Transformer

IMAGES = (3, 32, 32)
CLASSES = 10


class Functions(Protocol):
    """What an engine must have, with PyTorch's layouts."""

    def conv(self, x: Any, weight: Any, stride: int = 1, groups: int = 1) -> Any:
        """A convolution that keeps the size of images but for the stride; no bias."""

    def batch_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        """By the batch's own mean and variance of each channel."""

    def relu(self, x: Any) -> Any: ...

    def max_pool(self, x: Any) -> Any:
        """The maxima of 2x2."""

    def enlarged(self, x: Any) -> Any:
        """Each pixel four times."""

    def joined(self, x: Any, y: Any) -> Any:
        """The channels of both."""

    def pixel_mean(self, x: Any) -> Any: ...

    def linear(self, x: Any, weight: Any, bias: Any) -> Any: ...

    def lstm(self, x: Any, p: Any) -> Any:
        """The states of an LSTM at each place of sequences (batch, time, features)."""

    def cross_entropy(self, x: Any, labels: Any) -> Any: ...

    def mse(self, x: Any, targets: Any) -> Any: ...


class Net(Model):
    """A network with its loss over `Functions`."""

    @abstractmethod
    def loss(self, f: Functions, p: Any, x: Any, targets: Any) -> Any:
        """The loss of a batch."""


def normed(f: Functions, p: Any, name: str, x: Any, stride: int = 1, groups: int = 1) -> Any:
    """A convolution and its batch norm."""
    y = f.conv(x, p[f"{name}.weight"], stride, groups)
    return f.batch_norm(y, p[f"{name}.norm.weight"], p[f"{name}.norm.bias"])


def with_norm(start: Start, name: str, outputs: int, inputs: int, size: int = 3) -> None:
    """The parameters of `normed`."""
    start.params[f"{name}.weight"] = start.uniform((outputs, inputs, size, size), (inputs * size * size) ** -0.5)
    start.norm(f"{name}.norm", outputs)


def classified(f: Functions, p: Any, x: Any, labels: Any) -> Any:
    """The loss of a linear layer over the mean of all pixels."""
    return f.cross_entropy(f.linear(f.pixel_mean(x), p["linear.weight"], p["linear.bias"]), labels)


@dataclass(frozen=True)
class Images(Net):
    """A classifier of 32x32 images."""

    batch: int = 32
    goal: float = 1.2
    of_images = True

    @property
    def what(self) -> str:
        return f"batch {self.batch} of 32x32, cross entropy"

    def draw(self, rng: np.random.Generator) -> Batch:
        return rng.standard_normal((self.batch, *IMAGES), np.float32), rng.integers(0, CLASSES, self.batch)


@dataclass(frozen=True)
class ResNet(Images):
    """Three stages of residual blocks of two convolutions, as He et al. have them for small images."""

    widths: tuple[int, ...] = (16, 32, 64)
    blocks: int = 3

    def places(self) -> Iterator[tuple[str, int, int, int]]:
        """Each block's name, channels in and out, and stride."""
        inputs = self.widths[0]
        for stage, width in enumerate(self.widths):
            for block in range(self.blocks):
                yield f"stage{stage}.{block}", inputs, width, 2 if stage and not block else 1
                inputs = width

    def params(self) -> Params:
        start = Start()
        with_norm(start, "first", self.widths[0], IMAGES[0])
        for name, inputs, outputs, stride in self.places():
            with_norm(start, f"{name}.a", outputs, inputs)
            with_norm(start, f"{name}.b", outputs, outputs)
            if stride > 1:
                with_norm(start, f"{name}.past", outputs, inputs, 1)
        start.layer("linear", (CLASSES, self.widths[-1]))
        return start.params

    def loss(self, f: Functions, p: Any, x: Any, targets: Any) -> Any:
        x = f.relu(normed(f, p, "first", x))
        for name, _, _, stride in self.places():
            past = normed(f, p, f"{name}.past", x, stride) if stride > 1 else x
            inner = normed(f, p, f"{name}.b", f.relu(normed(f, p, f"{name}.a", x, stride)))
            x = f.relu(inner + past)
        return classified(f, p, x, targets)


@dataclass(frozen=True)
class Separable(Images):
    """Convolutions of single channels and of single pixels in turn, as MobileNet has them."""

    widths: tuple[int, ...] = (32, 64, 128, 256)

    def params(self) -> Params:
        start = Start()
        with_norm(start, "first", self.widths[0], IMAGES[0])
        for i, (n, m) in enumerate(pairwise(self.widths)):
            with_norm(start, f"single{i}", n, 1)
            with_norm(start, f"across{i}", m, n, 1)
        start.layer("linear", (CLASSES, self.widths[-1]))
        return start.params

    def loss(self, f: Functions, p: Any, x: Any, targets: Any) -> Any:
        x = f.relu(normed(f, p, "first", x))
        for i, n in enumerate(self.widths[:-1]):
            x = f.relu(normed(f, p, f"single{i}", x, 2 if i else 1, groups=n))
            x = f.relu(normed(f, p, f"across{i}", x))
        return classified(f, p, x, targets)


@dataclass(frozen=True)
class UNet(Net):
    """Two convolutions a level on the way down and on the way up, where the level's own channels are joined."""

    widths: tuple[int, ...] = (16, 32, 64)
    size: int = 64
    batch: int = 8
    goal: float = 1.2
    of_images = True

    @property
    def what(self) -> str:
        return f"batch {self.batch} of {self.size}x{self.size}, mse"

    def params(self) -> Params:
        start = Start()
        for i, (n, m) in enumerate(pairwise((1, *self.widths))):
            self._pair(start, f"down{i}", n, m)
        for i, (n, m) in enumerate(pairwise(self.widths)):
            self._pair(start, f"up{i}", n + m, n)
        start.params["last.weight"] = start.uniform((1, self.widths[0], 1, 1), self.widths[0] ** -0.5)
        return start.params

    def _pair(self, start: Start, name: str, inputs: int, outputs: int) -> None:
        for part, n in (("a", inputs), ("b", outputs)):
            start.params[f"{name}.{part}.weight"] = start.uniform((outputs, n, 3, 3), (9 * n) ** -0.5)

    def draw(self, rng: np.random.Generator) -> Batch:
        images, targets = rng.standard_normal((2, self.batch, 1, self.size, self.size), np.float32)
        return images, targets

    def loss(self, f: Functions, p: Any, x: Any, targets: Any) -> Any:
        def pair(name: str, x: Any) -> Any:
            for part in "ab":
                x = f.relu(f.conv(x, p[f"{name}.{part}.weight"]))
            return x

        kept = list[Any]()
        for i in range(len(self.widths)):
            x = pair(f"down{i}", f.max_pool(x) if i else x)
            kept.append(x)
        for i in reversed(range(len(self.widths) - 1)):
            x = pair(f"up{i}", f.joined(kept[i], f.enlarged(x)))
        return f.mse(f.conv(x, p["last.weight"]), targets)


@dataclass(frozen=True)
class Lstm(Net):
    """An LSTM along sequences and a linear layer over its last state."""

    features: int = 64
    hidden: int = 256
    places: int = 50
    batch: int = 32
    goal: float = 1.2

    @property
    def what(self) -> str:
        return f"batch {self.batch} of {self.places} places, cross entropy"

    def params(self) -> Params:
        start, bound, rows = Start(), self.hidden**-0.5, 4 * self.hidden
        for name, columns in (("ih", self.features), ("hh", self.hidden)):
            start.params[f"weight_{name}_l0"] = start.uniform((rows, columns), bound)
            start.params[f"bias_{name}_l0"] = start.uniform((rows,), bound)
        start.layer("linear", (CLASSES, self.hidden))
        return start.params

    def draw(self, rng: np.random.Generator) -> Batch:
        x = rng.standard_normal((self.batch, self.places, self.features), np.float32)
        return x, rng.integers(0, CLASSES, self.batch)

    def loss(self, f: Functions, p: Any, x: Any, targets: Any) -> Any:
        last = f.lstm(x, p)[:, -1]
        return f.cross_entropy(f.linear(last, p["linear.weight"], p["linear.bias"]), targets)


LARGER: dict[str, Model] = {
    "lstm": Lstm(),
    "gpt-4x128": Transformer(symbols=65, tokens=64, width=128, heads=4, hidden=512, blocks=4, batch=16, goal=1.2),
    "gpt-6x384": Transformer(symbols=65, tokens=256, width=384, heads=6, hidden=1536, blocks=6, batch=8, goal=1.2),
    "resnet-20": ResNet(),
    "separable": Separable(),
    "unet": UNet(),
}

NETWORKS = MODELS | LARGER
"""All that steps are measured of."""
