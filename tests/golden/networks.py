"""Two small networks and their training: what the digests of `bits` see of convolutions, norms, attention and draws."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.runtime import CapturedStep, EagerStep, capture
from dgrr.runtime.data import digits
from dgrr.runtime.optim import Adam
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import nn, ops

Array = npt.NDArray[Any]
Batch = tuple[Array, Array]

STEPS = 20
SEED = 2**33 + 7

CNN = nn.Sequential(
    nn.Conv(1, 4, (3, 3), padding=1),
    nn.BatchNorm(4),
    nn.ReLU(),
    nn.MaxPool((2, 2)),
    nn.Conv(4, 6, (3, 3), padding=1),
    nn.BatchNorm(6),
    nn.ReLU(),
    nn.MaxPool((2, 2)),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(24, 10),
)

SYMBOLS, TOKENS, WIDTH = 17, 21, 12
"""The transformer's: a pixel is one of 17 symbols, and it guesses each of 21 from those before."""

TRANSFORMER = nn.Sequential(
    nn.Dropout(0.1),
    nn.TransformerBlock(WIDTH, 3, 20, dropout=0.1, causal=True),
    nn.LayerNorm(WIDTH),
    nn.Linear(WIDTH, SYMBOLS),
)
EMBEDDING, POSITIONS = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(TOKENS, WIDTH)


def cnn_loss(p: Any, batch: Any, ctx: Any) -> Any:
    images, labels = batch
    return ops.cross_entropy(CNN(p, images.reshape((-1, 1, 8, 8)), ctx), labels), ctx.state


def transformer_loss(p: Any, batch: Any, ctx: Any) -> Any:
    read, expected = batch
    x = ops.embedding(p["embedding"], read) + p["positions"]
    return ops.cross_entropy(TRANSFORMER(p, x, ctx).reshape((-1, SYMBOLS)), expected.reshape((-1,)))


def transformer_params() -> dict[str, Array]:
    tables = {"embedding": EMBEDDING.init(SEED)["weight"], "positions": POSITIONS.init(SEED + 1)["weight"]}
    return {**tables, **TRANSFORMER.init(SEED)}


def sequences() -> Iterator[Batch]:
    """Pixels of a few digits, and those that follow each."""
    for pixels, _ in digits()[0].batches(3, seed=2):
        symbols = (pixels[:, 8 : TOKENS + 9] * 16).astype(np.int64)
        yield symbols[:, :-1], symbols[:, 1:]


@dataclass(frozen=True)
class Network:
    """A network at its start, and what it is trained on."""

    loss_fn: Callable[..., Any]
    draw: Callable[[], dict[str, Array]]
    draw_state: Callable[[], dict[str, Array]]
    every: Callable[[], Iterable[Any]]
    rate: float = 0.01
    seed: int = SEED
    """Of dropout."""

    @cached_property
    def params(self) -> dict[str, Array]:
        """Its parameters, which kernels draw."""
        return self.draw()

    @cached_property
    def model_state(self) -> dict[str, Array]:
        """Its state."""
        return self.draw_state()

    def batches(self) -> list[Batch]:
        """Those of the training."""
        return list(islice(self.every(), STEPS))

    def eager(self) -> EagerStep:
        """The training step, op by op."""
        return EagerStep(self.loss_fn, self.params, Recipe(Adam(self.rate)), self.model_state, self.seed)

    def captured(self) -> CapturedStep:
        """The training step, captured."""
        first = self.batches()[0]
        state = self.model_state
        return capture(self.loss_fn, self.params, Adam(self.rate), first, model_state=state, seed=self.seed)


NETWORKS = {
    "cnn": Network(cnn_loss, lambda: CNN.init(SEED), CNN.init_state, lambda: digits()[0].batches(7, seed=1)),
    "transformer": Network(transformer_loss, transformer_params, dict, sequences),
}
