"""A cart learns to stop at the middle of a track: Q-learning with a network, a replay memory and a target network.

At each time step the cart pushes left, pushes right or does nothing; the further it is from the middle, the more it
loses. Its actions depend on what it has learned so far, so the batches do not come from a data set but from playing.
To prove the trace, the example plays the game again and gets the same batches, to the bit. At least `SHARE` of the
games that the trained cart plays end at the middle.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Trainer, capture, capture_function
from dgrr.tape import nn, ops
from dgrr.trace import replay

SHARE = 0.95
"""Share of `GAMES` games that end nearer than `NEAR` to the middle."""

GAMES, NEAR = 200, 0.1
TIME, PUSH, GOOD_FOR = 0.1, 1.0, 40
STEPS, BATCH, WIDTH, SEED = 1500, 64, 32, 0
EXPLORED, MEMORY, COPIED_EVERY, DISCOUNT = 0.2, 2000, 50, np.float32(0.95)
COPY = "copy of "
RULE = Adam(lr=3e-3)

MODEL = nn.Sequential(nn.Linear(2, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3))


def loss_fn(p: Any, batch: Any) -> Any:
    """The error of the value of an action: its reward, and the target network's value of the next state."""
    copy = {name: batch[COPY + name] for name in p}
    hoped = batch["brought"] + DISCOUNT * ops.reduce_max(MODEL(copy, batch["after"]), -1)
    return ops.huber_loss((MODEL(p, batch["before"]) * batch["done"]).sum(-1), hoped)


def pushed(state: Any, action: Any) -> tuple[Any, Any]:
    """Positions and speeds one time step later, and their reward."""
    place, speed = state.T
    speed = np.clip(speed + TIME * PUSH * (action - 1), -2, 2)
    after = np.stack([np.clip(place + TIME * speed, -2, 2), speed], -1).astype(np.float32)
    return after, -np.float32(0.2) * (after[:, 0] ** 2 + np.float32(0.1) * after[:, 1] ** 2)


def batches(params: Any) -> Iterator[Any]:
    """The batch of each step; ``params()`` returns the current weights."""
    rng = np.random.default_rng(SEED)
    worth = capture_function(MODEL)
    state: Any = rng.uniform(-1, 1, (BATCH, 2)).astype(np.float32)
    memory: list[dict[str, Any]] = []
    copy: dict[str, Any] = {}
    for step in range(1 << 30):
        if step % COPIED_EVERY == 0:
            copy = {COPY + name: value.copy() for name, value in params().items()}
        chosen = worth(params(), state).argmax(-1)
        action = np.where(rng.random(BATCH) < EXPLORED, rng.integers(0, 3, BATCH), chosen)
        after, brought = pushed(state, action)
        moment = {"before": state, "done": np.eye(3, dtype=np.float32)[action], "brought": brought, "after": after}
        memory = [*memory, moment][-MEMORY // BATCH :]
        over = rng.random((BATCH, 1)) < 1 / GOOD_FOR
        state = np.where(over, rng.uniform(-1, 1, (BATCH, 2)), after).astype(np.float32)
        rows = rng.integers(0, len(memory), BATCH), np.arange(BATCH)
        yield {name: np.stack([each[name] for each in memory])[rows] for name in moment} | copy


def played_again() -> Iterator[Any]:
    """The batches of the run again; asking for the next one takes the step of the last one here too."""
    start = MODEL.init(SEED)
    step = capture(loss_fn, start, RULE, next(batches(lambda: start)))
    for batch in batches(lambda: step.params):
        yield batch
        step(batch)


def at_the_middle(params: Any) -> float:
    """The share of games that end there."""
    state: Any = np.random.default_rng(1).uniform(-1, 1, (GAMES, 2)).astype(np.float32)
    for _ in range(2 * GOOD_FOR):
        state, _ = pushed(state, MODEL(params, state).argmax(-1))
    return float((np.abs(state[:, 0]) < NEAR).mean())


def main() -> None:
    """Play and learn, play without learning, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="default: %(default)s")
    parser.add_argument("--trace", default="cart_dqn.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    trainer = Trainer(loss_fn, MODEL.init(SEED), RULE, seed=SEED, trace=args.trace, record="digest")
    print(f"{MODEL}\nbefore it has learned, {at_the_middle(trainer.params):.2f} of its games end at the middle")
    result = trainer.fit(batches(lambda: trainer.params), steps=args.steps)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    print(f"share of games that end at the middle {at_the_middle(trainer.params):.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=played_again()))


if __name__ == "__main__":
    main()
