"""The commands of `dgrr`: their arguments, and what their help says."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ... import __version__
from . import handlers
from .answer import Answer
from .arguments import Parser, integer, learning_rate, path, policy

Add: TypeAlias = Callable[[argparse.ArgumentParser], None]
Handler: TypeAlias = Callable[[argparse.Namespace], Answer]
Paths: TypeAlias = Callable[[argparse.Namespace], list[str]]

_TRACE = "trace.dgrr"
_DEMO = "demo.dgrr"
_DEFAULT = "default: %(default)s"
_POLICY = "how close values must be: bitwise, ulp=N, or rtol=X,atol=Y; default: bitwise"
_RULE = "the class of an optimizer rule that is not built in; may be given several times"
_MODULES = "Modules are those of the current folder and the installed ones."
# The format's limits; the trace modules that own them load numba.
_UINT32 = 2**32 - 1
_UINT64 = 2**64 - 1
_INT64 = 2**63 - 1
_MAX_STEPS = (_INT64 - 64) // 72


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


def _no_paths(args: argparse.Namespace) -> list[str]:
    return []


def _one_path(args: argparse.Namespace) -> list[str]:
    """The trace, by its place or by the option of version 1."""
    if args.path is not None and args.trace is not None:
        args.parser.error(f"argument --trace: the trace is named already, {args.path!r}")
    return [args.path or args.trace or _TRACE]


def _two_paths(args: argparse.Namespace) -> list[str]:
    """Both traces, by their places or by the options of version 1; one where the other is computed."""
    given = {"--a": args.a, "--b": args.b}
    if not args.paths and any(given.values()):
        missing = [option for option, value in given.items() if value is None]
        if missing:
            args.parser.error(f"the following arguments are required: {', '.join(missing)}")
        return [args.a, args.b]
    expected = "two traces, PATH_A and PATH_B" if args.model is None else "one trace beside --model"
    if any(given.values()) or len(args.paths) != (2 if args.model is None else 1):
        count = len(args.paths) + sum(value is not None for value in given.values())
        args.parser.error(f"expected {expected}, got {count}")
    return list(args.paths)


def _path(args: argparse.Namespace) -> list[str]:
    return [args.path]


def _out(args: argparse.Namespace) -> list[str]:
    return [args.out]


def _demo_path(args: argparse.Namespace) -> list[str]:
    args.own = args.out is None
    args.out = args.out or _DEMO
    return [args.out]


def _add_trace(parser: argparse.ArgumentParser, *, step: str, required: bool = False) -> None:
    parser.add_argument("path", type=path, nargs="?", metavar="PATH", help=f"the trace; default: {_TRACE}")
    parser.add_argument("--step", type=integer(0, _UINT64), required=required, metavar="S", help=step)
    parser.add_argument("--trace", type=path, metavar="PATH", help="the same as PATH")


def _add_ulp_tol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ulp-tol",
        type=integer(0, _UINT64),
        default=0,
        metavar="N",
        help="allowed distance in units in the last place; default: %(default)s, to the bit",
    )


def _add_demo(parser: argparse.ArgumentParser) -> None:
    count = integer(1, _MAX_STEPS)
    parser.add_argument("--out", type=path, metavar="PATH", help=f"default: {_DEMO}, which every run makes anew")
    parser.add_argument("--overwrite", action="store_true", help="replace a trace that is there already")
    parser.add_argument("--epochs", type=count, default=20, metavar="N", help=_DEFAULT)
    parser.add_argument("--seed", type=integer(0, _UINT64), default=0, metavar="UINT64", help=_DEFAULT)
    parser.add_argument("--batch", type=count, default=64, metavar="N", help=f"samples in a batch; {_DEFAULT}")
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam", help=_DEFAULT)
    record = f"what the trace holds of each step: digests alone, or gradients too; {_DEFAULT}"
    parser.add_argument("--record", choices=("digest", "grads"), default="grads", help=record)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=integer(0, _MAX_STEPS), default=100, metavar="N", help=_DEFAULT)
    parser.add_argument("--lr", type=learning_rate, default=0.01, metavar="FLOAT", help=f"step size; {_DEFAULT}")
    parser.add_argument("--seed", type=integer(0, _UINT64), default=42, metavar="UINT64", help=_DEFAULT)
    parser.add_argument("--out", type=path, default=_TRACE, metavar="PATH", help=_DEFAULT)
    parser.add_argument(
        "--created-at",
        type=integer(-_INT64 - 1, _INT64),
        metavar="UNIX",
        help="time of creation to record, in seconds since 1970; default: now",
    )


def _add_validate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=path, metavar="PATH", help="the trace")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser, step="a step to show too, from 0; traces of version 1 need it")
    _add_ulp_tol(parser)
    model = "execute the gradients again, too: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    seed = "the seed that the run is known to have; default: the one that the trace names"
    parser.add_argument("--seed", type=integer(0, _UINT64), metavar="UINT64", help=seed)
    numerics = "the numerics version that the run is known to have; default: the one that the trace names"
    parser.add_argument("--numerics", type=integer(0, _UINT32), metavar="N", help=numerics)


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser, step="a step to show, from 0; without one the trace as a whole is shown (version 2)")


def _add_rollback(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser, step="the step to go back before, from 0", required=True)
    out = "write the steps before S to this new trace; without it nothing is written"
    parser.add_argument("--out", type=path, metavar="PATH", help=out)


def _add_recover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=path, metavar="PATH", help="the trace; it is only read")
    out = "write what is whole to this new trace; steps behind damage to NEW.1, NEW.2 and so on"
    parser.add_argument("-o", "--out", type=path, required=True, metavar="NEW", help=out)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    traces = "the two traces, the reference first; one of them where --model is given"
    parser.add_argument("paths", type=path, nargs="*", metavar="PATH", help=traces)
    parser.add_argument("--a", type=path, metavar="PATH_A", help="the first of them")
    parser.add_argument("--b", type=path, metavar="PATH_B", help="the second")
    parser.add_argument("--policy", type=policy, metavar="POLICY", help=_POLICY)
    _add_ulp_tol(parser)
    proven = "validate both files first, and compare every op that is recorded"
    parser.add_argument("--proven", action="store_true", help=proven)
    model = "compute the second run now: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)


def _add_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=path, metavar="PATH", help="the trace")
    step = "the step to go back to, from 0"
    parser.add_argument("--step", type=integer(0, _UINT64), required=True, metavar="K", help=step)
    model = "what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", required=True, help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    views = parser.add_mutually_exclusive_group()
    views.add_argument("--table", action="store_true", help="show every node, its value and its gradient; the default")
    explain = "show the way from one node, by its name or number, to the loss"
    views.add_argument("--explain", metavar="NAME", help=explain)
    views.add_argument("--dot", action="store_true", help="show the graph in the DOT language")
    which = f"which of the micro-batches of the step, from 0; {_DEFAULT}"
    parser.add_argument("--micro-batch", type=integer(0, _UINT32), default=0, metavar="I", help=which)
    save = "write the weights before step K, and the model's state, to this new safetensors file"
    parser.add_argument("--save", type=path, metavar="PATH", help=save)


def _add_bisect(parser: argparse.ArgumentParser) -> None:
    traces = "the two traces, the reference first; one of them where --model is given"
    parser.add_argument("paths", type=path, nargs="*", metavar="PATH", help=traces)
    model = "compute steps of the run now: what returns (loss_fn, batches) when it is called"
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=_RULE)
    parser.add_argument("--proven", action="store_true", help="validate the files first")
    git = "end as git bisect run expects: 0 the same, 4 different, 125 where neither is known"
    parser.add_argument("--git", action="store_true", help=git)
    parser.set_defaults(a=None, b=None)


def _add_test(parser: argparse.ArgumentParser) -> None:
    action = "make the run the golden one, or hold it against the golden one"
    parser.add_argument("action", choices=("record", "check"), help=action)
    parser.add_argument("path", type=path, metavar="PATH", help="the golden file; its text lies beside it")
    model = "what trains when it is called with what it is to give to its trainer as trace="
    parser.add_argument("--model", metavar="MODULE:FUNCTION", required=True, help=model)
    parser.add_argument("--policy", type=policy, metavar="POLICY", help=_POLICY)


def _add_verify_step(parser: argparse.ArgumentParser) -> None:
    step = "what returns a captured step when it is called; default: the reference model's step"
    parser.add_argument("function", nargs="?", metavar="MODULE:FUNCTION", help=step)
    replays = f"how often the step is replayed, twice over; {_DEFAULT}"
    parser.add_argument("--replays", type=integer(1, _MAX_STEPS), default=20, metavar="N", help=replays)


def _add_cache(parser: argparse.ArgumentParser) -> None:
    action = "what to do: show the folder, clear it, or warm it, which compiles ahead; default: %(default)s"
    model = "with warm: what returns a captured step, to compile what that runs; default: every op in float32"
    parser.add_argument("action", nargs="?", choices=("show", "clear", "warm"), default="show", help=action)
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)


COMMANDS = (
    Command(
        "demo",
        "train digits, record the run, prove it by replay",
        _add_demo,
        _demo_path,
        handlers.demo,
        "dgrr demo                       a minute or less\n"
        "dgrr demo --out run.dgrr        keep the trace under another name",
    ),
    Command(
        "train",
        "train the scalar linear model and record it in a version 1 trace",
        _add_train,
        _out,
        handlers.train,
        "dgrr train --steps 1000 --out run.dgrr",
    ),
    Command(
        "validate",
        "check every rule of the format",
        _add_validate,
        _path,
        handlers.validate,
        "dgrr validate run.dgrr          structure, chains and digests",
    ),
    Command(
        "replay",
        "recompute recorded updates and compare them",
        _add_replay,
        _one_path,
        handlers.replay,
        "dgrr replay run.dgrr                       every update, from the recorded gradients\n"
        "dgrr replay run.dgrr --model train:run     every loss and gradient, too\n"
        "dgrr replay run.dgrr --step 3              and show step 3",
        f"{_MODULES}\nTraces of dgrr train are of version 1: they need --step, and take no --model or --rule.",
    ),
    Command(
        "inspect",
        "show all that is recorded of a trace or of a step",
        _add_inspect,
        _one_path,
        handlers.inspect,
        "dgrr inspect run.dgrr             seed, optimizer, tensors, events\n"
        "dgrr inspect run.dgrr --step 3    loss, digests, hyperparameters of step 3",
    ),
    Command(
        "rollback",
        "show the state before a step, or write the trace up to it",
        _add_rollback,
        _one_path,
        handlers.rollback,
        "dgrr rollback run.dgrr --step 100                     writes nothing\n"
        "dgrr rollback run.dgrr --step 100 --out first.dgrr    writes steps 0 to 99",
    ),
    Command(
        "recover",
        "write what is whole of a damaged or unfinished trace to a new one",
        _add_recover,
        _path,
        handlers.recover,
        "dgrr recover cut.dgrr -o whole.dgrr    0 if nothing recorded was lost, else 7",
        "Steps behind damage become traces of their own, from the next keyframe on. Traces of version 1 have none.",
    ),
    Command(
        "compare",
        "find the first difference of two traces",
        _add_compare,
        _two_paths,
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
        _add_at,
        _path,
        handlers.at,
        "dgrr at run.dgrr --step 100 --model train:run                      a table of all nodes\n"
        "dgrr at run.dgrr --step 100 --model train:run --explain 0.weight   from a weight to the loss\n"
        "dgrr at run.dgrr --step 100 --model train:run --save before.safetensors   the weights before it",
    ),
    Command(
        "bisect",
        "find the first different step in few reads, or in few computed steps",
        _add_bisect,
        _two_paths,
        handlers.bisect,
        "dgrr bisect old.dgrr new.dgrr                    along the links of both\n"
        "dgrr bisect old.dgrr --model train:run           from the recorded states\n"
        "dgrr bisect --git old.dgrr --model train:run     behind git bisect run: which commit changed the numbers",
        _MODULES,
    ),
    Command(
        "test",
        "record a golden trace, or check a run against it",
        _add_test,
        _path,
        handlers.test,
        "dgrr test record golden/digits.dgrr --model train:run    once; both files are committed\n"
        "dgrr test check golden/digits.dgrr --model train:run     in CI: 0 the same, 4 another run",
        f"FUNCTION is called with one argument: def run(trace): Trainer(…, trace=trace).fit(…)\n{_MODULES}",
    ),
    Command(
        "verify-step",
        "check a captured training step from its graph to its memory",
        _add_verify_step,
        _no_paths,
        handlers.verify_step,
        "dgrr verify-step                 the reference model\n"
        "dgrr verify-step train:make      what make() of train.py returns",
        _MODULES,
    ),
    Command(
        "cache",
        "show, fill or clear the folder of compiled kernels",
        _add_cache,
        _no_paths,
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
