"""Several processes train digits together, with the bits of one process: ranks, a tree of micro-batches, the proof.

Run it in one process, then in four that share the work (pip install "dgrr[mpi]" mpich); both print the same state:

    python digits_ranks.py
    mpiexec -n 4 python -m dgrr.runtime.ranks digits_ranks.py --ranks
"""

import argparse
from typing import Any

from dgrr.runtime import Adam, Keep, Trainer, data
from dgrr.runtime.ranks import init
from dgrr.tape import nn, ops
from dgrr.trace import replay

ACCURACY = 0.96
"""Accuracy on the test digits."""

SEED, EPOCHS, BATCH, TOGETHER = 0, 20, 16, 8
"""A step has eight micro-batches of 16 digits, on any number of processes."""

MODEL = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross entropy of a micro-batch."""
    images, labels = batch
    return ops.cross_entropy(MODEL(p, images), labels)


def main() -> None:
    """Train, test, and replay the whole run from its trace, in one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over the digits; default: %(default)s")
    parser.add_argument("--trace", default="digits_ranks.dgrr", metavar="PATH", help="default: %(default)s")
    parser.add_argument("--ranks", action="store_true", help="with all processes that mpiexec has started")
    args = parser.parse_args()

    ranks = init() if args.ranks else None
    train, test = data.digits()
    trainer = Trainer(
        loss_fn,
        MODEL.init(SEED),
        Adam(lr=4e-3),
        accumulate=TOGETHER,
        order="tree",
        ranks=ranks,
        trace=Keep(args.trace, record="digest", overwrite=True),
    )
    result = trainer.fit(train.batches(BATCH, seed=SEED), epochs=args.epochs)
    accuracy = trainer.evaluate(test, metric="accuracy", model=MODEL)  # each rank a part of the digits
    if ranks is not None and ranks.rank > 0:
        return
    print(f"{len(train)} digits to train on, {len(test)} to test\n{MODEL}")
    print(f"{result.steps} steps in {result.seconds:.1f} s on {1 if ranks is None else ranks.size} ranks")
    print(f"state {result.state_digest}")
    print(f"test accuracy {accuracy:.4f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=train.batches(BATCH, seed=SEED)))


if __name__ == "__main__":
    main()
