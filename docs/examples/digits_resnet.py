"""A residual network learns handwritten digits by stochastic gradient descent, as such networks are trained.

Two blocks of two convolutions with batch normalisation; what a block reads is added to what it computes, through a
convolution of one pixel where the number of channels changes. The step size falls along a cosine. The last batch of
an epoch is left out, since two digits are too few to normalise by. It reaches a test accuracy of `ACCURACY`.
"""

import argparse
from dataclasses import dataclass
from typing import Any

from dgrr.runtime import SGD, Trainer, data
from dgrr.runtime.optim import Cosine
from dgrr.tape import nn, ops
from dgrr.trace import replay

ACCURACY = 0.99
"""What the run reaches on the test digits."""

EPOCHS, BATCH, SEED = 8, 32, 0


@dataclass(frozen=True)
class Block(nn.Layer):
    """``relu(path(x) + shortcut(x))``; He, Zhang, Ren and Sun (2016)."""

    path: nn.Layer
    shortcut: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(batch, channels, height, width) to what the path makes of it."""
        return ops.relu(self.part("path", p, x, ctx) + self.part("shortcut", p, x, ctx))


def block(channels: int, out: int, stride: int = 1) -> Block:
    """Two convolutions, the first with a stride; the shortcut is what is needed for the same shape."""
    path = nn.Sequential(
        nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm(out),
        nn.ReLU(),
        nn.Conv2d(out, out, 3, padding=1, bias=False),
        nn.BatchNorm(out),
    )
    if channels == out and stride == 1:
        return Block(path, nn.Sequential())
    return Block(path, nn.Conv2d(channels, out, 1, stride=stride, bias=False) >> nn.BatchNorm(out))


MODEL = nn.Sequential(
    nn.Unflatten(1, (1, 8, 8)),
    nn.Conv2d(1, 16, 3, padding=1, bias=False),
    nn.BatchNorm(16),
    nn.ReLU(),
    block(16, 16),
    block(16, 32, stride=2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(32, 10),
)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Mean cross entropy, and the running statistics after this step."""
    images, labels = batch
    return ops.cross_entropy(MODEL(p, images, ctx), labels), ctx.state


def main() -> None:
    """Train, test, and compute the whole run again from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the digits; default: %(default)s")
    parser.add_argument("--trace", default="digits_resnet.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = data.digits()
    batches = train.batches(BATCH, seed=SEED, drop_last=True)
    steps = args.epochs * len(batches)
    rule = SGD(Cosine(0.1, steps), momentum=0.9, nesterov=True, weight_decay=5e-4)
    trainer = Trainer(
        loss_fn,
        MODEL.init(SEED),
        rule,
        model_state=MODEL.init_state(),
        seed=SEED,
        trace=args.trace,
        record="digest",
    )
    print(f"{len(train)} digits to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(batches, epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy', model=MODEL):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED, drop_last=True)))


if __name__ == "__main__":
    main()
