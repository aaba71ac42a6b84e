"""``dgrr export``: what a trace has recorded of its steps, as a file for other programs."""

import argparse
import os
from dataclasses import replace
from typing import Any

from ..exporting.files import export
from ..v2.read.reader import Form, Trace, open_trace
from .answer import Answer, done
from .arguments import UsageError


def run(path: str, args: argparse.Namespace) -> Answer:
    """Write a table of the steps."""
    require_new(args.out)
    form: Form = args.form or "wide"
    try:
        with open_trace(path, mode="tolerate_tail") as trace:
            export(trace, args.out, args.format, form=form)
            steps, missing = f"{len(trace)} steps of {trace.path}", tail_missing(trace)
    except ModuleNotFoundError as error:
        raise UsageError(f"argument --format: {error}") from None
    answer = done(result(args, form, None), f"{args.out}: {steps}, as {args.format}, {form}")
    return replace(answer, error=missing)


def tail_missing(trace: Trace) -> str:
    """What people are told of a trace that ends before its seal; nothing of one that is whole."""
    if trace.sealed and trace.damage is None:
        return ""
    why = "" if trace.damage is None else f" ({trace.damage})"
    return f"{trace.path}: its end is missing{why}: what was written holds its first {len(trace)} whole steps alone"


def require_new(out: str) -> None:
    """Refuse a path where something stands. Raises UsageError."""
    if os.path.lexists(out):
        raise UsageError(f"argument --out: {out} is there already")


def result(args: argparse.Namespace, form: str | None, step: int | None) -> dict[str, Any]:
    """What the command answers, of a table in a form or of the weights before a step."""
    return {"format": args.format, "written": args.out, "form": form, "step": step}
