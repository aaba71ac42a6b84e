"""Files made to hurt: an error each, in bounded memory and time."""

import json
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import xxhash

from dgrr.trace import InvalidTraceError, Limits, Verdict, validate
from dgrr.trace.v2.format.schema_json import decode_schema

RecordRun = Callable[..., Path]

TENSOR: dict[str, Any] = {"dtype": "f32", "name": "w", "role": "param", "shape": [2]}
GROUP: dict[str, Any] = {"corrections": 0, "hyperparameters": ["lr"], "rule": "sgd@1", "tensors": [0]}
SCHEMA: dict[str, Any] = {"groups": [GROUP], "tensors": [TENSOR]}


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def tensor(**changes: Any) -> bytes:
    return canonical({"groups": [GROUP], "tensors": [TENSOR | changes]})


def group(**changes: Any) -> bytes:
    return canonical({"groups": [GROUP | changes], "tensors": [TENSOR]})


def test_the_plain_schema_is_read() -> None:
    schema = decode_schema(canonical(SCHEMA), Limits())
    assert (schema.tensors[0].name, schema.tensors[0].nbytes, schema.groups[0].rule) == ("w", 8, "sgd@1")
    assert schema.encode() == canonical(SCHEMA)


BUFFER = {"dtype": "i32", "name": "mean", "role": "buffer", "shape": []}
HOSTILE: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"\x00", "schema: "),
    "not UTF-8": (b'{"\xff":1}', "schema: "),
    "a lone surrogate": (canonical(SCHEMA).replace(b'"w"', b'"\\ud800"'), "not valid UTF-8"),
    "a list": (b"[]", "expected an object, got list"),
    "without groups": (b'{"tensors":[]}', "schema: without groups"),
    "white space": (canonical(SCHEMA) + b" ", "not canonical"),
    "an escape": (canonical(SCHEMA).replace(b'"w"', b'"\\u0077"'), "not canonical"),
    "keys out of order": (b'{"tensors":[],"groups":[]}', "not canonical"),
    "a key twice": (b'{"groups":[],"groups":[],"tensors":[]}', "not canonical"),
    "a float": (tensor(shape=[2.0]), "integers only, got 2.0"),
    "a NaN": (b'{"groups":[],"tensors":NaN}', "integers only, got NaN"),
    "a negative size": (tensor(shape=[-1]), "expected an integer from 0"),
    "true as a size": (tensor(shape=[True]), "expected an integer from 0"),
    "a huge integer": (
        tensor(shape=[1]).replace(b'"shape":[1]', b'"shape":[' + b"9" * 5000 + b"]"),
        "schema: ",
    ),
    "a product that overflows": (tensor(shape=[1 << 40, 1 << 40]), "at most 1099511627776 bytes"),
    "zero times too much": (tensor(shape=[0, 1 << 62, 1 << 62]), "at most 1099511627776 bytes"),
    "a rank of 17": (tensor(shape=[1] * 17), "rank at most 16, got 17"),
    "an empty name": (tensor(name=""), "1 to 255 bytes, got 0"),
    "a long name": (tensor(name="é" * 128), "1 to 255 bytes, got 256"),
    "a control character": (tensor(name="a\x7f"), "control characters"),
    "a name that is no string": (tensor(name=1), "expected a string, got int"),
    "an integer param": (tensor(dtype="i64"), "expected a float, got i64"),
    "names twice": (
        canonical({"groups": [GROUP | {"tensors": [0, 1]}], "tensors": [TENSOR, TENSOR]}),
        "unique",
    ),
    "roles out of order": (
        canonical({"groups": [GROUP], "tensors": [BUFFER, TENSOR]}),
        "params must come before",
    ),
    "a tensor in no group": (group(tensors=[]), "exactly one group"),
    "a tensor in two groups": (
        canonical({"groups": [GROUP, GROUP], "tensors": [TENSOR]}),
        "exactly one group",
    ),
    "a tensor that is not there": (group(tensors=[0, 1]), "exactly one group"),
    "a rule without version": (group(rule="sgd"), "expected a name and a version"),
    "hyperparameters twice": (group(hyperparameters=["lr", "lr"]), "hyperparameters must be unique"),
    "too many corrections": (group(corrections=1 << 40), "at most 65536"),
    "too deep": (b"[" * 9 + b"]" * 9, "nested more than 8 deep"),
    "much too deep": (b"[" * (1 << 17), "nested more than 8 deep"),
    "deep behind an escape": (b'{"a\\\\":' + b"[" * 8 + b"]" * 8 + b"}", "nested more than 8 deep"),
    "brackets that do not match": (b'{"groups":[],"tensors":[}]', "schema: "),
    "UTF-16": (canonical(SCHEMA).decode().encode("utf-16"), "schema: "),
    "more brackets than a schema has": (b"[" * (1 << 20), "at most 143363 lists and objects in the JSON, got 1048576"),
    "more commas than a schema has": (b"[" + b"," * 1_500_000, "at most 1458177 commas in the JSON, got 1500000"),
    "too many groups": (
        canonical({"groups": [GROUP | {"tensors": []}] * 4097, "tensors": []}),
        "at most 4096 groups, got 4097",
    ),
    "a long rule": (group(rule="x" * 1000), f"rule '{'x' * 80}'…: expected a name and a version"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas(name: str) -> None:
    data, text = HOSTILE[name]
    with pytest.raises(InvalidTraceError, match=re.escape(text)) as caught:
        decode_schema(data, Limits())
    assert caught.value.verdict is Verdict.CORRUPT


def test_brackets_and_quotes_in_names_are_no_marks() -> None:
    data = tensor(name='[{"' + "\\" * 3 + '"]' * 9 + ",{" * 20)
    assert decode_schema(data, Limits()).encode() == data


def test_limits_of_a_schema_can_be_lowered() -> None:
    for limits, text in (
        (Limits(tensors=0), "at most 0 tensors, got 1"),
        (Limits(groups=0), "at most 0 groups, got 1"),
        (Limits(scalars=0), "at most 0 hyperparameters and corrections, got 1"),
        (Limits(json_depth=3), "nested more than 3 deep"),
    ):
        with pytest.raises(InvalidTraceError, match=text):
            decode_schema(canonical(SCHEMA), limits)


def test_a_schema_at_its_limits_is_read() -> None:
    """No schema that is within the limits has more brackets or commas than are counted."""
    limits = Limits(tensors=2, groups=2, rank=3, scalars=3)
    tensors = [TENSOR | {"name": name, "shape": [1, 2, 3]} for name in "ab"]
    groups = [
        GROUP | {"hyperparameters": ["x", "y", "z"], "rule": "sgd@1", "tensors": [0, 1]},
        GROUP | {"hyperparameters": [], "tensors": []},
    ]
    data = canonical({"groups": groups, "tensors": tensors})
    assert decode_schema(data, limits).encode() == data


HANGS = 5.0
"""Seconds of CPU time: what is read in time proportional to its bytes takes a hundredth, what is not takes hours."""


def refused(data: bytes) -> None:
    with pytest.raises(InvalidTraceError):
        decode_schema(data, Limits())


@pytest.mark.parametrize(
    "piece",
    [b'\\"', b'"', b"\\", b'""', b"[]", b"{}", b",", b'"a",', b"1,", b"[[[[[[[[]]]]]]]],", b'{"":', b'"\\\\"[', b'["'],
)
@pytest.mark.parametrize("before", [b'"', b"", b'{"groups":['])
def test_a_mebibyte_of_anything_is_refused_at_once(before: bytes, piece: bytes) -> None:
    began = process_time()
    refused(before + piece * ((1 << 20) // len(piece)))
    assert process_time() - began < HANGS


def test_as_many_tensors_as_there_may_be_are_read() -> None:
    tensors = [TENSOR | {"name": f"t{i}"} for i in range(65_536)]
    data = canonical({"groups": [GROUP | {"tensors": list(range(65_536))}], "tensors": tensors})
    assert len(decode_schema(data, Limits()).tensors) == 65_536


def test_more_groups_than_there_may_be_are_refused() -> None:
    groups = canonical({"groups": [GROUP | {"hyperparameters": [], "tensors": []}] * 200_000, "tensors": []})
    with pytest.raises(InvalidTraceError, match="schema: at most "):
        decode_schema(groups, Limits())


def test_unknown_keys_and_codes_are_unsupported() -> None:
    for data in (tensor(extra=1), tensor(dtype="f128"), tensor(role="secret"), group(extra=1)):
        with pytest.raises(InvalidTraceError) as caught:
            decode_schema(data, Limits())
        assert caught.value.verdict is Verdict.UNSUPPORTED


def sealed_header(**changes: int) -> bytes:
    """A header with a right CRC; changes by offset: {"u32@8": 255}."""
    head = bytearray(256)
    head[:4] = b"DGRR"
    struct.pack_into("<HHIHH", head, 4, 2, 0, 256, 2, 8)
    head[48:51] = bytes([1, 1, 7])
    struct.pack_into("<I", head, 52, 1)
    struct.pack_into("<Q", head, 64, 1 << 26)
    for place, value in changes.items():
        size, offset = place[1:].split("_")
        head[int(offset) : int(offset) + int(size)] = value.to_bytes(int(size), "little")
    return bytes(head[:252]) + struct.pack("<I", zlib.crc32(head[:252]))


def frame(chain: bytes, kind: int, seq: int, step: int, front: bytes, **lie: int) -> tuple[bytes, bytes]:
    """A well-formed frame under a zero salt; `length` and `front_length` may lie."""
    length, front_length = lie.get("length", len(front)), lie.get("front_length", len(front))
    head = struct.pack("<4sBBHQQII", b"\xdaGRF", kind, 0, 0, seq, step, length, front_length)
    head += chain[:8] + struct.pack("<I", zlib.crc32(front))
    head += struct.pack("<I", zlib.crc32(bytes(16) + head))
    chain = xxhash.xxh3_128(chain + head + front).digest()
    return head + front + bytes(-len(front) % 8) + chain, chain


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"u2_4": 3}, Verdict.UNSUPPORTED),
        ({"u2_6": 1}, Verdict.CORRUPT),
        ({"u4_8": 255}, Verdict.CORRUPT),
        ({"u2_12": 7}, Verdict.UNSUPPORTED),
        ({"u2_14": 16}, Verdict.CORRUPT),
        ({"u1_48": 9}, Verdict.UNSUPPORTED),
        ({"u1_49": 0}, Verdict.UNSUPPORTED),
        ({"u1_51": 1}, Verdict.CORRUPT),
        ({"u4_52": 0}, Verdict.CORRUPT),
        ({"u4_60": 1}, Verdict.CORRUPT),
        ({"u8_64": 4095}, Verdict.CORRUPT),
        ({"u8_64": 1 << 62}, Verdict.CORRUPT),
        ({"u1_100": 1}, Verdict.CORRUPT),
        ({"u1_200": 1}, Verdict.CORRUPT),
    ],
)
def test_headers(tmp_path: Path, change: dict[str, int], verdict: Verdict) -> None:
    (tmp_path / "t").write_bytes(sealed_header(**change))
    assert validate(tmp_path / "t").verdict is verdict


