"""``dgrr export``: a table of the steps, the weights before one of them, a library or a judge, for other programs."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .....base.errors import DgrrError
from ....exit_codes import Exit
from ....file_version import TraceFileError
from ...answer import Answer, Fact, done, failed, untold
from ...arguments import FUNCTION, Parser, UsageError, path
from ...formats import require_answer
from ...loading import called, current_folder, described, load_rules, load_run

if TYPE_CHECKING:
    from ....exporting.tables import Form
    from ....v2.read.reader import TraceReader

TARGET = "x86-64-v3"
"""For which machine a library is made where none is named."""

TABLE = ({"PATH", "--format", "--form", "--step", "--model", "--rule", "--mode"}, ("PATH", "--format"))
"""The options that go with a trace as a table or weights, and those that are required."""

KINDS = {
    "--library": ({"--library", "--target", "--name"}, ()),
    "--judge": ({"--judge", "--target", "--model", "--rule"}, ("--model",)),
}
"""The same of what else can be written, by the option that asks for it."""

OPTIONS = ("PATH", "--format", "--form", "--step", "--model", "--rule", "--mode", *KINDS, "--target", "--name")

HELP = """
Write a trace as a table, weights or a judge in C, or write a model as a C library.

Modules are those of the current folder and the installed ones.

examples:
  dgrr export run.dgrr --format csv -o run.csv   a row for each step: loss, rate and so on
  dgrr export run.dgrr --format parquet --form long -o run.parquet   norms of every gradient
  dgrr export run.dgrr --format tensorboard -o runs/first   tensorboard --logdir runs
  dgrr export run.dgrr --format safetensors --step 100 -o before100.safetensors
  dgrr export --library train:predict --target aarch64,wasm32 -o library   the function that predict() returns
  dgrr export --judge run.dgrr --model train:run -o judge   a C program that recomputes run.dgrr
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("path", type=path, nargs="?", metavar="PATH", help="the trace")
    parser.set_defaults(paths_of=_paths)
    formats = ("csv", "json", "parquet", "tensorboard", "safetensors")
    format = "a table of the steps, or, as safetensors, the weights before one of them"
    parser.add_argument("--format", choices=formats, help=format)
    parser.new_file("write this new file; tensorboard, --library and --judge write a new folder", required=True)
    form = "wide: a row for each step; long: a row for each number of each tensor; default: wide"
    parser.add_argument("--form", choices=("wide", "long"), help=form)
    parser.step("with safetensors: the weights before step K, from 0; default: those after the last step")
    parser.model("function that returns (loss_fn, batches); --judge needs it, safetensors if no gradients are recorded")
    parser.rules()
    parser.mode()
    library = "write the captured function or step that this function returns as a C library"
    parser.add_argument("--library", metavar=FUNCTION, help=library)
    judge = "write a C program that recomputes this trace and compares every step"
    parser.add_argument("--judge", type=path, metavar="TRACE", help=judge)
    parser.add_argument("--target", metavar="NAME,…", help=f"machines for --library and --judge; default: {TARGET}")
    parser.add_argument("--name", help="prefix of the C functions of --library; default: the name of the function")


def _paths(args: argparse.Namespace) -> list[str]:
    """The trace, unless a library is made: what is missing or too much is said here."""
    given = {name: _or_none(getattr(args, name.strip("-").lower())) for name in OPTIONS}
    kind = next((name for name in KINDS if given[name] is not None), "")
    takes, needs = KINDS.get(kind, TABLE)
    if missing := [name for name in needs if given[name] is None]:
        args.parser.error(f"the following arguments are required: {', '.join(missing)}")
    if wrong := [name for name, value in given.items() if value is not None and name not in takes]:
        if kind:
            args.parser.error(f"argument {kind}: {wrong[0]} cannot be used with it")
        args.parser.error(f"argument {wrong[0]}: it needs {' or '.join(k for k in KINDS if wrong[0] in KINDS[k][0])}")
    return [path for path in (args.path, args.judge) if path is not None]


def _or_none(value: Any) -> Any:
    """None for an option that was not given."""
    return None if value == [] else value


