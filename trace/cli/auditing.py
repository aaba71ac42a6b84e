"""``dgrr audit``: steps of a run drawn and computed again, and certificates of that checked."""

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from ..auditing.audit import Asked, audit_run
from ..auditing.certificate import Audit
from ..auditing.check import check_certificate
from ..auditing.read_certificate import CertificateError, read_certificate
from ..auditing.subject import AuditError
from ..auditing.work import AuditedRun, WorkerError
from ..exit_codes import Exit
from ..replaying.expected import Expected
from ..v2.errors import NotRecordedError
from .answer import Answer, failed
from .arguments import UsageError
from .loading import current_folder, load_run
from .v2 import load_rule


def run(path: str, args: argparse.Namespace) -> Answer:
    """Draw and compute, or hold a certificate against the trace."""
    try:
        found = check_certificate(args.check, path) if args.check is not None else _audited(path, args)
    except AuditError as error:
        verdict = error.finding.verdict
        return failed(verdict.exit_code, f"{path}: {error.finding}", verdict.value)
    except CertificateError as error:
        return failed(error.verdict.exit_code, str(error), error.verdict.value)
    except (NotRecordedError, WorkerError) as error:
        return failed(Exit.UNPROVEN, f"{path}: {error}")
    except KeyboardInterrupt:
        return failed(Exit.INTERRUPTED, f"interrupted{_kept(args.out)}")
    result = {"certificate": found.to_dict(), "written": args.out, "notes": found.notes}
    stream = {"text" if found.ok else "error": str(found)}
    return Answer(found.exit_code, found.verdict.value, result, **stream, before="")


def _audited(path: str, args: argparse.Namespace) -> Audit:
    if args.out is not None and not args.resume and os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} is there already: --resume goes on with it")
    rules = [load_rule(rule) for rule in args.rule]
    make: Callable[[], Any] = partial(load_run, "--model", args.model)
    loaded = make()  # what is wrong with it is told from here
    asked = Asked(
        sample=args.sample,
        nonce=args.nonce,
        jobs=args.jobs,
        certificate=args.out,
        resume=args.resume,
        expected=Expected(args.seed, args.numerics),
        progress=True,
    )
    run = AuditedRun(path, make if args.jobs > 1 else lambda: loaded, rules, args.mode or "replay")
    try:
        with current_folder():  # where the model may import more, in other processes too
            return audit_run(run, args.model, asked)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _kept(certificate: str | None) -> str:
    """How far an interrupted audit has come."""
    if certificate is None or not os.path.exists(certificate):
        return ""
    found = read_certificate(certificate)
    return f"; {certificate} has {len(found.found)} of {found.size} units, and --resume goes on with them"
