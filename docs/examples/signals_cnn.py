"""A one-dimensional convolutional network tells noisy sines, squares, saws and chirps apart.

The example makes the signals with dgrr's own random numbers and sine, so data, training and trace have the same bits on
every machine. NumPy does not promise that for its sine and its random generators from one version to the next. The
network reaches a test accuracy of `ACCURACY`.
"""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.runtime import Adam, Dataset, Keep, Trainer
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

Array = npt.NDArray[Any]

ACCURACY = 0.97
"""Accuracy on signals that the network has not seen."""

SAMPLES, NOISE = 96, 0.6
EPOCHS, BATCH, SEED = 8, 32, 0

MODEL = nn.Sequential(
    nn.Conv(1, 12, (7,), padding=3),
    nn.ReLU(),
    nn.MaxPool((4,)),
    nn.Conv(12, 24, (5,), padding=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool((4,)),
    nn.Flatten(),
    nn.Linear(96, 4),
)


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross entropy."""
    signals, labels = batch
    return ops.cross_entropy(MODEL(p, signals), labels)


def signals(count: int, seed: int) -> Dataset:
    """So many noisy signals of each kind, with any frequency and phase."""
    random = Random(Tape().const(0), seed)

    def drawn(*shape: int) -> Array:
        return random.uniform(shape).numpy()

    time = np.arange(SAMPLES, dtype=np.float32) / SAMPLES
    cycles = 2 + 4 * drawn(count, 1)
    turns = cycles * time + drawn(count, 1)
    kinds = [sine(turns), np.sign(sine(turns)), 2 * (turns - np.floor(turns)) - 1, sine(turns + cycles * time * time)]
    noisy = np.concatenate([kind + NOISE * (2 * drawn(count, SAMPLES) - 1) for kind in kinds])
    return Dataset(noisy[:, None], np.repeat(np.arange(len(kinds)), count))


def sine(turns: Array) -> Array:
    """The sine of angles in turns."""
    return ops.sin(Tape().const(2 * np.pi * turns)).numpy()


def main() -> None:
    """Make the signals, train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the signals; default: %(default)s")
    parser.add_argument("--trace", default="signals_cnn.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = signals(300, seed=1), signals(100, seed=2)
    trainer = Trainer(
        loss_fn, MODEL.init(SEED), Adam(lr=3e-3), seed=SEED, trace=Keep(args.trace, record="digest", overwrite=True)
    )
    print(f"{len(train)} signals to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(train.batches(BATCH, seed=SEED), epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy', model=MODEL):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