def run(args: argparse.Namespace) -> Answer:
    """Write a library; or a table or weights, and say what is missing of a trace that is not whole."""
    if args.library is not None:
        return _library(args)
    if args.judge is not None:
        return _judge(args)
    require_answer(args, args.path)
    from ....v2.read.reader import open_reader

    weights = args.format == "safetensors"
    for option in ("form",) if weights else ("step", "model", "mode", "rule"):
        if getattr(args, option) not in (None, []):
            wrong = "it is not for" if weights else "it goes with"
            args.parser.error(f"argument --{option}: {wrong} --format safetensors")
    if os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} is there already")
    try:
        with open_reader(args.path, mode="tolerate_tail") as trace:
            answer = _weights(trace, args) if weights else _table(trace, args)
            return answer if answer.error else replace(answer, error=_missing(trace))
    except ModuleNotFoundError as error:
        raise UsageError(f"argument --format: {error}") from None


def _library(args: argparse.Namespace) -> Answer:
    from .....runtime import export_library

    if os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} is there already")
    captured = called("--library", args.library)
    if not hasattr(captured, "library_source"):
        expected = "expected what dgrr.runtime.capture_function or capture makes"
        raise UsageError(f"argument --library: {args.library}(): {expected}, got {described(captured)}")
    name = args.name or args.library.rpartition(":")[2].rpartition(".")[2]
    try:
        made = export_library(captured, args.out, target=(args.target or TARGET).split(","), name=name)
    except DgrrError as error:
        raise UsageError(str(error)) from error
    lines = [f"{library.object}: {library.nbytes:,} bytes for {target}" for target, library in made.items()]
    facts = Fact("format", "library"), Fact("written", args.out, "\n".join(lines))
    return done(*facts, *untold(form=None, step=None))


def _judge(args: argparse.Namespace) -> Answer:
    from ....judging import command, write_judge

    if os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} is there already")
    loss_fn, batches = load_run(args.model)
    rules = load_rules(args.rule)
    try:
        parent = Path(args.out).parent
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=parent) as begun, current_folder():  # where the model may import more
            folder = Path(begun, "judge")
            targets = (args.target or TARGET).split(",")
            made = write_judge(args.judge, folder, loss_fn, batches, target=targets, rules=rules)
            folder.rename(args.out)
    except TraceFileError:
        raise
    except DgrrError as error:
        raise UsageError(str(error)) from error
    compiled = len(next(iter(made.libraries.values())))
    text = f"{args.out}: a judge of {made.steps} steps of {args.judge}, {compiled} compiled for each machine\n"
    facts = Fact("format", "judge"), Fact("written", args.out, text + "\n".join(map(command, made.libraries)))
    return done(*facts, *untold(form=None, step=None))


def _table(trace: "TraceReader", args: argparse.Namespace) -> Answer:
    from ....exporting.files import export

    form: Form = args.form or "wide"
    export(trace, args.out, args.format, form=form)
    text = f"{len(trace)} steps of {trace.path}, as {args.format}, {form}"
    return _written(args, text, *untold(form=form, step=None))


def _weights(trace: "TraceReader", args: argparse.Namespace) -> Answer:
    from .....tape import nn
    from ....exporting.weights import weights_before
    from ....replaying.replay_state import UnknownRuleError

    step = len(trace) if args.step is None else args.step
    if step > len(trace):
        raise UsageError(f"argument --step: {trace.path} has no state before step {step}: expected 0 to {len(trace)}")
    loss_fn, batches = (None, None) if args.model is None else load_run(args.model)
    rules = load_rules(args.rule)
    try:
        with current_folder():  # where the model may import more
            found = weights_before(trace, step, loss_fn, batches, rules=rules, mode=args.mode or "replay")
    except UnknownRuleError as error:
        return failed(Exit.UNPROVEN, f"{args.path}: {error}")
    try:
        nn.save(args.out, found.params, found.model_state)
    except DgrrError as error:
        raise UsageError(f"argument --format: {error}") from error
    where = f"before step {step}" if step < len(trace) else "after the last step"
    return _written(args, f"the weights of {trace.path} {where}", *untold(form=None, step=step))


def _written(args: argparse.Namespace, what: str, *more: Fact) -> Answer:
    return done(Fact("format", args.format), Fact("written", args.out, f"{args.out}: {what}"), *more)


def _missing(trace: "TraceReader") -> str:
    """What people are told of a trace that ends before its seal; nothing of one that is whole."""
    if trace.sealed and trace.damage is None:
        return ""
    why = "" if trace.damage is None else f" ({trace.damage})"
    return f"{trace.path}: its end is missing{why}: what was written holds its first {len(trace)} whole steps alone"
