"""An LSTM tags sequences: each character begins a number, continues one, or is outside of numbers.

The example makes texts of different lengths and pads them to the longest. Digits form a number unless a letter follows
directly, so the network has to read in both directions. At padding, a mask keeps the states unchanged, and the loss
ignores it. The network tags at least `ACCURACY` of the characters of new texts correctly; tagging all of them as
outside would be correct for 0.65.
"""

import argparse
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Dataset, Trainer
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

ACCURACY = 0.98
"""Share of the characters of the test texts that are tagged correctly."""

LETTERS, LENGTH, WIDTH = "  ab123", 12, 16
OUTSIDE, OPENS, INSIDE, FILLED = 0, 1, 2, -1
EPOCHS, BATCH, SEED = 5, 50, 0


@dataclass(frozen=True)
class Tagger(nn.Layer):
    """Characters to states, in both directions, and states to tags."""

    letters: nn.Layer
    memory: nn.Layer
    tags: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(batch, letters) to (batch, letters, 3)."""
        seen = self.part("letters", p, x, ctx)
        return self.part("tags", p, self.part("memory", p, seen, ctx, mask=x < len(LETTERS)), ctx)


MODEL = Tagger(
    nn.Embedding(len(LETTERS) + 1, WIDTH),
    nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True),
    nn.Linear(2 * WIDTH, 3),
)


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross entropy of the characters that are not padding, and the share of them tagged correctly."""
    texts, tags = batch
    scores, there = MODEL(p, texts), ops.cast(tags > FILLED, np.float32)
    right = ops.cast(ops.equal(ops.argmax(scores, -1), tags), np.float32)
    loss = ops.cross_entropy(ops.reshape(scores, (-1, 3)), ops.reshape(tags, (-1,)), ignore_index=FILLED)
    return loss, {"accuracy": (right * there).sum() / there.sum()}


def tagged(text: str) -> list[int]:
    """The tag of each character."""
    tags = [OUTSIDE] * len(text)
    for found in re.finditer(r"[123]+(?![ab123])", text):
        tags[found.start() : found.end()] = [OPENS] + [INSIDE] * (found.end() - found.start() - 1)
    return tags


def texts(count: int, seed: int) -> Dataset:
    """Texts as character numbers, and their tags, each padded to the longest."""
    random = Random(Tape().const(0), seed)
    letters = random.integers(0, len(LETTERS), (count, LENGTH)).numpy().copy()
    lengths = random.integers(LENGTH // 2, LENGTH + 1, (count,)).numpy()
    tags = np.full((count, LENGTH), FILLED)
    for row, length in enumerate(lengths):
        letters[row, length:] = len(LETTERS)
        tags[row, :length] = tagged("".join(LETTERS[i] for i in letters[row, :length]))
    return Dataset(letters, tags)


def main() -> None:
    """Make the texts, train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the texts; default: %(default)s")
    parser.add_argument("--trace", default="numbers_lstm.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = texts(2000, seed=1), texts(500, seed=2)
    batches = train.batches(BATCH, seed=SEED)
    trainer = Trainer(loss_fn, MODEL.init(SEED), Adam(lr=1e-2), seed=SEED, trace=args.trace, record="digest")
    print(f"{len(train)} texts to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(batches, epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy'):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
