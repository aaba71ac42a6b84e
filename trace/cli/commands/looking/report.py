"""``dgrr report``: one HTML file that shows a run, or several; with ``--watch`` a run that still goes on."""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ....file_version import TraceFileError, version_of
from ....v2.errors import UnsealedTraceWarning
from ....v2.format.constants import PARTIAL_SUFFIX
from ...answer import Answer, Fact, done, listed, written_page
from ...arguments import DEFAULT, UINT64, Parser, UsageError, path
from ...formats import lacking
from ...loading import current_folder, load_rules, load_run

if TYPE_CHECKING:
    from ....report.write import Written

HELP = """
Write an HTML page that shows one run, or compares several.

MODULE is in the current folder, or installed.

examples:
  dgrr report run.dgrr                          write report.html
  dgrr report old.dgrr new.dgrr -o both.html    show both, and where they part
  dgrr report run.dgrr --model train:run        prove every gradient, rebuild three steps node by node
  dgrr report run.dgrr --watch                  update the page while the run goes on
"""


def add_arguments(parser: Parser) -> None:
    traces = "traces to show; the others are compared with the first, to which --model belongs"
    parser.add_argument("paths", type=path, nargs="+", metavar="TRACE", help=traces)
    parser.new_file(f"page to write, replacing a file of that name; {DEFAULT}", "PAGE", default="report.html")
    parser.model("prove every gradient and rebuild whole steps with this function, which returns (loss_fn, batches)")
    rebuild = "step to rebuild; can be given several times; default: the first, the last, the largest gradient's"
    parser.number("--rebuild", 0, UINT64, "K", rebuild, action="append", default=[])
    parser.rules()
    parser.mode()
    watch = "rewrite the page every SECONDS while a run goes on, default 10; proofs come when it ends"
    parser.number("--watch", 1, 86400, "SECONDS", watch, nargs="?", const=10)


def run(args: argparse.Namespace) -> Answer:
    """Write the page; with ``--watch`` again and again, until every run is finished."""
    from ....report.write import write_report

    for given in args.paths:
        if os.path.exists(given) and version_of(given) == 1:
            raise UsageError(f"argument TRACE: {lacking('report', given)}")
    if args.rebuild and args.model is None:
        raise UsageError("argument --rebuild: a trace holds no tape: it requires --model, which recomputes the step")
    rules = load_rules(args.rule)
    make_run = None if args.model is None else partial(load_run, args.model)
    options: dict[str, Any] = {"make_run": make_run, "rules": rules, "rebuild": args.rebuild or None}
    options["mode"] = args.mode or "replay"
    if args.watch is not None:
        _watch(args, partial(write_report, rules=rules, refresh=float(args.watch)))
    return _answered(_written(partial(write_report, args.paths, args.out, progress=True, **options)))


def _watch(args: argparse.Namespace, write: Callable[..., "Written"]) -> None:
    """Write the page whenever the traces have grown, until every run is finished; nothing is recomputed meanwhile."""
    seen = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsealedTraceWarning)  # that is what is watched
        while True:
            began = time.monotonic()
            paths = [_current(path) for path in args.paths]
            sizes = {path: os.stat(path).st_size for path in paths if os.path.exists(path)}
            if sizes != seen:
                seen = sizes
                if _finished(paths, partial(write, paths, args.out)):
                    return
            time.sleep(max(float(args.watch), 4 * (time.monotonic() - began)))


def _finished(paths: Sequence[str], write: Callable[[], "Written"]) -> bool:
    """Write the page; whether every run was sealed. A file that was given its final name meanwhile is not."""
    try:
        return _written(write).sealed
    except TraceFileError:
        if all(os.path.exists(path) or not path.endswith(PARTIAL_SUFFIX) for path in paths):
            raise
        return False


def _current(path: str) -> str:
    """The file of the run that goes on, if there is one: a finished one of that name is of an earlier run."""
    unfinished = f"{path}{PARTIAL_SUFFIX}"
    return unfinished if os.path.exists(unfinished) else path


def _written(write: Callable[[], "Written"]) -> "Written":
    try:
        with current_folder():  # where the model may import more
            return write()
    except ModuleNotFoundError as error:
        if error.name != "bokeh":
            raise
        raise UsageError(str(error).removeprefix("write_report: ")) from None
    except ValueError as error:
        text = str(error).removeprefix("write_report: ")
        for name in ("out", "rebuild"):
            text = text.replace(f"argument '{name}'", f"argument --{name}", 1)
        raise UsageError(text) from error


def _answered(page: "Written") -> Answer:
    runs = [{"path": p.path, "verdict": p.verdict.value, "steps": p.steps} for p in page.proofs]
    differences = [
        {"path": found.b, "same": found.same, "step": found.step, "sentence": found.sentence}
        for found in page.comparisons
    ]
    rebuilt = f"  steps rebuilt: {', '.join(map(str, page.rebuilt))}" if page.rebuilt else ""
    return done(
        written_page("out", page.path, page.nbytes),
        Fact("bytes", page.nbytes),
        Fact("runs", runs, listed(f"{run['path']}: {run['verdict']}, {run['steps']} steps" for run in runs)),
        Fact("differences", differences, listed(f"{each['path']}: {each['sentence']}" for each in differences)),
        Fact("rebuilt", page.rebuilt, rebuilt),
    )
