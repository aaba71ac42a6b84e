"""A graph convolution finds the communities in a network of people, from four known members of each.

A person's features say only who they are, so the network can learn only from who knows whom. Each layer takes the mean
over a person's acquaintances: a `take` of features along the edges, and an `index_add` at their other ends. The example
makes the graph: people of one community know each other more often. The network finds the community of at least
`ACCURACY` of the others.
"""

import argparse
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Trainer
from dgrr.tape import Random, Tape, nn, ops
from dgrr.trace import replay

ACCURACY = 0.98
"""Share of the others whose community is found."""

COMMUNITIES, EACH, KNOWN, WIDTH = 4, 50, 4, 16
PEOPLE = COMMUNITIES * EACH
WITHIN, ACROSS = 0.2, 0.02
STEPS, SEED = 100, 0


def acquaintances(seed: int) -> Any:
    """Who knows whom, both ways, and everybody themselves: two rows, from and to."""
    chance = Random(Tape().const(0), seed).uniform((PEOPLE, PEOPLE)).numpy()
    community = np.arange(PEOPLE) // EACH
    knows = np.triu(chance < np.where(community[:, None] == community, WITHIN, ACROSS), 1)
    return np.stack(np.nonzero(knows | knows.T | np.eye(PEOPLE, dtype=bool)))


SOURCE, TARGET = acquaintances(seed=1)
WEIGHT = (1 / np.bincount(TARGET, minlength=PEOPLE)).astype(np.float32)[:, None]
LABELS = np.arange(PEOPLE) // EACH
TOLD = np.arange(PEOPLE) % EACH < KNOWN


@dataclass(frozen=True)
class GraphConvolution(nn.Layer):
    """A linear map of the mean over each person's acquaintances; Kipf and Welling (2017), with plain means."""

    linear: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
        """(people, features) to (people, features)."""
        made = self.part("linear", p, x, ctx)
        nobody = np.zeros(made.shape, made.dtype)
        return ops.index_add(nobody, TARGET, ops.take(made, SOURCE, 0)) * WEIGHT


MODEL = nn.Sequential(
    GraphConvolution(nn.Linear(PEOPLE, WIDTH)),
    nn.ReLU(),
    nn.Dropout(0.5),
    GraphConvolution(nn.Linear(WIDTH, COMMUNITIES)),
)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Mean cross entropy of those whose community is known."""
    people, labels = batch
    return ops.cross_entropy(MODEL(p, people, ctx), labels, ignore_index=-1)


def main() -> None:
    """Train on the whole graph, classify the others, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="default: %(default)s")
    parser.add_argument("--trace", default="communities_gcn.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    everybody = np.eye(PEOPLE, dtype=np.float32)
    batch = everybody, np.where(TOLD, LABELS, -1)
    rule = Adam(lr=0.01, weight_decay=5e-4)
    trainer = Trainer(loss_fn, MODEL.init(SEED), rule, seed=SEED, trace=args.trace, record="digest")
    print(f"{PEOPLE} people who know {len(SOURCE) // PEOPLE} others in the mean, {TOLD.sum()} of them told\n{MODEL}")
    result = trainer.fit(repeat(batch), steps=args.steps)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.4f}")
    found = trainer.predict(everybody, model=MODEL, batch=PEOPLE).argmax(-1)
    print(f"test accuracy {(found == LABELS)[~TOLD].mean():.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=repeat(batch)))


if __name__ == "__main__":
    main()
