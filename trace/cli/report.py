"""``dgrr report``: one HTML file that shows a run, or several; with ``--watch`` a run that still goes on."""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..file_version import TraceFileError, version_of
from ..replaying.execution import Batches, LossFn
from ..report.write import Written, write_report
from ..v2.errors import UnsealedTraceWarning
from ..v2.format.constants import PARTIAL_SUFFIX
from .answer import Answer, done
from .arguments import UsageError
from .loading import current_folder, load_run
from .v2 import load_rule


def run(args: argparse.Namespace) -> Answer:
    """Write the page; with ``--watch`` again and again, until every run is finished."""
    for path in args.paths:
        if os.path.exists(path) and version_of(path) == 1:
            raise UsageError(f"argument TRACE: {path} is of version 1, whose steps dgrr inspect shows")
    if args.rebuild and args.model is None:
        raise UsageError(
            "argument --rebuild: a trace holds no tape: it goes with --model, which computes the step again"
        )
    rules = [load_rule(rule) for rule in args.rule]
    make_run = None if args.model is None else _maker(args.model)
    options: dict[str, Any] = {"make_run": make_run, "rules": rules, "rebuild": args.rebuild or None}
    options["mode"] = args.mode or "replay"
    if args.watch is not None:
        _watch(args, options)
    return _answered(_written(partial(write_report, args.paths, args.out, progress=True, **options)))


def _maker(model: str) -> Callable[[], tuple[LossFn, Batches]]:
    return lambda: load_run("--model", model)


def _watch(args: argparse.Namespace, options: dict[str, Any]) -> None:
    """Write the page whenever the traces have grown, until every run is finished; nothing is recomputed meanwhile."""
    seen, wait = None, float(args.watch)
    more = {"rules": options["rules"], "refresh": wait}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsealedTraceWarning)  # that is what is watched
        while True:
            began = time.monotonic()
            paths = [_current(path) for path in args.paths]
            sizes = {path: os.stat(path).st_size for path in paths if os.path.exists(path)}
            if sizes != seen:
                seen = sizes
                if _finished(paths, partial(write_report, paths, args.out, **more)):
                    return
            time.sleep(max(wait, 4 * (time.monotonic() - began)))


def _finished(paths: Sequence[str], write: Callable[[], Written]) -> bool:
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


def _written(write: Callable[[], Written]) -> Written:
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


def _answered(page: Written) -> Answer:
    lines = [f"{page.path}: {page.nbytes:,} bytes, open it in a browser"]
    lines += [f"  {proofs.path}: {proofs.verdict.value}, {proofs.steps} steps" for proofs in page.proofs]
    lines += [f"  {found.b}: {found.sentence}" for found in page.comparisons]
    if page.rebuilt:
        lines.append(f"  steps rebuilt: {', '.join(map(str, page.rebuilt))}")
    runs = [{"path": p.path, "verdict": p.verdict.value, "steps": p.steps} for p in page.proofs]
    differences = [
        {"path": found.b, "same": found.same, "step": found.step, "sentence": found.sentence}
        for found in page.comparisons
    ]
    result = {"out": page.path, "bytes": page.nbytes, "runs": runs, "differences": differences}
    return done({**result, "rebuilt": list(page.rebuilt)}, "\n".join(lines))
