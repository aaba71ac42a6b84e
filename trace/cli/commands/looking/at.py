"""``dgrr at``: the tape of a past step, as a table, as the path from a node to the loss, or as a graph."""

import argparse
import os
from typing import TYPE_CHECKING

from .....base.errors import DgrrError
from ...answer import Answer, Fact, done, untold
from ...arguments import DEFAULT, UINT32, Parser, UsageError, path
from ...formats import require_answer

if TYPE_CHECKING:
    from .....tape.values.tables import PlainTable
    from ....replaying.travel import PastStep

HELP = """
Rebuild a step, with every value and gradient, to the bit.

examples:
  dgrr at run.dgrr --step 100 --model train:run                      a table of all nodes
  dgrr at run.dgrr --step 100 --model train:run --explain 0.weight   from a weight to the loss
  dgrr at run.dgrr --step 100 --model train:run --save before.safetensors   save the weights before it
"""


def add_arguments(parser: Parser) -> None:
    parser.trace()
    parser.step("step to rebuild, from 0", required=True)
    parser.model(required=True)
    parser.rules()
    parser.mode()
    views = parser.add_mutually_exclusive_group()
    views.add_argument("--table", action="store_true", help="show every node, its value and its gradient (the default)")
    explain = "show the path from a node, given by name or number, to the loss"
    views.add_argument("--explain", metavar="NAME", help=explain)
    views.add_argument("--dot", action="store_true", help="print the graph in the DOT language")
    which = f"micro-batch of the step, from 0; {DEFAULT}"
    parser.number("--micro-batch", 0, UINT32, "I", which, default=0)
    save = "write the weights before step K, with the model's state, to this new safetensors file"
    parser.add_argument("--save", type=path, metavar="PATH", help=save)


def run(args: argparse.Namespace) -> Answer:
    """Rebuild a step, save the weights before it if asked, and show it."""
    require_answer(args, args.path)
    from ...v2 import rebuilt

    if args.save is not None and os.path.lexists(args.save):
        raise UsageError(f"argument --save: {args.save} already exists")
    past = rebuilt(args)
    place: int = args.micro_batch
    if place >= len(past.passes):
        expected = f"expected 0 to {len(past.passes) - 1}, got {place}"
        raise UsageError(f"argument --micro-batch: {expected}: step {past.step} has {len(past.passes)} of them")
    made = past.passes[place]
    dot = made.tape.to_dot(made.dense) if args.dot else None
    table = _table(past, place, args.explain) if dot is None else None
    _save(past, args.save)
    facts = [
        Fact("step", past.step, f"{past.path}: step {past.step}, {_rebuilt(past)}"),
        *untold(keyframe=past.keyframe, loss=past.loss, micro_batches=len(past.passes)),
        Fact("saved", args.save, f"{args.save}: the weights before step {past.step}" if args.save else ""),
        Fact("title", None if table is None else table.title),
        Fact("rows", [] if table is None else table.to_dicts(), "" if table is None else table.to_string()),
    ]
    if dot is not None:  # which is read by a program, and stands alone
        facts = [fact._replace(text="") for fact in facts]
    return done(*facts, Fact("dot", dot, dot or ""))


def _rebuilt(past: "PastStep") -> str:
    return f"loss {past.loss!s}, rebuilt from the state before step {past.keyframe}"


def _table(past: "PastStep", place: int, explain: str | None) -> "PlainTable":
    from .....tape import TapeError

    if explain is None:
        return past.table(place)
    made = past.passes[place]
    node: str | int = int(explain) if explain.isdecimal() else explain
    try:
        return made.tape.explain(node, made.dense)
    except TapeError as error:
        raise UsageError(f"argument --explain: {error}") from error


def _save(past: "PastStep", path: str | None) -> None:
    from .....tape import nn

    if path is None:
        return
    try:
        nn.save(path, past.params, past.model_state)
    except (DgrrError, ModuleNotFoundError) as error:
        raise UsageError(f"argument --save: {error}") from error
