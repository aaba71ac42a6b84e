"""``dgrr export``: what a trace has recorded of its steps, as a file for other programs."""

import argparse
import os
from typing import Any

from ..exporting.files import export
from ..v2.read.reader import Form, open_trace
from .answer import Answer, done
from .arguments import UsageError


def run(path: str, args: argparse.Namespace) -> Answer:
    """Write a table of the steps."""
    require_new(args.out)
    form: Form = args.form or "wide"
    try:
        with open_trace(path, mode="tolerate_tail") as trace:
            export(trace, args.out, args.format, form=form)
            steps = f"{len(trace)} steps of {trace.path}"
            torn = f"; its tail is missing: {trace.damage}" if trace.damage else ""
    except ModuleNotFoundError as error:
        raise UsageError(f"argument --format: {error}") from None
    return done(result(args, form, None), f"{args.out}: {steps}, as {args.format}, {form}{torn}")


def require_new(out: str) -> None:
    """Refuse a path where something stands. Raises UsageError."""
    if os.path.lexists(out):
        raise UsageError(f"argument --out: {out} is there already")


def result(args: argparse.Namespace, form: str | None, step: int | None) -> dict[str, Any]:
    """What the command answers, of a table in a form or of the weights before a step."""
    return {"format": args.format, "written": args.out, "form": form, "step": step}
