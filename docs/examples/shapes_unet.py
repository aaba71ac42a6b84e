"""A U-Net finds discs in noise: it classifies every pixel of an image as inside or outside a disc.

It goes two levels down by pooling and two levels up again, and joins the output of each level on the way down to the
input of the same level on the way up. The example makes the images: discs of any place and size, as bright as the noise
around them is strong. The network classifies at least `ACCURACY` of the pixels of new images correctly; calling all of
them background would be correct for 0.8.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Dataset, Trainer
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

ACCURACY = 0.97
"""Share of the pixels of the test images that are classified correctly."""

SIZE, WIDTH = 16, 8
EPOCHS, BATCH, SEED = 6, 25, 0


def convolutions(channels: int, out: int) -> nn.Layer:
    """Two convolutions that keep height and width."""
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(), nn.Conv2d(out, out, 3, padding=1), nn.ReLU()
    )


@dataclass(frozen=True)
class Level(nn.Layer):
    """One level and all below it; Ronneberger, Fischer and Brox (2015)."""

    down: nn.Layer
    below: nn.Layer
    up: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(batch, channels, height, width) to as many channels as the way down has."""
        seen = self.part("down", p, x, ctx)
        back = self.part("below", p, seen, ctx)
        return self.part("up", p, ops.concat([seen, back], axis=1), ctx)


def level(channels: int, width: int, depth: int) -> nn.Layer:
    """A U-Net of so many levels, each with twice the channels of the one above."""
    if depth == 0:
        return convolutions(channels, width)
    below = nn.Sequential(nn.MaxPool2d(2), level(width, 2 * width, depth - 1), nn.UpsampleNearest((2, 2)))
    return Level(convolutions(channels, width), below, convolutions(3 * width, width))


MODEL = nn.Sequential(nn.Unflatten(1, (1, SIZE)), level(1, WIDTH, 2), nn.Conv2d(WIDTH, 1, 1))


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross entropy over pixels, and the share of pixels classified correctly."""
    images, inside = batch
    scores = MODEL(p, images)[:, 0]
    right = ops.equal(scores > 0.0, inside > 0.5)
    return ops.binary_cross_entropy_with_logits(scores, inside), {"accuracy": ops.cast(right, np.float32).mean()}


def discs(count: int, seed: int) -> Dataset:
    """Images with one disc each, and their masks: 1 inside, 0 outside."""
    random = Random(Tape().const(0), seed)
    row, column, radius, noise = (
        random.uniform((count, *shape)).numpy() for shape in ((1, 1), (1, 1), (1, 1), (SIZE, SIZE))
    )
    places = np.arange(SIZE, dtype=np.float32)
    distance = (places[:, None] - 4 - 8 * row) ** 2 + (places - 4 - 8 * column) ** 2
    inside = (distance < (2 + 3 * radius) ** 2).astype(np.float32)
    return Dataset(inside + 2 * noise - 1, inside)


def main() -> None:
    """Make the images, train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the images; default: %(default)s")
    parser.add_argument("--trace", default="shapes_unet.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = discs(500, seed=1), discs(200, seed=2)
    batches = train.batches(BATCH, seed=SEED)
    trainer = Trainer(loss_fn, MODEL.init(SEED), Adam(lr=5e-3), seed=SEED, trace=args.trace, record="digest")
    print(f"{len(train)} images to train on, {len(test)} to test")
    result = trainer.fit(batches, epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy'):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
