"""The command line, `dgrr`: a command is run, and its answer printed."""

import argparse
import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from typing import TextIO

from ...base import system
from ...base.errors import DgrrError
from ...base.interruption import interruptible
from ..exit_codes import Exit
from ..file_version import TraceFileError, TruncatedFileError
from ..v2.errors import InvalidTraceError, NotRecordedError, TraceWriteError
from ..v2.verdict import Verdict
from .answer import Answer, failed
from .arguments import UsageError
from .commands import command_name, parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `argv` is the command line without the program's name."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path may hold what the terminal cannot show
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
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


def _run(argv: Sequence[str]) -> int:
    """Run a command, and print its answer."""
    args = argparse.Namespace(paths=[], json=_among_options("--json", argv))
    try:
        parse(argv, args)
    except SystemExit as end:  # argparse's --help and --version
        return int(end.code or 0)
    except UsageError as error:
        answer = failed(Exit.USAGE, str(error), before=error.before)
    else:
        answer = _answered(args)
    if command_name(argv) == "bisect" and _among_options("--git", argv):  # also where the rest is wrong
        answer = answer.for_git()
    if args.json:
        print(answer.to_json(command_name(argv), args.paths))
    else:
        _print(answer)
    return answer.code


def _among_options(option: str, argv: Sequence[str]) -> bool:
    """Whether an option is given, also of a command line that cannot be parsed."""
    return option in argv[: argv.index("--") if "--" in argv else None]


def _print(answer: Answer) -> None:
    if answer.text:
        print(answer.text, flush=True)
    if answer.error:
        print(f"{answer.before}{answer.error}", file=sys.stderr)


def _answered(args: argparse.Namespace) -> Answer:
    """Run the command; what keeps it from its answer is an answer too."""
    try:
        with ExitStack() as stack:
            stack.enter_context(interruptible())
            if args.json:  # the answer alone is to stand on standard output
                stack.enter_context(redirect_stdout(sys.stderr))
            answer: Answer = args.command.run(args)
            return answer
    except DgrrError as error:
        return _kept_from_it(error, args.paths)
    except KeyboardInterrupt:
        return failed(Exit.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return failed(Exit.IO, f"{where}{error.strerror or error}")
    except SystemExit as end:  # how rich, which shows the progress of a training, ends at a closed pipe
        raise BrokenPipeError from end


def _kept_from_it(error: DgrrError, paths: Sequence[str]) -> Answer:
    """What an error says, under the verdict that it has. Raises one that is none of a command line or a file."""
    text = str(error)
    if finding := getattr(error, "finding", None):  # what was found in a trace
        return failed(finding.verdict.exit_code, f"{paths[0]}: {finding}", finding.verdict.value)
    match error:
        case UsageError():
            return failed(Exit.USAGE, text, before=error.before)
        case InvalidTraceError():
            return failed(error.exit, text, error.verdict.value)
        case TruncatedFileError():
            return failed(error.exit, text, Verdict.TORN_TAIL.value)
        case TraceFileError():
            return failed(error.exit, text)
        case TraceWriteError():
            return failed(Exit.IO, text)
        case NotRecordedError():
            return failed(Exit.UNPROVEN, f"{paths[0]}: {text}")
        case _:
            raise error


def _discard(stream: TextIO) -> None:
    """Point a stream at nothing, so that its flush at exit cannot fail again."""
    system.discard_output(stream.fileno())
