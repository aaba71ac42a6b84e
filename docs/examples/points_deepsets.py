"""Deep sets name the shape on which points lie, whatever the order and number of the points.

One network reads each point alone, the example adds up its outputs, and another network reads the sum. Missing points
have weight 0 in the sum. The example makes the sets: up to 24 points near a circle, a cross or a square, of any place
and size. The network names at least `ACCURACY` of new sets correctly.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Dataset, Trainer
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

ACCURACY = 0.98
"""Share of the test sets that are named correctly."""

POINTS, WIDTH, NOISE = 24, 64, 0.03
EPOCHS, BATCH, SEED = 5, 50, 0


@dataclass(frozen=True)
class DeepSet(nn.Layer):
    """``read(sum of each(x) over the points present)``; Zaheer and others (2017)."""

    each: nn.Layer
    read: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(batch, points, 3), with x, y and 1 if the point is present, else 0, to (batch, classes)."""
        there = x[:, :, 2:]
        seen = self.part("each", p, x[:, :, :2], ctx) * there
        return self.part("read", p, seen.sum(1) / there.sum(1), ctx)


MODEL = DeepSet(
    nn.Sequential(nn.Linear(2, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()),
    nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3)),
)


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross entropy."""
    sets, kinds = batch
    return ops.cross_entropy(MODEL(p, sets), kinds)


def sets(count: int, seed: int) -> Dataset:
    """Sets of points, and their shapes: 0 a circle, 1 a cross, 2 a square."""
    random = Random(Tape().const(0), seed)
    kind = random.integers(0, 3, (count,)).numpy()
    along, side = random.uniform((count, POINTS)).numpy(), random.integers(0, 4, (count, POINTS)).numpy()
    angle, reach = 2 * np.pi * along, 2 * along - 1
    circle = np.stack([np.cos(angle), np.sin(angle)], -1)
    cross = np.where((side < 2)[..., None], np.stack([reach, reach], -1), np.stack([reach, -reach], -1))
    edge = np.where(side % 2 == 0, 1, -1)
    square = np.where((side < 2)[..., None], np.stack([reach, edge], -1), np.stack([edge, reach], -1))
    points = np.choose(kind[:, None, None], [circle, cross, square])
    points = points + random.normal((count, POINTS, 2), std=NOISE).numpy()
    there = np.arange(POINTS) < random.integers(POINTS // 2, POINTS + 1, (count, 1)).numpy()
    return Dataset(np.concatenate([points * there[..., None], there[..., None]], -1).astype(np.float32), kind)


def main() -> None:
    """Make the sets, train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the sets; default: %(default)s")
    parser.add_argument("--trace", default="points_deepsets.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = sets(2000, seed=1), sets(1000, seed=2)
    batches = train.batches(BATCH, seed=SEED)
    trainer = Trainer(loss_fn, MODEL.init(SEED), Adam(lr=5e-3), seed=SEED, trace=args.trace, record="digest")
    print(f"{len(train)} sets to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(batches, epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy', model=MODEL):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
