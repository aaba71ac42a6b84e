"""CALLS in the packed form: each digest once, the text as a stream of zlib, for readers of version 4."""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from dgrr.base.runs.called_op import CalledOp
from dgrr.base.runs.keep import Keep
from dgrr.tape import DomainError
from dgrr.trace import open_recorder, open_trace, recover, validate
from dgrr.trace.v2.format import header
from dgrr.trace.v2.format.documents import calls as documents
from dgrr.trace.v2.format.documents.calls import decode_packed_calls, encode_calls, encode_packed_calls
from dgrr.trace.v2.format.limits import Limits

from ..format.minimal import Minimal
from ..read.test_op_frames import frame
from .test_told_frames import go_on, run_of

A, B, G = (bytes([i]) * 16 for i in range(3))
CALLS = (
    CalledOp("aten.mul.Tensor", "other=2.0", (A, A), (B,), scope="fc1", place="net.py:1: y = x * 2.0"),
    CalledOp("aten.bernoulli_.float", "p=0.9", (B,), (A,), draws=True, generator=G),
    CalledOp("aten.mul.Tensor", "", (A, B), (), "backward", raised=True),
)


def recorded(path: Path, **options: Any) -> Path:
    given: dict[str, Any] = {"salt": bytes(16), "created_at": 0, "ops": "first"} | options
    with open_recorder(Keep(path, **given), replace(run_of(), calls=True)) as recorder:
        recorder.calls(0, CALLS[:1])
        recorder.calls(1, CALLS[1:])
        go_on(recorder, 2, None)
    return path


def test_they_are_read_by_two_readers_and_copied(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t")
    recover(path, tmp_path / "new")
    for each in (path, tmp_path / "new"):
        with open_trace(each) as trace:
            assert trace.calls(0) == CALLS and trace.header.reader == 4
        assert validate(each).ok
    assert Minimal(path.read_bytes()).calls[0] == [
        ([c.name, c.options, c.phase, c.scope, c.place], flags, [*c.inputs], [*c.outputs])
        for c, flags in zip(CALLS, (0, 1 + 4, 2), strict=True)
    ]


def test_each_digest_is_there_once() -> None:
    text, digests = encode_packed_calls(CALLS)
    assert digests == [A, B, G]
    assert json.loads(zlib.decompress(text))["digests"] == [0, 1, 0, 0, 2, 3, 3, 2]
    assert decode_packed_calls(text, digests, Limits()) == CALLS
    many = CALLS * 200
    assert len(encode_packed_calls(many)[0]) < len(encode_calls(many)[0]) / 20


def test_an_older_reader_refuses_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded(tmp_path / "t")
    monkeypatch.setattr(header, "READER", 3)
    assert "unsupported: it needs a reader of version 4 with digest 1 and record mode" in str(validate(path))


def surgery(path: Path, at: int, data: bytes) -> Path:
    """Another header, with its CRC."""
    whole = bytearray(path.read_bytes())
    whole[at : at + len(data)] = data
    whole[252:256] = crc32(whole[:252]).to_bytes(4, "little")
    path.write_bytes(whole)
    return path


def test_a_reader_that_is_still_to_come_is_asked_for(tmp_path: Path) -> None:
    said = str(validate(surgery(recorded(tmp_path / "t"), 12, b"\7\0")))
    assert "unsupported: it needs a reader of version 7" in said


@pytest.mark.parametrize(
    ("form", "calls", "text"),
    [
        (1, False, "its form is 1, which a reader of version 2 does not know"),
        (2, True, "its form is 2, which a reader of version 4 does not know"),
        (0, True, "unsealed"),
    ],
)
def test_a_form_that_the_header_does_not_ask_for(tmp_path: Path, form: int, calls: bool, text: str) -> None:
    recorder = open_recorder(Keep(tmp_path / "t", ops="first", salt=bytes(16)), replace(run_of(), calls=calls))
    recorder.close()
    data = (tmp_path / "t.partial").read_bytes()
    packed, digests = (encode_packed_calls if form else encode_calls)(CALLS)
    words = (0, len(packed), len(digests), form)
    front = b"".join(word.to_bytes(4, "little") for word in words) + packed + b"".join(digests)
    (tmp_path / "lie").write_bytes(data + frame(data[-16:], 134, 3, 0, front)[0])
    assert text in str(validate(tmp_path / "lie"))


ROW, TEXTS = [0, 1, 2, 1, 1, 0, 1, 1], ["mul", "", "forward"]


def told(**other: Any) -> bytes:
    return json.dumps(
        {"calls": [ROW], "digests": [0, 1], "texts": TEXTS} | other, separators=(",", ":"), sort_keys=True
    ).encode()


@pytest.mark.parametrize(
    ("text", "text_of"),
    [
        (zlib.compress(told()), ""),
        (zlib.compress(told(digests=[0, 0])), "it has fewer digests than its calls"),
        (zlib.compress(told(digests=[0])), "it has fewer digests than its calls"),
        (zlib.compress(told(digests=[0, 2])), "digest 1 of its calls is said to be that of 2 new ones ago, of 1"),
        (zlib.compress(told(digests=[0, True])), "a call is not a list of numbers"),
        (zlib.compress(told(digests=3)), "a call is not a list of numbers"),
        (zlib.compress(told(digests=[0, 1, 1])), "the JSON is not canonical, or not that of the digests"),
        (zlib.compress(told(more=1)), "expected an object with calls and digests and texts"),
        (zlib.compress(told(calls=[[*ROW[:5], 8, 1, 1]])), "a call has not the fields of a call"),
        (zlib.compress(told() + b" "), "the JSON is not canonical"),
        (told(), "incorrect header check"),
        (zlib.compress(told())[:-1], "its stream of zlib has no end, more behind it, or more than"),
        (zlib.compress(told()) + b"x", "its stream of zlib has no end, more behind it, or more than"),
    ],
)
def test_packed_calls_that_lie(text: bytes, text_of: str) -> None:
    if not text_of:
        assert len(decode_packed_calls(text, [A], Limits())) == 1
        return
    with pytest.raises(DomainError, match=f"it cannot be read: .*{text_of}"):
        decode_packed_calls(text, [A], Limits())


def test_what_grows_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_UNPACKED", 1000)
    with pytest.raises(DomainError, match="or more than 1000 bytes"):
        decode_packed_calls(zlib.compress(bytes(1 << 20)), [], Limits())