def test_a_header_alone_is_torn(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(sealed_header())
    assert validate(tmp_path / "t").verdict is Verdict.TORN_TAIL


@pytest.mark.parametrize(
    ("kind", "lie", "text"),
    [
        (1, {"length": 0xFFFFFFF8}, "a payload of 4294967288 bytes (at most 67108864)"),
        (1, {"length": 1 << 26, "front_length": 1 << 26}, "the file ends inside a frame"),
        (1, {"length": 8, "front_length": 16}, "too long a front"),
        (9, {}, "the first frame is not a SCHEMA"),
    ],
)
def test_heads_that_lie(tmp_path: Path, kind: int, lie: dict[str, int], text: str) -> None:
    head = sealed_header()
    first, _ = frame(xxhash.xxh3_128(b"DGRRfile" + head).digest(), kind, 0, 0, canonical(SCHEMA), **lie)
    (tmp_path / "t").write_bytes(head + first)
    report = validate(tmp_path / "t")
    assert text in str(report)
    assert report.exit_code == 3


def test_frames_in_the_wrong_place(tmp_path: Path) -> None:
    head = sealed_header()
    schema, chain = frame(xxhash.xxh3_128(b"DGRRfile" + head).digest(), 1, 0, 0, canonical(SCHEMA))
    for kind, text in (
        (3, "corrupt: the second frame is not a KEYFRAME"),
        (1, "corrupt: the second frame is not a KEYFRAME"),
        (77, "unsupported: a frame of the unknown type 77"),
        (200, "corrupt: the second frame is not a KEYFRAME"),
    ):
        (tmp_path / "t").write_bytes(head + schema + frame(chain, kind, 1, 0, b"12345678")[0])
        assert text in str(validate(tmp_path / "t"))


def test_frames_that_may_be_skipped_are_skipped(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(seal=False, steps=2).read_bytes()
    extra, chain = frame(data[-16:], 200, 6, 2, b"\x01\0\0\0\0\0\0\0" + bytes(16))
    more, _ = frame(chain, 255, 7, 2, bytes(100_000))
    (tmp_path / "t").write_bytes(data + extra + more)
    assert validate(tmp_path / "t").verdict is Verdict.UNSEALED
    (tmp_path / "t").write_bytes(data + more)
    assert validate(tmp_path / "t").verdict is Verdict.CHAIN
    damaged = bytearray(data + extra)
    damaged[len(data) + 60] ^= 1
    (tmp_path / "t").write_bytes(damaged)
    assert validate(tmp_path / "t").verdict is Verdict.TORN_TAIL


CAPPED = """
import resource, sys
from dgrr.trace import open_trace, validate
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
for path in sys.argv[2:]:
    report = validate(path)
    assert not report.ok, path
    print(report.verdict.value)
    try:
        open_trace(path, mode="point_in_time").loss
    except MemoryError:
        raise
    except Exception as error:
        print(type(error).__name__)
"""


def hostile_files(folder: Path) -> list[str]:
    """Sparse files of a tebibyte, huge counts, and deep or long JSON; all heads and CRCs are right."""
    head = sealed_header()
    start = xxhash.xxh3_128(b"DGRRfile" + head).digest()
    schema, chain = frame(start, 1, 0, 0, tensor(shape=[1 << 38]))
    keyframe, _ = frame(chain, 2, 1, 0, bytes(8 + 32), length=1 << 26)
    many = b'{"groups":[],"tensors":[' + b"[],".join([b""] * 1_000_000) + b"[]]}"
    files = {
        "sparse": head,
        "huge_tensor": head + schema + keyframe,
        "many": head + frame(start, 1, 0, 0, many)[0],
        "deep": head + frame(start, 1, 0, 0, b"[" * (15 << 20))[0],
        "quotes": head + frame(start, 1, 0, 0, b'"' + b'\\"' * ((8 << 20) - 1))[0],
        "string": head + frame(start, 1, 0, 0, b'"' + b"\\\\" * ((8 << 20) - 1) + b'"')[0],
        "strings": head + frame(start, 1, 0, 0, b"[" + b'"aa",' * (3 << 20) + b"1]")[0],
        "seal": head + schema + struct.pack("<Q", 256) + b"DGRRSEAL" + bytes(16),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    os.truncate(folder / "sparse", 1 << 40)
    os.truncate(folder / "huge_tensor", len(files["huge_tensor"]) + (1 << 30))
    return [str(folder / name) for name in files if name != "sparse"]


@pytest.mark.long
def test_memory_is_bounded(tmp_path: Path) -> None:
    cap = str(1 << 30)
    run = subprocess.run(
        [sys.executable, "-c", CAPPED, cap, *hostile_files(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    words = {"corrupt", "torn-tail", "unsupported", "InvalidTraceError"}
    assert set(run.stdout.split()) <= words
