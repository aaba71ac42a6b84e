"""Reading a certificate without trusting it: within limits, of the right types, and true to itself."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...base import system
from ...base.errors import DgrrError, DomainError
from ...base.system import FilePath
from ..exit_codes import Exit
from ..file_version import TraceFileError, open_regular
from ..v2.check.report import Finding
from ..v2.format.limits import check_marks
from ..v2.verdict import Verdict
from .certificate import LONGEST_NONCE, MOST_UNITS, VERSION, Audit, AuditedTrace

_MOST_BYTES = 8 << 20
_DEPTH = 4
_HEX = re.compile(r"(?:[0-9a-f]{2})+")
_LARGEST = (1 << 64) - 1
_KEYS = frozenset(Audit(AuditedTrace("", "", "", "", 0, 1, 0, 0), b"", 0, "", {}).to_dict())
_TRACE = {
    "root": str,
    "state_chain": str,
    "digest": str,
    "mode": str,
    "steps": int,
    "state_every": int,
    "seed": int,
    "numerics": int,
}
_VERSIONS = {"dgrr": str, "numerics": int, "numba": str, "numpy": str}
_RESULT = {"unit": int, "first": int, "last": int, "verdict": str, "text": str, "step": int, "tensor": str}
_MAY_BE_NULL = ("text", "step", "tensor")


class CertificateError(DgrrError):
    """A certificate cannot be read, or contradicts itself."""

    def __init__(self, path: str, text: str, verdict: Verdict = Verdict.CORRUPT) -> None:
        super().__init__(f"{path}: {text}")
        self.verdict = verdict


def read_certificate(path: FilePath) -> Audit:
    """The audit that a certificate tells of; what it derives from trace, nonce and results is derived again.

    Raises:
        CertificateError: it is no certificate, of another version, larger than any, or contradicts itself.
        TraceFileError: the file cannot be read.
    """
    name = os.fspath(path)
    data = _read(name)
    try:
        return _parsed(data)
    except (ValueError, RecursionError) as error:
        raise CertificateError(name, f"not a certificate of an audit: {error}") from None


def _read(name: str) -> bytes:
    descriptor = open_regular(name)
    try:
        data = system.pread(descriptor, _MOST_BYTES + 1, 0)
    except OSError as error:
        raise TraceFileError(f"{name}: cannot be read: {error.strerror}", Exit.IO) from None
    finally:
        system.release(descriptor)
    if len(data) > _MOST_BYTES:
        raise CertificateError(name, f"not a certificate of an audit: more than {_MOST_BYTES} bytes")
    return data


def _parsed(data: bytes) -> Audit:
    check_marks(data, _DEPTH, MOST_UNITS + 16, 9 * MOST_UNITS + 256)
    value = _object(json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_refuse), "the certificate")
    if value.get("certificate") != VERSION:
        raise DomainError(f"expected 'certificate': {VERSION}, got {_shown(value.get('certificate'))}")
    if value.keys() != _KEYS:
        raise DomainError(f"expected the keys {', '.join(sorted(_KEYS))}")
    audit = _audit(value)
    derived = audit.to_dict()
    for key in derived:
        if json.dumps(value[key], sort_keys=True) != json.dumps(derived[key], sort_keys=True):
            raise DomainError(f"it contradicts itself: {key!r} is not what follows from trace, nonce and results")
    return audit


def _audit(value: dict[str, Any]) -> Audit:
    trace = _fields(value["trace"], "trace", _TRACE)
    for key in ("root", "state_chain"):
        _hex(trace[key], key, 32)
    if trace["state_every"] < 1:
        raise DomainError("state_every: expected at least 1")
    made = AuditedTrace(**trace)
    sample = _list(value["sample"], "sample")
    if len(sample) > min(len(made.units), MOST_UNITS) or not (sample or not made.steps):
        raise DomainError(f"a sample of {len(sample)} of {len(made.units)} units")
    nonce = _hex(value["nonce"], "nonce", LONGEST_NONCE)
    if not isinstance(value["model"], str):
        raise DomainError(f"model: expected a text, got {_shown(value['model'])}")
    versions = _fields(value["versions"], "versions", _VERSIONS)
    if versions["numerics"] != made.numerics:
        raise DomainError(f"numerics {versions['numerics']} computes no steps of numerics {made.numerics}")
    audit = Audit(made, nonce, len(sample), value["model"], versions)
    audit.found = _found(value["results"], frozenset(audit.sample))
    return audit


def _found(value: object, sample: frozenset[int]) -> dict[int, Finding | None]:
    found = dict[int, Finding | None]()
    for item in _list(value, "results"):
        result = _fields(item, "result", _RESULT)
        unit = result["unit"]
        if unit not in sample or unit in found:
            raise DomainError(f"a result of unit {unit}, which is not in the sample, or is there twice")
        verdict = Verdict(result["verdict"])
        told = Finding(verdict, result["text"] or "", result["step"], result["tensor"])
        found[unit] = None if verdict is Verdict.OK else told
    return found


def _fields(value: object, what: str, kinds: Mapping[str, type]) -> dict[str, Any]:
    """An object that has these keys and no others, each of its type."""
    found = _object(value, what)
    if found.keys() != kinds.keys():
        raise DomainError(f"{what}: expected the keys {', '.join(kinds)}")
    for key, kind in kinds.items():
        if type(found[key]) is not kind and not (found[key] is None and key in _MAY_BE_NULL):
            raise DomainError(f"{what}: {key}: expected {kind.__name__}, got {_shown(found[key])}")
        if kind is int and found[key] is not None and not 0 <= found[key] <= _LARGEST:
            raise DomainError(f"{what}: {key}: expected 0 to 2^64 - 1, got {_shown(found[key])}")
    return found


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DomainError(f"{what}: expected an object, got {_shown(value)}")
    return cast(dict[str, Any], value)


def _list(value: object, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise DomainError(f"{what}: expected a list, got {_shown(value)}")
    return cast(Sequence[Any], value)


def _hex(value: object, what: str, longest: int) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value) or len(value) > 2 * longest:
        raise DomainError(f"{what}: expected 1 to {longest} bytes in hexadecimal digits, got {_shown(value)}")
    return bytes.fromhex(value)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise DomainError("an object has a key twice")
    return made


def _refuse(text: str) -> None:
    raise DomainError(f"expected numbers, got {text}")


def _shown(value: object) -> str:
    """A value from a file, in short."""
    kind = type(value)
    if kind in (dict, list):
        return f"a {kind.__name__}"
    text = repr(value) if isinstance(value, str) or abs(cast(Any, value or 0)) < 1 << 64 else "a long number"
    return text if len(text) <= 80 else f"{text[:80]}…"
