"""A certificate held against the trace that it is said to be of."""

import os

from ...base.system import FilePath
from ..replaying.expected import Expected
from ..v2.verdict import Verdict
from .certificate import Audit, AuditedTrace
from .read_certificate import CertificateError, read_certificate
from .subject import audited_trace


def check_certificate(certificate: FilePath, path: FilePath) -> Audit:
    """The audit of a certificate, after checking it against itself and its trace; no step is recomputed.

    The trace is validated. The certificate must name its digests; its sample must follow from them and the nonce, and
    its claims from the sample. If you doubt the results, repeat the audit with the `nonce` of the answer.

    Raises:
        CertificateError: it is no certificate, contradicts itself, or is of another trace.
        AuditError: the trace is not in order or not sealed.
        TraceFileError: a file cannot be read.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> from dgrr.trace import audit
    >>> def loss_fn(p, x):
    ...     return (p["w"] * x).sum()
    >>> with TemporaryDirectory() as folder:
    ...     path, certificate = f"{folder}/run", f"{folder}/certificate.json"
    ...     run = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.5), trace=path)
    ...     _ = run.fit([np.ones(2)], steps=3)
    ...     _ = audit(path, loss_fn, [np.ones(2)], certificate=certificate)
    ...     print(check_certificate(certificate, path).verdict.value)
    ok
    """
    found = read_certificate(certificate)
    require_same(os.fspath(certificate), found, audited_trace(os.fspath(path), Expected()))
    found.path = os.fspath(path)
    return found


def require_same(certificate: str, found: Audit, trace: AuditedTrace) -> None:
    """Raise CertificateError for a certificate of another trace."""
    if found.trace != trace:
        text = f"it is the certificate of another trace, whose last digest is {found.trace.root}, not {trace.root}"
        raise CertificateError(certificate, text, Verdict.DIVERGED)
