"""A handwritten gated recurrent unit learns to add two marked numbers of a sequence.

Each step reads a number and a mark, and the network adds the numbers of the two marked steps. The cell is one layer
with one set of weights. A scan applies it at every step, so the captured step contains it only once. Answering 1 every
time has a mean squared error of 0.17; in the last epoch, that of the cell is less than `LOSS`.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Dataset, Trainer
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

LOSS = 0.002
"""Upper bound of the mean loss of the last epoch."""

LENGTH, HIDDEN = 12, 32
EPOCHS, BATCH, SEED = 8, 50, 0


@dataclass(frozen=True)
class GRU(nn.Layer):
    """A gated recurrent unit, and a linear map of its last state."""

    read: nn.Layer
    recur: nn.Layer
    answer: nn.Layer

    def step(self, p: Any, x: Any, state: Any, ctx: Any) -> Any:
        """The state after one more input; Cho and others (2014), with the gates of PyTorch."""
        reset_x, keep_x, new_x = ops.split(self.part("read", p, x, ctx), 3, axis=1)
        reset_h, keep_h, new_h = ops.split(self.part("recur", p, state, ctx), 3, axis=1)
        keep = (keep_x + keep_h).sigmoid()
        new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
        return (1 - keep) * new + keep * state

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(batch, steps, inputs) to (batch, 1)."""
        start = np.zeros((x.shape[0], HIDDEN), x.dtype)
        state, _ = ops.scan(lambda h, x: (self.step(p, x, h, ctx), None), start, ops.swapaxes(x, 0, 1))
        return self.part("answer", p, state, ctx)


MODEL = GRU(nn.Linear(2, 3 * HIDDEN), nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, 1))


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean of the squared errors."""
    sequences, sums = batch
    return ops.mse_loss(MODEL(p, sequences)[:, 0], sums)


def sequences(count: int, seed: int) -> Dataset:
    """Numbers from [0, 1), each with a mark, 0 or 1, and the sum of the two that are marked."""
    random = Random(Tape().const(0), seed)
    numbers = random.uniform((count, LENGTH)).numpy()
    marks = np.zeros_like(numbers)
    half = LENGTH // 2
    for low, high in ((0, half), (half, LENGTH)):
        marks[np.arange(count), random.integers(low, high, (count,)).numpy()] = 1
    return Dataset(np.stack([numbers, marks], axis=2), (numbers * marks).sum(1))


def main() -> None:
    """Make the sequences, train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the sequences; default: %(default)s")
    parser.add_argument("--trace", default="adding_gru.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = sequences(2000, seed=1), sequences(500, seed=2)
    batches = train.batches(BATCH, seed=SEED)
    trainer = Trainer(loss_fn, MODEL.init(SEED), Adam(lr=1e-2), seed=SEED, trace=args.trace, record="digest")
    print(f"{len(train)} sequences of {LENGTH} numbers to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(batches, epochs=args.epochs)
    last = result.losses[-len(batches) :].mean()
    print(f"{result.steps} steps in {result.seconds:.1f} s, mean loss of the last epoch {last:.4f}")
    print(f"loss of test sequences {trainer.evaluate(test):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
