"""``dgrr audit``: recompute steps of a run, drawn at random, and check certificates of that."""

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ....exit_codes import Exit
from ...answer import Answer, Fact, failed, judged
from ...arguments import DEFAULT, Parser, UsageError, integer, nonce_bytes, path
from ...formats import require_answer
from ...loading import load_rules, load_run, users_code

if TYPE_CHECKING:
    from ....auditing.certificate import Audit

HELP = """
Recompute a random sample of steps, and say what it proves about the others.

MODULE is in the current folder, or installed.

examples:
  dgrr audit run.dgrr --model train:run -o certificate.json            32 steps, drawn now
  dgrr audit run.dgrr --model train:run -o certificate.json --resume   continue after Ctrl-C
  dgrr audit run.dgrr --check certificate.json                         does it belong to this trace?
"""

_MAX_SAMPLE = 10_000
_MAX_JOBS = 1024


def add_arguments(parser: Parser) -> None:
    parser.trace()
    what = parser.add_mutually_exclusive_group(required=True)
    model = "function that returns (loss_fn, batches)"
    what.add_argument("--model", metavar="MODULE:FUNCTION", help=model)
    check = "check this certificate against the trace, without computing anything"
    what.add_argument("--check", type=path, metavar="CERTIFICATE", help=check)
    parser.rules()
    parser.mode()
    sample = "number of units to draw: steps, or the spans between two recorded states; default: 32"
    parser.add_argument("--sample", type=integer(1, _MAX_SAMPLE), metavar="N", help=sample)
    nonce = "number that the maker of the trace did not know, in hexadecimal digits; default: drawn now, and shown"
    parser.add_argument("--nonce", type=nonce_bytes, metavar="HEX", help=nonce)
    parser.number("--jobs", 1, _MAX_JOBS, "N", f"number of processes; {DEFAULT}", default=1)
    parser.new_file("write the certificate to this new JSON file", "CERTIFICATE")
    resume = "continue the certificate of --out, if it exists"
    parser.add_argument("--resume", action="store_true", help=resume)
    parser.seed_and_numerics()


def run(args: argparse.Namespace) -> Answer:
    """Draw and compute, or check a certificate against the trace."""
    require_answer(args, args.path)
    if args.check is not None:
        for option in ("rule", "mode", "sample", "nonce", "out", "resume", "seed", "numerics"):
            if getattr(args, option) is not args.parser.get_default(option):
                args.parser.error(f"argument --{option}: not allowed with argument --check")
    if args.resume and args.out is None:
        args.parser.error("argument --resume: it requires --out, the certificate to continue")
    from ....auditing.check import check_certificate
    from ....auditing.read_certificate import CertificateError
    from ....auditing.work import WorkerError

    try:
        found = _audited(args) if args.check is None else check_certificate(args.check, args.path)
    except CertificateError as error:
        return failed(error.verdict.exit_code, str(error), error.verdict.value)
    except WorkerError as error:
        return failed(Exit.UNPROVEN, f"{args.path}: {error}")
    except KeyboardInterrupt:
        return failed(Exit.INTERRUPTED, f"interrupted{_kept(args.out)}")
    facts = Fact("certificate", found), Fact("written", args.out), Fact("notes", found.notes)
    return judged(found, *facts, answers=found.ok)


def _audited(args: argparse.Namespace) -> "Audit":
    from ....auditing.audit import Asked, audit_run
    from ....auditing.work import AuditedRun
    from ....replaying.expected import Expected

    if args.out is not None and not args.resume and os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} already exists: --resume continues it")
    rules = load_rules(args.rule)
    make: Callable[[], Any] = partial(load_run, args.model)
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
    run = AuditedRun(args.path, make if args.jobs > 1 else lambda: loaded, rules, args.mode or "replay")
    with users_code():  # in other processes too
        return audit_run(run, args.model, asked)


def _kept(certificate: str | None) -> str:
    """How far an interrupted audit has come."""
    from ....auditing.read_certificate import read_certificate

    if certificate is None or not os.path.exists(certificate):
        return ""
    found = read_certificate(certificate)
    return f"; {certificate} has {len(found.found)} of {found.size} units, and --resume continues it"
