"""Certificates are not trusted: what is no certificate, contradicts itself or is of another trace is refused."""

import json
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import AuditError, CertificateError, Verdict, audit, check_certificate
from dgrr.trace.file_version import TraceFileError

from .runs import BATCHES, loss_fn, record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, one of them forged, and their certificates."""
    made = tmp_path_factory.mktemp("certificates")
    for name, forged in (("good", ()), ("bad", (5,))):
        path = record(made / name, 12, state=forged, record="digest", keyframe_every=4, state_every=1)
        audit(path, loss_fn, BATCHES, sample=12, nonce=b"n", certificate=made / f"{name}.json")
    return made


Refused = Callable[[Any], CertificateError]


@pytest.fixture
def refused(folder: Path, tmp_path: Path) -> Refused:
    """The error that a certificate of these contents has."""

    def check(value: Any) -> CertificateError:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        (tmp_path / "c.json").write_bytes(data)
        with pytest.raises(CertificateError) as caught:
            check_certificate(tmp_path / "c.json", folder / "good")
        assert str(caught.value).startswith(f"{tmp_path / 'c.json'}: ")
        return caught.value

    return check


def test_a_certificate_is_checked(folder: Path) -> None:
    good, bad = (check_certificate(folder / f"{name}.json", folder / name) for name in ("good", "bad"))
    assert good.ok and good.size == 12 and good.path == str(folder / "good")
    assert bad.verdict is Verdict.UPDATE
    told = json.loads((folder / "bad.json").read_text())
    assert told == bad.to_dict()
    assert [row["verdict"] for row in told["results"]] == ["ok"] * 5 + ["update"] * 3 + ["ok"] * 4
    assert told["results"][6] == {
        "unit": 6,
        "first": 6,
        "last": 6,
        "verdict": "update",
        "text": "the recorded state is not what the rule makes of the gradients",
        "step": 5,
        "tensor": "w",
    }


def test_of_another_trace(folder: Path) -> None:
    with pytest.raises(
        CertificateError, match="it is the certificate of another trace, whose last digest is"
    ) as caught:
        check_certificate(folder / "good.json", folder / "bad")
    assert caught.value.verdict is Verdict.DIVERGED
    (folder / "cut").write_bytes((folder / "good").read_bytes()[:-8])
    with pytest.raises(AuditError, match="torn-tail"):
        check_certificate(folder / "good.json", folder / "cut")
    with pytest.raises(TraceFileError, match="cannot open .*nothing: No such file"):
        check_certificate(folder / "nothing", folder / "good")
    with pytest.raises(TraceFileError, match="it is not a regular file"):
        check_certificate("/dev/zero", folder / "good")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place in a JSON, with what is there."""
    yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(item, (*path, key))


OTHERS: tuple[Any, ...] = (None, True, -1, 0, 7, 1.5, 10**30, "", "ab", "ok", "gradient", [], {}, [[]], {"a": 1})
FREE = {("model",), ("versions", "dgrr"), ("versions", "numba"), ("versions", "numpy")}
"""What nothing can be held against."""


def test_no_place_can_be_changed(folder: Path, refused: Refused) -> None:
    told = json.loads((folder / "good.json").read_text())
    told_of = [
        place for place in leaves(told) if place[0] and (place[0][0] != "results" or place[0][1:2] in ((), (3,)))
    ]
    assert len(told_of) > 50
    for path, was in told_of:
        for other in OTHERS:
            changed, at = deepcopy(told), path
            place = changed
            for key in at[:-1]:
                place = place[key]
            if json.dumps(other) == json.dumps(was) or (path in FREE and isinstance(other, str)):
                continue
            place[at[-1]] = other
            error = refused(changed)
            about_another = path[0] == "trace" and error.verdict is Verdict.DIVERGED
            assert about_another or error.verdict is Verdict.CORRUPT, (path, other)


@pytest.mark.parametrize("key", ["trace", "nonce", "sample", "results", "claims", "versions", "certificate"])
def test_nothing_can_be_left_out_or_added(folder: Path, refused: Refused, key: str) -> None:
    told = json.loads((folder / "good.json").read_text())
    del told[key]
    refused(told)
    refused({**told, key: None, "more": 1})


def test_a_verdict_cannot_be_improved(folder: Path, tmp_path: Path) -> None:
    told = json.loads((folder / "bad.json").read_text())
    for row in told["results"]:
        row |= {"verdict": "ok", "text": None, "step": None, "tensor": None}
    (tmp_path / "c.json").write_text(json.dumps(told))
    with pytest.raises(CertificateError, match="it contradicts itself: 'verdict' is not what follows"):
        check_certificate(tmp_path / "c.json", folder / "bad")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "not a certificate of an audit: Expecting value"),
        (b"\xff\xfe", "not a certificate of an audit: "),
        (b"[]", "the certificate: expected an object, got a list"),
        (b"{}", "expected 'certificate': 1, got None"),
        (b'{"certificate": 2}', "expected 'certificate': 1, got 2"),
        (b'{"certificate": 1}', "expected the keys certificate, challenge, claims, complete, model, "),
        (b'{"a": 1, "a": 1}', "an object has a key twice"),
        (b'{"certificate": NaN}', "expected numbers, got NaN"),
        (b"[" * 9000, "JSON nested more than 4 deep, or with brackets that do not match"),
        (b"[" * 5 + b"]" * 5, "JSON nested more than 4 deep"),
        (b"[" + b"[]," * 20_000 + b"[]]", "at most 10016 lists and objects in the JSON"),
        (b"[" + b"1," * 200_000 + b"1]", "at most 90256 commas in the JSON"),
        (b'{"certificate": ' + b"9" * 5000 + b"}", "not a certificate of an audit: "),
        (b'{"certificate": 1e999}', "expected 'certificate': 1, got a long number"),
        (b" " * (8 << 20) + b" ", "more than 8388608 bytes"),
        (b'"' + b"\\" * 1_000_000, "not a certificate of an audit: "),
    ],
    ids=lambda x: str(x)[:20],
)
def test_nonsense_is_refused_at_once(refused: Refused, data: bytes, text: str) -> None:
    began = time.perf_counter()
    assert text in str(refused(data))
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("trace", "steps"), 10**40, "trace: steps: expected 0 to 2^64 - 1, got a long number"),
        (("trace", "steps"), True, "trace: steps: expected int, got True"),
        (("trace", "state_every"), 0, "state_every: expected at least 1"),
        (("trace", "root"), "xy", "root: expected 1 to 32 bytes in hexadecimal digits, got 'xy'"),
        (("nonce",), "00" * 65, "nonce: expected 1 to 64 bytes in hexadecimal digits"),
        (("nonce",), "aa", "it contradicts itself: 'challenge' is not what follows from trace, nonce and results"),
        (("sample",), [0] * 13, "a sample of 13 of 12 units"),
        (("sample",), [], "a sample of 0 of 12 units"),
        (("model",), 3, "model: expected a text, got 3"),
        (("versions", "numerics"), 99, "numerics 99 computes no steps of numerics"),
        (("results", 0, "unit"), 1, "a result of unit 1, which is not in the sample, or is there twice"),
        (("results", 0, "verdict"), "fine", "'fine' is not a valid Verdict"),
        (("claims", 0, "passes"), 0.5, "it contradicts itself: 'claims' is not"),
        (("complete",), False, "it contradicts itself: 'complete' is not"),
    ],
)
def test_each_error_says_what_is_wrong(
    folder: Path, refused: Refused, path: tuple[Any, ...], value: Any, text: str
) -> None:
    told = json.loads((folder / "good.json").read_text())
    place = told
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert text in str(refused(told))
