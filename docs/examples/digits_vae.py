"""A variational autoencoder learns to draw digits: an encoder and a decoder, trained on one loss.

`ctx.random.normal` draws the code, so a replay draws the same one. The weight of the divergence rises with `ctx.step`
from 0 to 1 over the first `RISE` steps: the decoder learns to use the code before the loss pulls the code towards the
normal distribution. At the end a digit costs less than `LOSS` nats, of which its shades of grey alone are 13.6. The
mean of all digits would cost 27.1.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Trainer, data
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

LOSS = 25.0
"""Upper bound of the mean loss of the last epoch, in nats per digit."""

CODE, HIDDEN, RISE = 8, 64, 200
EPOCHS, BATCH, SEED = 20, 32, 0


@dataclass(frozen=True)
class Autoencoder(nn.Layer):
    """Two networks, with parameters under ``encoder.`` and ``decoder.``."""

    encoder: nn.Layer
    decoder: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """The logits of the pixels from a code drawn for them, and the code's mean and log variance."""
        mean, log_variance = ops.split(self.part("encoder", p, x, ctx), 2, axis=1)
        code = mean + (0.5 * log_variance).exp() * ctx.random.normal(mean.shape)
        return self.part("decoder", p, code, ctx), mean, log_variance


MODEL = Autoencoder(
    nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * CODE)),
    nn.Sequential(nn.Linear(CODE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 64)),
)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """The negative evidence lower bound of a digit, in nats; the weight of the divergence rises over the run."""
    pixels, _ = batch
    logits, mean, log_variance = MODEL(p, pixels, ctx)
    missed = 64 * ops.binary_cross_entropy_with_logits(logits, pixels)
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
    return missed + (ops.cast(ctx.step, np.float32) / RISE).clamp(0, 1) * divergence


def drawn(params: Any, count: int) -> str:
    """So many new digits, side by side, from codes of the normal distribution."""
    code = Random(Tape().const(0), SEED).normal((count, CODE))
    pixels = MODEL.part("decoder", params, code, None).sigmoid().numpy()
    rows = pixels.reshape(count, 8, 8).swapaxes(0, 1).reshape(8, -1)
    return "\n".join("".join(2 * " .:*##"[int(5 * shade)] for shade in row) for row in rows)


def main() -> None:
    """Train, draw digits, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the digits; default: %(default)s")
    parser.add_argument("--trace", default="digits_vae.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    train, test = data.digits()
    batches = train.batches(BATCH, seed=SEED)
    trainer = Trainer(loss_fn, MODEL.init(SEED), Adam(lr=3e-3), seed=SEED, trace=args.trace, record="digest")
    print(f"{len(train)} digits to train on, {len(test)} to test\n{MODEL}")
    result = trainer.fit(batches, epochs=args.epochs)
    last = result.losses[-len(batches) :].mean()
    print(f"{result.steps} steps in {result.seconds:.1f} s, mean loss of the last epoch {last:.4f}")
    print(f"loss of test digits {trainer.evaluate(test):.4f}\n{drawn(trainer.params, 7)}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
