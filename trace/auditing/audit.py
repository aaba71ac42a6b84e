"""An audit: steps of a run, drawn so that nobody can choose them, computed again and held against its trace."""

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from time import monotonic

import numpy as np

from ... import __version__
from ...base.errors import DomainError
from ...base.system import FilePath
from ...tape import NUMERICS
from ..progress import showing
from ..replaying.execution import Batches, LossFn
from ..replaying.expected import Expected
from ..replaying.recomputed import RunMode, require_mode
from ..replaying.replay_state import Rules, by_name
from ..v2.check.report import Finding
from ..v2.errors import NotRecordedError
from ..v2.format.digest import Algorithm
from ..v2.read.reader import TraceReader, open_reader
from ..v2.verdict import Verdict
from .certificate import Audit, AuditedTrace, require_nonce, require_sample
from .check import require_same
from .examine import counted, stretches
from .read_certificate import CertificateError, read_certificate
from .subject import AuditError, audited_trace
from .work import AuditedRun, Result, results

_SAMPLE = 32
_NONCE = 16
_SAVE_EVERY = 1.0
"""Seconds between two writings of a certificate that is not complete."""

_NO_FORGER = "its digests, XXH3-128, stop no forger: record with SHA-256 if you fear one"
_BARE = (
    "audit: a trace of record mode 'bare' holds no states to start from: compare it with the run computed now, "
    "diff_with_model(…, params=…), or record mode 'digest'"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """How an audit is to be done: the options of `audit`."""

    sample: int | None = None
    nonce: bytes | None = None
    jobs: int = 1
    certificate: str | None = None
    resume: bool = False
    expected: Expected = field(default_factory=Expected)
    progress: bool = False

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise DomainError(f"audit: argument 'jobs': expected at least 1, got {self.jobs}")
        if self.resume and self.certificate is None:
            raise DomainError("audit: argument 'resume': expected the certificate to continue; pass its file")
        if self.nonce is not None:
            require_nonce(self.nonce)
        require_sample(1, self.sample or _SAMPLE)


def audit(
    path: FilePath,
    loss_fn: LossFn,
    batches: Batches,
    *,
    sample: int | None = None,
    nonce: bytes | None = None,
    jobs: int = 1,
    certificate: FilePath | None = None,
    resume: bool = False,
    mode: RunMode = "replay",
    rules: Rules = (),
    seed: int | None = None,
    numerics: int | None = None,
    progress: bool = False,
) -> Audit:
    """Recompute a random sample of the steps of a recorded run, and say what that proves about the others.

    First the trace is validated. Then units are drawn from its last digest and a nonce; a unit is a step, or the steps
    between two recorded states. Each unit starts from the nearest KEYFRAME at or before it; the steps on the way are
    recomputed, or their recorded gradients applied. Batches, losses, gradients, updates and states are compared with
    the record, on the way too. A forged unit, whose record differs from what the model computes from the state before
    it, is found if it is drawn. `Audit` gives the probability that none would have been drawn.

    Args:
        path: the trace, which must be sealed.
        loss_fn: the function the run was trained with.
        batches: the batches of the run, from its beginning; iterated again when they end, epoch after epoch.
        sample: number of units to draw, by default 32; all, if there are fewer.
        nonce: 1 to 64 bytes that the maker of the trace did not know when making it. Without it, 16 are drawn.
        jobs: number of processes. More than one need a `loss_fn` and `batches` that can be pickled. No result depends
            on it.
        certificate: a new file for the certificate; it is written as units are done, at most every second.
        resume: continue the certificate in that file, if it exists, with its sample and nonce.
        mode: how to recompute steps, as for `replay`.
        rules: classes of rules that are not built in, as for `replay`.
        seed: the known seed of the run, as for `replay`.
        numerics: its known numerics version.
        progress: whether a bar is shown on a terminal.

    Raises:
        AuditError: the trace is not in order or not sealed, or of another numerics version; or a process died.
        NotRecordedError: the trace holds no states: its record mode is "bare".
        CertificateError: the certificate to continue cannot be read, or belongs to another audit.
        DomainError: another mode; an argument is out of its range, or cannot be pickled for several processes.
        TraceFileError, OSError: a file cannot be read or written.

    A faulty step raises nothing: it is in the answer. After Ctrl-C, the certificate holds what was done.

    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Keep, Trainer
    >>> def loss_fn(p, x):
    ...     return (p["w"] * x).sum()
    >>> with TemporaryDirectory() as folder:
    ...     run = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.5), trace=Keep(f"{folder}/run", keyframe_every=5))
    ...     _ = run.fit([np.ones(2)], steps=20)
    ...     found = audit(f"{folder}/run", loss_fn, [np.ones(2)], sample=4, nonce=b"drawn by dice")
    >>> found.ok, len(found.sample), found.complete
    (True, 4, True)
    """
    file = None if certificate is None else os.fspath(certificate)
    asked = Asked(sample, nonce, jobs, file, resume, Expected(seed, numerics), progress)
    require_mode("audit", mode)
    name = getattr(loss_fn, "__qualname__", type(loss_fn).__name__)
    return audit_run(AuditedRun(os.fspath(path), partial(_made, loss_fn, batches), tuple(rules), mode), name, asked)


def _made(loss_fn: LossFn, batches: Batches) -> tuple[LossFn, Batches]:
    return loss_fn, batches


def audit_run(run: AuditedRun, model: str, asked: Asked) -> Audit:
    """The same of a run that is made in each process; `model` names it in the certificate."""
    by_name(run.rules)
    trace_of = audited_trace(run.path, asked.expected)
    _require_pickled(run, asked.jobs)
    found = _begun(trace_of, model, asked)
    with open_reader(run.path) as trace:
        _require_computable(trace)
        units = trace_of.units
        left = stretches(trace, units, [unit for unit in found.sample if unit not in found.found])
        steps = counted(trace, units, left).executed
        found.notes.append(f"{steps} of {trace_of.steps} steps computed, from {len(left)} recorded states")
        if trace.header.algorithm is not Algorithm.SHA256:
            found.notes.append(_NO_FORGER)
        new = results(trace, run, units, left, asked.jobs)
        _keep(found, showing(new, "audit", found.size, wanted=asked.progress, done=len(found.found)), asked.certificate)
    found.path = run.path
    return found


def _require_computable(trace: TraceReader) -> None:
    if not trace.header.mode.has_keyframes:
        raise NotRecordedError(_BARE)
    if trace.header.numerics != NUMERICS:
        text = f"recorded under numerics version {trace.header.numerics}, this library has {NUMERICS}"
        raise AuditError(Finding(Verdict.NUMERICS, f"{text}: no step can be recomputed"))


def _begun(trace: AuditedTrace, model: str, asked: Asked) -> Audit:
    """The audit before its first unit, or as its certificate holds it."""
    size = require_sample(len(trace.units), asked.sample or _SAMPLE)
    versions = {"dgrr": __version__, "numerics": NUMERICS, "numba": version("numba"), "numpy": np.__version__}
    new = Audit(trace, asked.nonce or secrets.token_bytes(_NONCE), size, model, versions)
    if asked.certificate is None or not os.path.lexists(asked.certificate):
        return new
    if not asked.resume:
        raise DomainError(f"audit: argument 'certificate': {asked.certificate} already exists; resume continues it")
    earlier = read_certificate(asked.certificate)
    require_same(asked.certificate, earlier, trace)
    nonce = asked.nonce or earlier.nonce
    size = earlier.size if asked.sample is None else size
    for key, mine, other in (
        ("model", model, earlier.model),
        ("versions", versions, earlier.versions),
        ("nonce", nonce.hex(), earlier.nonce.hex()),
        ("sample", size, earlier.size),
    ):
        if mine != other:
            text = f"it cannot be continued: its {key} is {other}, and this audit has {mine}"
            raise CertificateError(asked.certificate, text, Verdict.DIVERGED)
    return earlier


def _require_pickled(run: AuditedRun, jobs: int) -> None:
    problem = run.unpicklable() if jobs > 1 else None
    if problem is not None:
        raise DomainError(
            f"audit: argument 'jobs': {jobs} processes need a loss function, batches and rules that can be pickled, "
            f"such as those of a module: {problem}"
        )


def _keep(found: Audit, results: Iterable[Result], certificate: str | None) -> None:
    """Take over results as they come, and let the certificate hold them, also where an error or Ctrl-C ends it."""
    if certificate is None:
        found.found.update(results)
        return
    found.save(certificate)  # before hours of work, since it holds the nonce and may be refused
    saved = monotonic()
    try:
        for unit, finding in results:
            found.found[unit] = finding
            if monotonic() - saved >= _SAVE_EVERY:
                found.save(certificate)
                saved = monotonic()
    finally:
        found.save(certificate)
