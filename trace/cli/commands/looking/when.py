"""``dgrr when``: the first step of a run at which a condition holds."""

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ....exit_codes import Exit
from ...answer import Answer, Fact, done, ended
from ...arguments import MAX_STEPS, UINT64, Parser, UsageError
from ...formats import require_answer
from ...inspection import step_of
from ...loading import guarded, load_rules, load_run, users_code

if TYPE_CHECKING:
    from .....base.errors import NonFiniteError
    from ....replaying.continued import Continuation
    from ....watching.watchpoint import Watchpoint

HELP = """
Find the first step at which a condition holds, and the line of the program.

A condition compares numbers: loss, step, hyperparameters and metrics by name, and absmax, max, min, mean,
norm, zeros, any, all, isnan, isinf and isfinite of a tensor. A tensor is a parameter, a state, a variable of
the loss function, a layer, grad(…) or update(…) of one of these, or node(…), the nodes of an op. Put names
with dots in quotes.

Recorded values are read from the trace. With --model, other values are recomputed. Exit code 4: the condition
never holds.

examples:
  dgrr when run.dgrr 'loss > 10 and step > 100'
  dgrr when run.dgrr 'norm(grad("0.weight")) > 5'
  dgrr when run.dgrr 'absmax(h3) > 50' --model train:run   h3 = ... in the loss function
  dgrr when run.dgrr 'any(isnan(node("*")))' --model train:run   any node
  dgrr when run.dgrr 'absmax(h3) > 50' --model train:run --edit 'h3 = h3 * 0.1'   and train on
"""


def add_arguments(parser: Parser) -> None:
    parser.trace()
    parser.add_argument("condition", metavar="CONDITION", help="condition, such as 'absmax(h) > 50'")
    parser.number("--from", 0, UINT64, "K", "first step to examine; default: 0", dest="first", default=0)
    parser.number("--to", 0, UINT64, "K", "last step to examine; default: the last of the run", dest="last")
    parser.model()
    parser.edits("change a value at the step found, and train on from there")
    parser.number("--steps", 1, MAX_STEPS, "N", "with --edit: number of steps to train; default: to the end of the run")
    parser.rules()
    parser.mode()


def run(args: argparse.Namespace) -> Answer:
    """Go through the steps, and say at which of them the condition holds."""
    require_answer(args, args.path)
    if args.edit and args.model is None:
        raise UsageError("argument --edit: it requires --model, which trains on")
    if args.steps is not None and not args.edit:
        raise UsageError("argument --steps: it requires --edit")
    found = _found(args)
    if found.step is None:
        return ended(Exit.DIVERGED, "never", Fact("watchpoint", found, str(found)), Fact("continued", None))
    continued = _continued(found.step, args) if args.edit else None
    text = "" if continued is None else "\n".join(_lines(continued))
    return done(Fact("watchpoint", found, str(found)), Fact("continued", continued, text))


def _found(args: argparse.Namespace) -> "Watchpoint":
    from ....v2.read.reader import open_reader
    from ....watching.condition import Condition
    from ....watching.when import when  # compiled, and so loaded only where it is needed

    with _of_condition():
        Condition(args.condition)
    with open_reader(args.path, mode="tolerate_tail") as trace:
        last = max(len(trace) - 1, 0) if args.last is None else args.last
        step_of(trace, args.first, "--from")
        step_of(trace, last, "--to")
        if last < args.first:
            raise UsageError(f"argument --to: expected a step from {args.first} on, got {last}")
        loss_fn, batches = (None, None) if args.model is None else load_run(args.model)
        how: dict[str, Any] = {"mode": args.mode or "replay", "rules": load_rules(args.rule), "progress": True}
        with users_code(), _of_condition():
            return when(trace, args.condition, loss_fn, batches, first=args.first, last=last, **how)


def _continued(step: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train on from a step with the edits."""
    from .....base.errors import NonFiniteError
    from ....v2.read.reader import open_reader
    from ...v2 import edited, rebuilt

    args.step = step
    past = rebuilt(args)
    edits = edited(past, args.edit)
    with open_reader(args.path, mode="tolerate_tail") as trace:
        recorded = trace.loss[step:]
    steps: int = args.steps or len(recorded)

    def trained() -> "Continuation | NonFiniteError":
        try:
            return past.continue_with(steps=steps, edits=edits)
        except NonFiniteError as error:
            return error

    made = guarded(f"argument --model: {args.model}: while training", trained)
    error = made if isinstance(made, NonFiniteError) else None
    return {
        "first": step,
        "steps": steps,
        "edits": args.edit,
        "losses": [] if isinstance(made, NonFiniteError) else made.losses,
        "losses_before": recorded[:steps],
        "ended": None if error is None else str(error),
    }


def _lines(continued: dict[str, Any]) -> list[str]:
    """Both curves, and how they end."""
    from .....screen.curves import sparkline
    from .....screen.showing import counted

    steps = counted(continued["steps"], "step")
    lines = [f"{steps} from step {continued['first']} on with {'; '.join(continued['edits'])}:"]
    for name, losses in (("edited", continued["losses"]), ("as recorded", continued["losses_before"])):
        if len(losses):
            lines.append(f"  loss {name:<11}  {losses[0]:.6g} to {losses[-1]:.6g}  {sparkline(losses)}")
    return lines if continued["ended"] is None else [*lines, f"  the edited run ended: {continued['ended']}"]


@contextmanager
def _of_condition() -> Generator[None]:
    """What is wrong with a condition is a wrong command line."""
    from ....watching.expression import ConditionError

    try:
        yield
    except ConditionError as error:
        raise UsageError(f"argument CONDITION: {str(error).removeprefix('condition: ')}") from None
