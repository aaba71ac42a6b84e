"""A network learns the solution of a differential equation from the equation alone: a physics-informed network.

The equation is Poisson's on a line, u'' = -pi**2 * sin(pi * x) with u(0) = u(1) = 0, whose solution is sin(pi * x).
The network is u. Its second derivative in x is a derivative along 1 of a derivative along 1: `jvp` of `jvp`. The loss
measures how far u'' is from the equation at `POINTS` points, and u from 0 at the ends. Its gradient with respect to the
parameters is a third derivative. At the end, u is within `ERROR` of the solution everywhere.
"""

import argparse
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Trainer
from dgrr.runtime.optim import Cosine
from dgrr.tape import Tape, jvp, nn, ops
from dgrr.trace import replay

ERROR = 0.001
"""Upper bound of the largest error."""

POINTS, WIDTH = 64, 32
EPOCHS, SEED = 500, 0

MODEL = nn.Sequential(nn.Linear(1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
INSIDE = ((np.arange(POINTS, dtype=np.float32) + 0.5) / POINTS)[:, None]
ENDS = np.array([[0], [1]], np.float32)


def derivative(u: Any) -> Any:
    """du/dx for a function of one column, row by row."""
    return lambda x: jvp(u, (x,), (np.ones(x.shape, x.dtype),))[1]


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean squared residual of the equation inside, and of u at the ends."""

    def u(x: Any) -> Any:
        return MODEL(p, x)

    inside, ends = batch
    missing = derivative(derivative(u))(inside) + np.pi**2 * ops.sin(np.pi * inside)
    return (missing**2).mean() + 10 * (u(ends) ** 2).mean()


def largest_error(params: Any) -> float:
    """The largest distance of u from the solution, at points between those of the training."""
    x = np.linspace(0, 1, 10 * POINTS + 1, dtype=np.float32)[:, None]
    u = MODEL(params, Tape().const(x)).numpy()
    return float(np.abs(u - np.sin(np.pi * x)).max())


def main() -> None:
    """Train, measure the error, and replay the whole run from its trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="steps on all points; default: %(default)s")
    parser.add_argument("--trace", default="poisson_pinn.dgrr", metavar="PATH", help="default: %(default)s")
    args = parser.parse_args()

    batches = [(INSIDE, ENDS)]
    rule = Adam(lr=Cosine(1e-2, args.epochs))
    trainer = Trainer(loss_fn, MODEL.init(SEED), rule, seed=SEED, trace=args.trace, record="digest")
    print(f"{POINTS} points of an equation\n{MODEL}")
    result = trainer.fit(batches, epochs=args.epochs)
    print(f"{result.steps} steps in {result.seconds:.1f} s, last loss {result.losses[-1]:.6f}")
    print(f"largest error {largest_error(trainer.params):.5f}")
    print(replay(args.trace, loss_fn=loss_fn, batches=batches))


if __name__ == "__main__":
    main()
