"""A small transformer learns the Zen of Python, character by character, and recites from it.

The text is the one that ``import this`` prints: it has not changed since 2004, while other texts of the standard
library change from one Python version to the next. The loss falls from 3.8, that of a blind guess, to less than
`LOSS`. The example proves the trace by recomputing every gradient.
"""

import argparse
import codecs
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Dataset, Keep, Trainer
from dgrr.tape import AnyVar, Context, Tape, nn, ops
from dgrr.trace import replay

with redirect_stdout(StringIO()):  # it prints on import
    import this

TEXT = codecs.decode(this.s, "rot13")
ALPHABET = sorted(set(TEXT))
TOKENS, WIDTH = 32, 48
LOSS = 0.25
"""Upper bound of the mean loss of the last epoch, in nats per character."""

EPOCHS, BATCH, SEED = 12, 32, 0


@dataclass(frozen=True)
class Positions(nn.Layer):
    """Adds a learned row for each position in the text; an example of a layer of your own."""

    tokens: int
    size: int

    def own_parameters(self) -> Mapping[str, nn.Parameter]:
        """``weight``."""
        return {"weight": nn.Parameter((self.tokens, self.size), nn.init.normal(std=0.1))}

    def __call__(self, p: Mapping[str, AnyVar], x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, n, size) to the same shape, for n of at most ``tokens``."""
        return x + p["weight"][: x.shape[-2]]


MODEL = nn.Sequential(
    nn.Embedding(len(ALPHABET), WIDTH),
    Positions(TOKENS, WIDTH),
    nn.TransformerBlock(WIDTH, num_heads=4, hidden=96, causal=True),
    nn.TransformerBlock(WIDTH, num_heads=4, hidden=96, causal=True),
    nn.LayerNorm(WIDTH),
    nn.Linear(WIDTH, len(ALPHABET)),
)


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross entropy of the next character."""
    read, following = batch
    return ops.cross_entropy(MODEL(p, read).reshape((-1, len(ALPHABET))), following.reshape((-1,)))


def windows() -> Dataset:
    """Every stretch of the text, and the same one character later."""
    symbols = np.array([ALPHABET.index(character) for character in TEXT])
    stretches = np.lib.stride_tricks.sliding_window_view(symbols, TOKENS + 1)
    return Dataset(stretches[:, :-1], stretches[:, 1:])


def recited(params: Mapping[str, Any], start: str, length: int) -> str:
    """A text continued by so many characters, the likeliest each time."""
    for _ in range(length):
        tape: Tape[Any] = Tape()
        read = np.array([[ALPHABET.index(character) for character in start[-TOKENS:]]])
        logits = MODEL(tape.params(params), tape.const(read)).numpy()
        start += ALPHABET[logits[0, -1].argmax()]
    return start


def main() -> None:
    """Train, recite, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the text; default: %(default)s")
    parser.add_argument("--trace", default="characters.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    text = windows()
    batches = text.batches(BATCH, seed=SEED)
    print(f"{len(text)} stretches of {TOKENS} characters of an alphabet of {len(ALPHABET)}\n{MODEL}")
    trainer = Trainer(
        loss_fn, MODEL.init(SEED), Adam(lr=3e-3), seed=SEED, trace=Keep(args.trace, record="digest", overwrite=True)
    )
    result = trainer.fit(batches, epochs=args.epochs)
    last = result.losses[-len(batches) :].mean()
    print(f"{result.steps} steps in {result.seconds:.1f} s, mean loss of the last epoch {last:.4f}")
    print(recited(trainer.params, TEXT[:TOKENS], 200))
    print(replay(args.trace, loss_fn=loss_fn, batches=text.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
