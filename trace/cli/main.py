"""The command line, `dgrr`: what can be asked, and which version of the format answers.

The modules that do the work are imported in the handlers, because they load numba and machine code: so
`dgrr --help` and a usage error come at once.
"""

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from ... import __version__
from ..exit_codes import Exit
from ..file_version import TraceFileError, version_of
from .arguments import Parser, UsageError, integer, learning_rate, path

Handler = Callable[[argparse.Namespace], int]

_TRACE = "trace.dgrr"
_DEMO = "demo.dgrr"
_DEFAULT = "default: %(default)s"
# The format's limits; the trace modules that own them load numba.
_UINT64 = 2**64 - 1
_INT64 = 2**63 - 1
_MAX_STEPS = (_INT64 - 64) // 72


def _known_version(path: str) -> int:
    version = version_of(path)
    if version not in (1, 2):
        raise TraceFileError(f"{path}: unsupported version {version}, expected 1 or 2", Exit.VALIDATION)
    return version


def _require_step(args: argparse.Namespace) -> None:
    if args.step is None:
        args.parser.error(f"argument --step is required: {args.trace} is of version 1")


def _demo(args: argparse.Namespace) -> int:
    from . import demo

    args.own = args.out is None
    args.out = args.out or _DEMO
    return demo.run(args)


def _train(args: argparse.Namespace) -> int:
    from . import v1

    created_at = int(time.time()) if args.created_at is None else args.created_at
    return v1.train(args.steps, args.lr, args.seed, args.out, created_at)


def _replay(args: argparse.Namespace) -> int:
    if _known_version(args.trace) == 2:
        from . import v2

        return v2.replay(args.trace, args.step, args.ulp_tol, args.model, args.rule)
    _require_step(args)
    for option in ("model", "rule"):
        if getattr(args, option):
            args.parser.error(f"argument --{option}: {args.trace} is of version 1, whose {option} is fixed")
    from . import v1

    return v1.replay(args.trace, args.step, args.ulp_tol)


def _inspect(args: argparse.Namespace) -> int:
    if _known_version(args.trace) == 2:
        from . import v2

        return v2.inspect(args.trace, args.step)
    _require_step(args)
    from . import v1

    return v1.inspect(args.trace, args.step)


def _rollback(args: argparse.Namespace) -> int:
    if _known_version(args.trace) == 2:
        from . import v2

        return v2.rollback(args.trace, args.step, args.out)
    from . import v1

    return v1.rollback(args.trace, args.step, args.out)


def _compare(args: argparse.Namespace) -> int:
    a, b = _known_version(args.a), _known_version(args.b)
    if a != b:
        raise TraceFileError(
            f"{args.a} is of version {a} and {args.b} of version {b}: they cannot be compared",
            Exit.VALIDATION,
        )
    if a == 2:
        from . import v2

        return v2.compare(args.a, args.b, args.ulp_tol)
    from . import v1

    return v1.compare(args.a, args.b, args.ulp_tol)


def _validate(args: argparse.Namespace) -> int:
    if _known_version(args.path) == 2:
        from . import v2

        return v2.validate(args.path)
    from . import v1

    return v1.validate(args.path)


def _verify_step(args: argparse.Namespace) -> int:
    from . import verify_step

    return verify_step.run(args.function, args.replays)


def _cache(args: argparse.Namespace) -> int:
    if args.action == "warm":
        from . import warm

        return warm.run(args.model)
    if args.model is not None:
        args.parser.error(f"argument --model: it goes with warm, not with {args.action}")
    from . import cache

    return cache.run(args.action)


def _add_trace(parser: argparse.ArgumentParser, *, step_required: bool) -> None:
    numbered = "number of the step, from 0"
    parser.add_argument("--step", type=integer(0, _UINT64), required=step_required, metavar="S", help=numbered)
    parser.add_argument("--trace", type=path, default=_TRACE, metavar="PATH", help=_DEFAULT)


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
    parser.add_argument("--batch", type=count, default=64, metavar="N", help=_DEFAULT)
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam", help=_DEFAULT)
    parser.add_argument("--record", choices=("digest", "grads"), default="grads", help=_DEFAULT)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=integer(0, _MAX_STEPS), default=100, metavar="N", help=_DEFAULT)
    parser.add_argument("--lr", type=learning_rate, default=0.01, metavar="FLOAT", help=_DEFAULT)
    parser.add_argument("--seed", type=integer(0, _UINT64), default=42, metavar="UINT64", help=_DEFAULT)
    parser.add_argument("--out", type=path, default=_TRACE, metavar="PATH", help=_DEFAULT)
    parser.add_argument(
        "--created-at",
        type=integer(-_INT64 - 1, _INT64),
        metavar="UNIX",
        help="time of creation to record, in seconds since 1970; default: now",
    )


