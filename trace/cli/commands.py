"""The commands of `dgrr`, and what their help says."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ... import __version__
from . import handlers
from .answer import Answer
from .arguments import Parser
from .options import (
    add_at,
    add_audit,
    add_bisect,
    add_cache,
    add_compare,
    add_demo,
    add_inspect,
    add_ls,
    add_recover,
    add_replay,
    add_rollback,
    add_show,
    add_test,
    add_train,
    add_validate,
    add_verify_step,
    all_paths,
    demo_path,
    folder_of,
    no_paths,
    one_path,
    out_of,
    path_of,
    two_paths,
)

Add: TypeAlias = Callable[[argparse.ArgumentParser], None]
Handler: TypeAlias = Callable[[argparse.Namespace], Answer]
Paths: TypeAlias = Callable[[argparse.Namespace], list[str]]

_MODULES = "Modules are those of the current folder and the installed ones."


class Command(NamedTuple):
    """A command: its name, what it is for, its arguments, the files it is about, and what runs it."""

    name: str
    summary: str
    add_arguments: Add
    paths: Paths
    handler: Handler
    examples: str
    """For its help: lines of a command and what it does."""
    more: str = ""
    """For its help: what else there is to know."""
    aliases: Sequence[str] = ()


COMMANDS = (
    Command(
        "demo",
        "train digits, record the run, prove it by replay",
        add_demo,
        demo_path,
        handlers.demo,
        "dgrr demo                       a minute or less\n"
        "dgrr demo --out run.dgrr        keep the trace under another name",
    ),
    Command(
        "train",
        "train the scalar linear model and record it in a version 1 trace",
        add_train,
        out_of,
        handlers.train,
        "dgrr train --steps 1000 --out run.dgrr",
    ),
    Command(
        "validate",
        "check every rule of the format",
        add_validate,
        path_of,
        handlers.validate,
        "dgrr validate run.dgrr          structure, chains and digests",
    ),
    Command(
        "replay",
        "recompute recorded updates and compare them",
        add_replay,
        one_path,
        handlers.replay,
        "dgrr replay run.dgrr                       every update, from the recorded gradients\n"
        "dgrr replay run.dgrr --model train:run     every loss and gradient, too\n"
        "dgrr replay run.dgrr --step 3              and show step 3",
        f"{_MODULES}\nTraces of dgrr train are of version 1: they need --step, and take no --model or --rule.",
    ),
    Command(
        "inspect",
        "show all that is recorded of a trace or of a step",
        add_inspect,
        one_path,
        handlers.inspect,
        "dgrr inspect run.dgrr             seed, optimizer, tensors, events\n"
        "dgrr inspect run.dgrr --step 3    loss, digests, hyperparameters of step 3",
    ),
    Command(
        "show",
        "show a run on one screen: its loss, its worst gradients, its speed, its verdict",
        add_show,
        path_of,
        handlers.show,
        "dgrr show run.dgrr             also of a run that is not finished\n"
        "dgrr show --follow run.dgrr    while it is recorded",
    ),
    Command(
        "ls",
        "list the traces of a folder",
        add_ls,
        folder_of,
        handlers.ls,
        "dgrr ls                  those of the current folder\n"
        "dgrr ls -r experiments   those of the folders below it, too",
    ),
    Command(
        "rollback",
        "show the state before a step, or write the trace up to it",
        add_rollback,
        one_path,
        handlers.rollback,
        "dgrr rollback run.dgrr --step 100                     writes nothing\n"
        "dgrr rollback run.dgrr --step 100 --out first.dgrr    writes steps 0 to 99",
    ),
    Command(
        "recover",
        "write what is whole of a damaged or unfinished trace to a new one",
        add_recover,
        all_paths,
        handlers.recover,
        "dgrr recover cut.dgrr -o whole.dgrr              0 if nothing recorded was lost, else 7\n"
        "dgrr recover cut.dgrr copy.dgrr -o whole.dgrr    what one has lost, from the other",
        "Steps behind damage become traces of their own, from the next keyframe on. Traces of version 1 have none.",
    ),
    Command(
        "compare",
        "find the first difference of two traces",
        add_compare,
        two_paths,
        handlers.compare,
        "dgrr diff old.dgrr new.dgrr                  to the bit\n"
        "dgrr diff old.dgrr new.dgrr --policy ulp=4   recorded values up to 4 units in the last place apart\n"
        "dgrr diff old.dgrr --model train:run         the run as run() of train.py computes it now",
        f"dgrr diff is the short name of dgrr compare. {_MODULES}",
        aliases=("diff",),
    ),
    Command(
        "at",
        "go back to a step: every value and gradient of it, rebuilt to the bit",
        add_at,
        path_of,
        handlers.at,
        "dgrr at run.dgrr --step 100 --model train:run                      a table of all nodes\n"
        "dgrr at run.dgrr --step 100 --model train:run --explain 0.weight   from a weight to the loss\n"
        "dgrr at run.dgrr --step 100 --model train:run --save before.safetensors   the weights before it",
    ),
    Command(
        "audit",
        "compute a random sample of steps again, and say what it proves of the others",
        add_audit,
        path_of,
        handlers.audit,
        "dgrr audit run.dgrr --model train:run -o certificate.json            32 steps, drawn now\n"
        "dgrr audit run.dgrr --model train:run -o certificate.json --resume   go on after Ctrl-C\n"
        "dgrr audit run.dgrr --check certificate.json                         is it one of this trace?",
        _MODULES,
    ),
    Command(
        "bisect",
        "find the first different step in few reads, or in few computed steps",
        add_bisect,
        two_paths,
        handlers.bisect,
        "dgrr bisect old.dgrr new.dgrr                    along the links of both\n"
        "dgrr bisect old.dgrr --model train:run           from the recorded states\n"
        "dgrr bisect --git old.dgrr --model train:run     behind git bisect run: which commit changed the numbers",
        _MODULES,
    ),
    Command(
        "test",
        "record a golden trace, or check a run against it",
        add_test,
        path_of,
        handlers.test,
        "dgrr test record golden/digits.dgrr --model train:run    once; both files are committed\n"
        "dgrr test check golden/digits.dgrr --model train:run     in CI: 0 the same, 4 another run",
        f"FUNCTION is called with one argument: def run(trace): Trainer(…, trace=trace).fit(…)\n{_MODULES}",
    ),
    Command(
        "verify-step",
        "check a captured training step from its graph to its memory",
        add_verify_step,
        no_paths,
        handlers.verify_step,
        "dgrr verify-step                 the reference model\n"
        "dgrr verify-step train:make      what make() of train.py returns",
        _MODULES,
    ),
    Command(
        "cache",
        "show, fill or clear the folder of compiled kernels",
        add_cache,
        no_paths,
        handlers.cache,
        "dgrr cache                            where it is, and its size\n"
        "dgrr cache warm --model train:make    compile what the step of make() of train.py runs",
        _MODULES,
    ),
)


def parse(argv: Sequence[str], args: argparse.Namespace) -> None:
    """Take a command line apart: the command, its arguments, and the files it is about as `paths`.

    Raises UsageError; SystemExit where help or the version was asked for, which is then printed.
    """
    _, rest = _parser().parse_known_args(argv, args)
    if rest:
        late = args.paths and not any(text.startswith("-") for text in rest)  # a second path behind an option
        if not late:
            args.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        args.paths += rest
    args.paths = args.command.paths(args)


def command_name(argv: Sequence[str]) -> str | None:
    """The full name of the command that a command line begins with."""
    return next((c.name for c in COMMANDS for text in argv[:1] if text in (c.name, *c.aliases)), None)


def _parser() -> Parser:
    made = Parser(
        prog="dgrr",
        description="Record, replay and verify training to the last bit.",
        epilog="`dgrr COMMAND --help` shows the arguments of a command, with examples.\n\n"
        "Exit codes: 0 success, 1 usage error, 2 IO error, 3 not a valid trace, 4 divergence,\n"
        "5 replay failure or a failed check of a step, 6 not everything could be proven,\n"
        "7 steps lost in a recovery, 125 unknown (bisect --git), 130 interrupted.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"dgrr {__version__}", help="show the version and exit")
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        _add(commands.add_parser, command)
    return made


def _add(add_parser: Callable[..., argparse.ArgumentParser], command: Command) -> None:
    more = f"{command.more}\n\n" if command.more else ""
    examples = "\n".join(f"  {line}" for line in command.examples.splitlines())
    made = add_parser(
        command.name,
        aliases=command.aliases,
        help=command.summary,
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"{more}examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(made)
    made.add_argument("--json", action="store_true", help="answer with one JSON object on standard output")
    made.set_defaults(command=command, parser=made)
