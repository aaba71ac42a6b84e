"""Two networks play against each other: one makes points of a mixture, the other tells them from real points.

Each player is a captured step with its own parameters, optimizer and trace. The batch of its step is the current
parameters of the other player; the loss draws the real points and the noise. So the proof of a player needs the moves
of the other, and the example plays the game again, to the bit. At the end, at least `SHARE` of the generator's points
lie at one of the eight centres, and each centre has points.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from dgrr.runtime import Adam, CapturedStep, capture
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import CompletedStep, Keep, TraceRecorder, open_recorder, replay

SHARE = 0.8
"""Share of the generator's points that lie nearer than `NEAR` to a centre."""

CENTRES: Any = np.array(
    [(1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7)], np.float32
)
NEAR, SPREAD = 0.2, 0.05
STEPS, BATCH, WIDTH = 1200, 128, 32
REAL, MADE = 1.0, 0.0
RULE = Adam(lr=3e-3, betas=(0.0, 0.999))

GENERATOR = nn.Sequential(nn.Linear(2, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
DISCRIMINATOR = nn.Sequential(
    nn.Linear(2, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, 1)
)


def made(generator: Any, random: Random, count: int) -> Any:
    """So many points of the generator."""
    return GENERATOR(generator, random.normal((count, 2)))


def real(random: Random, count: int) -> Any:
    """So many points of the mixture."""
    centres = ops.take(CENTRES, random.integers(0, len(CENTRES), (count,)), 0)
    return centres + random.normal((count, 2), std=SPREAD)


def judged(discriminator: Any, points: Any, truth: Any) -> Any:
    """The loss of the discriminator's judgement of points, given the truth."""
    return ops.binary_cross_entropy_with_logits(DISCRIMINATOR(discriminator, points), truth)


def discriminator_loss(p: Any, generator: Any, ctx: Any) -> Any:
    """The discriminator's loss: how badly it tells real points from made ones."""
    fakes, points = made(generator, ctx.random, BATCH), real(ctx.random, BATCH)
    return judged(p, points, REAL) + judged(p, fakes, MADE)


def generator_loss(p: Any, discriminator: Any, ctx: Any) -> Any:
    """The generator's loss: how well the discriminator finds its points out."""
    return judged(discriminator, made(p, ctx.random, BATCH), REAL)


def players() -> tuple[CapturedStep, CapturedStep]:
    """The discriminator and the generator before the game."""
    discriminator, generator = DISCRIMINATOR.init(4), GENERATOR.init(5)
    return (
        capture(discriminator_loss, discriminator, RULE, generator, seed=0),
        capture(generator_loss, generator, RULE, discriminator, seed=1),
    )


def moves(discriminator: CapturedStep, generator: CapturedStep) -> Iterator[tuple[CapturedStep, Any]]:
    """The players take turns: who took each step, and on what batch."""
    while True:
        for mover, other in ((discriminator, generator), (generator, discriminator)):
            mover(other.params)
            yield mover, other.params


def recorder(player: CapturedStep, path: Path) -> TraceRecorder:
    """The trace of a player before its first step."""
    return open_recorder(Keep(path, record="digest"), player.as_run())


def record(trace: TraceRecorder, player: CapturedStep, batch: Any) -> None:
    """Record the step that a player has just taken."""
    hyper = RULE.hyperparameters(trace.steps + 1)
    arrays = {"grads": player.consumed, "params": player.params, "state": player.state, "batch": batch}
    trace.step(CompletedStep(step=trace.steps, loss=player.loss, hyper=hyper, **arrays))


def nearby(generator: Any, count: int) -> Any:
    """How many of the generator's points lie near each centre."""
    points = made(generator, Random(Tape().const(0), seed=2), count).numpy()
    distances = np.sqrt(((points[:, None] - CENTRES) ** 2).sum(axis=2))
    nearest = distances.argmin(axis=1)
    return np.bincount(nearest[distances.min(axis=1) < NEAR], minlength=len(CENTRES))


def main() -> None:
    """Play, look at the points, and prove the traces of both players."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="of each player; default: %(default)s")
    parser.add_argument("--trace", default="generator.dgrr", metavar="PATH", help="default: %(default)s")
    parser.add_argument("--opponent", default="discriminator.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    print(f"the generator\n{GENERATOR}\nagainst the discriminator\n{DISCRIMINATOR}")
    began, (discriminator, generator) = perf_counter(), players()
    with recorder(discriminator, args.opponent) as first, recorder(generator, args.trace) as second:
        for player, batch in islice(moves(discriminator, generator), 2 * args.steps):
            record(first if player is discriminator else second, player, batch)
    print(f"{args.steps} steps in {perf_counter() - began:.1f} s")
    points = nearby(generator.params, 1000)
    print(f"points at each centre: {points}\nshare of points at a centre {points.sum() / 1000:.4f}")
    for path, loss_fn, place in ((args.opponent, discriminator_loss, 0), (args.trace, generator_loss, 1)):
        batches = (batch for _, batch in moves(*players()))
        print(replay(path, loss_fn=loss_fn, batches=islice(batches, place, None, 2)))


if __name__ == "__main__":
    main()
