"""``dgrr train``."""

import argparse
import time

from ....exit_codes import Exit
from ...answer import Answer, Fact, done, ended, untold
from ...arguments import DEFAULT, INT64, MAX_STEPS, TRACE, UINT64, Parser, learning_rate, path

HELP = """
Train the scalar linear model and record it in a version 1 trace.

examples:
  dgrr train --steps 1000 --out run.dgrr
"""


def add_arguments(parser: Parser) -> None:
    parser.number("--steps", 0, MAX_STEPS, "N", f"number of steps; {DEFAULT}", default=100)
    parser.add_argument("--lr", type=learning_rate, default=0.01, metavar="FLOAT", help=f"learning rate; {DEFAULT}")
    parser.number("--seed", 0, UINT64, "UINT64", f"seed of the data; {DEFAULT}", default=42)
    parser.add_argument(
        "--out", dest="path", type=path, default=TRACE, metavar="PATH", help=f"trace to write; {DEFAULT}"
    )
    created = "creation time to record, in seconds since 1970; default: now"
    parser.number("--created-at", -INT64 - 1, INT64, "UNIX", created)


def run(args: argparse.Namespace) -> Answer:
    """Codes: OK; DIVERGED where a value was not finite, with the steps before it in the trace; IO."""
    from ....v1.report import about, losses, table, three_ways
    from ....v1.train import attempted_step, train
    from ....v1.writer import WriterV1

    out, lr, seed = args.path, args.lr, args.seed
    created_at = int(time.time()) if args.created_at is None else args.created_at
    with WriterV1(out, seed, lr, created_at) as writer:
        trained = train(writer, args.steps, lr, seed)
        writer.seal()
    count, total = trained.step_count, trained.loss_total
    rows = [("w", three_ways(trained.w)), ("b", three_ways(trained.b)), ("loss", losses(total, count))]
    head = Fact("steps", count, f"{out}: {about(count, seed, lr)}\n{table(rows)}")
    facts = [head, *untold(seed=seed, learning_rate=lr, w=trained.w, b=trained.b, loss_total=total)]
    if count == args.steps:
        return done(*facts)
    values = attempted_step(trained, lr, seed)
    named = ", ".join(f"{name} is {value!r}" for name, value in values.items() if value - value != 0)
    kept = f"{out} holds the steps before it; try a smaller --lr"
    error = f"training stopped: step {count} is not finite ({named}); {kept}"
    return ended(Exit.DIVERGED, "diverged", *facts, error=error)
