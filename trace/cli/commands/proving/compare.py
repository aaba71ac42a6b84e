"""``dgrr compare``."""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .....base.atomic_file import replacing
from ....file_version import TraceFileError
from ...answer import Answer, Fact, written_page
from ...arguments import Parser, UsageError, path
from ...formats import format_of, require_answer

if TYPE_CHECKING:
    from ....comparing.result import Comparison

HELP = """
Find the first difference between two traces.

dgrr diff is the short name of dgrr compare. MODULE is in the current folder, or installed.

examples:
  dgrr diff old.dgrr new.dgrr                    to the bit
  dgrr diff old.dgrr new.dgrr --policy ulp=4     allow recorded values 4 units in the last place
  dgrr diff old.dgrr --model train:run           with what run() of train.py computes now
  dgrr diff old.dgrr new.dgrr --html diff.html   also write a page, op by op
  dgrr diff last_night/ tonight/                 folders with a trace for each process
  dgrr diff a.dgrr b.dgrr --junit out.xml        also write a report for a nightly job
"""

ALIASES = ("diff",)


def add_arguments(parser: Parser) -> None:
    parser.two_traces()
    parser.add_argument("--a", type=path, metavar="PATH_A", help="first trace")
    parser.add_argument("--b", type=path, metavar="PATH_B", help="second trace")
    parser.policy()
    parser.ulp_tolerance()
    proven = "validate both files first, and compare every recorded op"
    parser.add_argument("--proven", action="store_true", help=proven)
    parser.model("compute the second run with this function, which returns (loss_fn, batches)")
    parser.rules()
    parser.mode()
    page = "also write a page of both runs, op by op, replacing a file of that name"
    parser.add_argument("--html", type=path, metavar="PAGE", help=page)
    junit = "also write the answer as JUnit's XML, with a test for each rank; it replaces a file"
    parser.add_argument("--junit", type=path, metavar="XML", help=junit)


def run(args: argparse.Namespace) -> Answer:
    if args.policy is not None and args.ulp_tol:
        args.parser.error("argument --policy: not allowed with argument --ulp-tol")
    policy: str = args.policy or (f"ulp={args.ulp_tol}" if args.ulp_tol else "bitwise")
    if args.html is not None:
        _require_page(args)
    return _with_page(args, _with_junit(args, policy))


def _compared(args: argparse.Namespace, policy: str) -> Answer:
    if args.model is not None:
        return _with_model(args, policy)
    args.parser.require_model(args)
    if all(map(os.path.isdir, args.paths)):
        from ... import v2

        return v2.compare(args, policy)
    return format_of(args).compare(args, policy)


def _require_page(args: argparse.Namespace) -> None:
    """Refuse a page before anything is computed for it."""
    from ....report.diff.write import require_page

    try:
        require_page(*args.paths, out=args.html)
    except ValueError as error:
        raise UsageError(str(error).replace("write_diff: argument 'out'", "argument --html", 1)) from error


def _with_page(args: argparse.Namespace, answer: Answer) -> Answer:
    """The answer, and the page of it; none where a file could not be read."""
    found = cast("Comparison", (answer.result or {}).get("comparison"))
    if args.html is None or not found.compared:
        return answer.beside(Fact("written", None))
    from ....report.diff.write import write_diff

    return answer.beside(written_page("written", args.html, write_diff(found, args.html)))


def _with_junit(args: argparse.Namespace, policy: str) -> Answer:
    """The answer, and the file that says it to a server of CI, also where a trace has no version."""
    if args.junit is None:
        return _compared(args, policy).beside(Fact("junit", None))
    from ....comparing.compare import unreadable
    from ....comparing.result import Comparison

    try:
        answer = _compared(args, policy)
    except TraceFileError as error:
        _write_junit(args, unreadable(args.paths, error))
        raise
    found = (answer.result or {}).get("comparison")
    if not isinstance(found, Comparison):
        raise UsageError("argument --junit: it is not for traces of version 1")
    return answer.beside(Fact("junit", args.junit, f"{args.junit}: {_write_junit(args, found):,} bytes"))


def _write_junit(args: argparse.Namespace, found: "Comparison") -> int:
    from ...junit import junit

    text = junit(found)
    with replacing(Path(args.junit)) as file:
        return file.write(text)


def _with_model(args: argparse.Namespace, policy: str) -> Answer:
    require_answer(args, args.paths[0])
    from ....comparing.with_model import diff_with_model
    from ...v2 import compare_with_model

    return compare_with_model(args, partial(diff_with_model, policy=policy))
