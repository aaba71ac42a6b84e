"""A convolutional network learns handwritten digits; its training is recorded and proven to the last bit.

Batch normalisation keeps running statistics, which the trace records. Dropout draws random numbers, which follow from
seed and step. So the run can be recomputed from its beginning. It reaches a test accuracy of `ACCURACY`, with the same
digest on every machine.
"""

import argparse
from typing import Any

from dgrr.runtime import Adam, Dataset, Keep, Trainer, data
from dgrr.tape import nn, ops
from dgrr.trace import replay

ACCURACY = 0.985
"""Accuracy on the test digits."""

EPOCHS, BATCH, SEED = 8, 32, 0

MODEL = nn.Sequential(
    nn.Conv(1, 16, (3, 3), padding=1, bias=False),
    nn.BatchNorm(16),
    nn.ReLU(),
    nn.MaxPool((2, 2)),
    nn.Conv(16, 32, (3, 3), padding=1, bias=False),
    nn.BatchNorm(32),
    nn.ReLU(),
    nn.MaxPool((2, 2)),
    nn.Flatten(),
    nn.Dropout(0.25),
    nn.Linear(128, 10),
)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Mean cross entropy, and the running statistics after this step."""
    images, labels = batch
    return ops.cross_entropy(MODEL(p, images, ctx), labels), ctx.state


def as_images(digits: Dataset) -> Dataset:
    """The digits' 64 pixels as images of one channel."""
    pixels, labels = digits.arrays
    return Dataset(pixels.reshape(-1, 1, 8, 8), labels)


def main() -> None:
    """Train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the digits; default: %(default)s")
    parser.add_argument("--trace", default="digits_cnn.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = map(as_images, data.digits())
    trainer = Trainer(
        loss_fn,
        MODEL.init(SEED),
        Adam(lr=2e-3),
        model_state=MODEL.init_state(),
        seed=SEED,
        trace=Keep(args.trace, record="digest", overwrite=True),
    )
    print(f"{len(train)} digits to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(train.batches(BATCH, seed=SEED), epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy', model=MODEL):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