def _add_replay(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser, step_required=False)
    _add_ulp_tol(parser)
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help="version 2: execute the gradients again, too")
    rule = "version 2: the class of an optimizer rule that is not built in; may be given several times"
    parser.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=rule)


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser, step_required=False)


def _add_rollback(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser, step_required=True)
    parser.add_argument("--out", type=path, metavar="PATH", help="write the trace of the steps before S")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--a", type=path, required=True, metavar="PATH_A")
    parser.add_argument("--b", type=path, required=True, metavar="PATH_B")
    _add_ulp_tol(parser)


def _add_validate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=path, metavar="PATH")


def _add_verify_step(parser: argparse.ArgumentParser) -> None:
    step = "what returns a captured step when it is called; default: the reference model's step"
    parser.add_argument("function", nargs="?", metavar="MODULE:FUNCTION", help=step)
    parser.add_argument("--replays", type=integer(1, _MAX_STEPS), default=20, metavar="N", help=_DEFAULT)


def _add_cache(parser: argparse.ArgumentParser) -> None:
    action = "what to do; warm compiles ahead; default: %(default)s"
    model = "with warm: what returns a captured step, to compile what that runs; default: every op in float32"
    parser.add_argument("action", nargs="?", choices=("show", "clear", "warm"), default="show", help=action)
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help=model)


_COMMANDS: tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None], Handler], ...] = (
    ("demo", "train digits, record the run, prove it by replay", _add_demo, _demo),
    ("train", "train the scalar linear model and record it in a version 1 trace", _add_train, _train),
    ("replay", "recompute recorded updates and compare them", _add_replay, _replay),
    ("inspect", "show all that is recorded of a step", _add_inspect, _inspect),
    ("rollback", "show the state before a step, or write the trace up to it", _add_rollback, _rollback),
    ("compare", "find the first difference of two traces", _add_compare, _compare),
    ("validate", "check every rule of the format", _add_validate, _validate),
    ("verify-step", "check a captured training step from its graph to its memory", _add_verify_step, _verify_step),
    ("cache", "show, fill or clear the folder of compiled kernels", _add_cache, _cache),
)


def _parser() -> Parser:
    parser = Parser(
        prog="dgrr",
        description="Record, replay and verify training to the last bit.",
        epilog="Exit codes: 0 success, 1 usage error, 2 IO error, 3 not a valid trace, 4 divergence, "
        "5 replay failure or a failed check of a step, 6 not everything could be proven, "
        "7 steps lost in a recovery, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dgrr {__version__}", help="show the version and exit")
    v1 = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary, add_arguments, handler in _COMMANDS:
        command = v1.add_parser(name, help=summary, description=f"{summary}.", allow_abbrev=False)
        add_arguments(command)
        command.set_defaults(handler=handler, parser=command)
    return parser


def _answer(argv: Sequence[str] | None) -> int:
    try:
        args = _parser().parse_args(argv)
        handler: Handler = args.handler
        return handler(args)
    except SystemExit as end:  # argparse's --help and --version
        return int(end.code or 0)
    except UsageError as error:
        print(error, file=sys.stderr)
        return Exit.USAGE
    except TraceFileError as error:
        print(f"dgrr: {error}", file=sys.stderr)
        return error.exit
    except KeyboardInterrupt:
        print("dgrr: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED


def _discard(stream: TextIO) -> None:
    """Point a stream at nothing, so that its flush at exit cannot fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `argv` is the command line without the program's name."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path may hold what the terminal cannot show
    try:
        code = _answer(argv)
        print(end="", flush=True)  # here, where a failure can still be answered
    except BrokenPipeError:  # the reader has seen enough
        _discard(sys.stdout)
        return Exit.IO
    except OSError as error:
        _discard(sys.stdout)
        try:
            print(f"dgrr: cannot write the answer: {error.strerror or error}", file=sys.stderr)
        except OSError:  # what is left is the exit code
            _discard(sys.stderr)
        return Exit.IO
    return code
