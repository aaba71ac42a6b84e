"""ResNet-20 learns handwritten digits by stochastic gradient descent, as its paper trains it.

The network has three stages of three blocks, with 16, 32 and 64 channels. A block adds its input to the output of two
convolutions with batch normalisation. A new stage reads every second pixel, and the new channels of its shortcut are
zeros, so shortcuts have no parameters. The network has 269,434 parameters; with three colours it would have 269,722.
The learning rate rises and falls. The last batch of an epoch is left out, because two digits are too few for batch
statistics. The run reaches a test accuracy of `ACCURACY`.
"""

import argparse
from dataclasses import dataclass
from typing import Any

from dgrr.runtime import SGD, Trainer, data
from dgrr.runtime.optim import OneCycle
from dgrr.tape import nn, ops
from dgrr.trace import replay

ACCURACY = 0.98
"""Accuracy on the test digits."""

EPOCHS, BATCH, SEED = 3, 32, 0
WIDTHS, BLOCKS = (16, 32, 64), 3


@dataclass(frozen=True)
class Block(nn.Layer):
    """``relu(path(x) + shortcut(x))``, with the shortcut "A" of He, Zhang, Ren and Sun (2016), section 4.2."""

    path: nn.Layer
    stride: int
    more: int

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(batch, channels, height, width) to the output of the path."""
        short = x[..., :: self.stride, :: self.stride]
        if self.more:
            short = ops.pad(short, ((0, 0), (0, self.more), (0, 0), (0, 0)))
        return ops.relu(self.part("path", p, x, ctx) + short)


def convolution(channels: int, out: int, stride: int = 1) -> nn.Sequential:
    """A 3 by 3 convolution with batch normalisation."""
    return nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False) >> nn.BatchNorm(out)


def block(channels: int, out: int, stride: int) -> Block:
    """Two convolutions, the first with a stride."""
    return Block(convolution(channels, out, stride) >> nn.ReLU() >> convolution(out, out), stride, out - channels)


def stages() -> list[Block]:
    """All blocks; every stage except the first begins with a stride."""
    made, channels = list[Block](), WIDTHS[0]
    for out in WIDTHS:
        for _ in range(BLOCKS):
            made.append(block(channels, out, 1 if channels == out else 2))
            channels = out
    return made


MODEL = nn.Sequential(
    nn.Unflatten(1, (1, 8, 8)),
    convolution(1, WIDTHS[0]),
    nn.ReLU(),
    *stages(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(WIDTHS[-1], 10),
)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Mean cross entropy, and the running statistics after this step."""
    images, labels = batch
    return ops.cross_entropy(MODEL(p, images, ctx), labels), ctx.state


def main() -> None:
    """Train, test, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the digits; default: %(default)s")
    parser.add_argument("--trace", default="digits_resnet.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = data.digits()
    batches = train.batches(BATCH, seed=SEED, drop_last=True)
    steps = args.epochs * len(batches)
    rule = SGD(OneCycle(0.1, steps), momentum=0.9, weight_decay=1e-4)
    trainer = Trainer(
        loss_fn,
        MODEL.init(SEED),
        rule,
        model_state=MODEL.init_state(),
        seed=SEED,
        trace=args.trace,
        record="digest",
    )
    count = sum(array.size for array in trainer.params.values())
    print(f"{len(train)} digits to train on, {len(test)} to test; {count} parameters")
    result = trainer.fit(batches, epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"test accuracy {trainer.evaluate(test, metric='accuracy', model=MODEL):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED, drop_last=True)))


if __name__ == "__main__":
    main()
