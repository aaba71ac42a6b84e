"""Damage by surgery: every truncation, every flipped bit, frames moved about. None may pass as ok."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import InvalidTraceError, Verdict, open_trace, validate
from dgrr.trace.v2.repair.forge import flip_bit

pytestmark = pytest.mark.long

RecordRun = Callable[..., Path]


def frame_bounds(data: bytes, digest_size: int = 16) -> list[tuple[int, int]]:
    """(start, end) of every frame, from the heads' own lengths."""
    bounds: list[tuple[int, int]] = []
    offset = 256
    while offset < len(data):
        length = struct.unpack_from("<I", data, offset + 24)[0]
        end = offset + 48 + (length + 7) // 8 * 8 + digest_size
        bounds.append((offset, end))
        offset = end
    return bounds


def verdict_of(path: Path, data: bytes) -> Verdict:
    path.write_bytes(data)
    report = validate(path)
    assert report.ok == (report.verdict is Verdict.OK)
    assert report.ok or report.exit_code in (2, 3)
    return report.verdict


@pytest.mark.parametrize("mode", ["digest", "grads"])
def test_a_whole_file_is_ok(record_run: RecordRun, mode: str) -> None:
    report = validate(record_run(record=mode))
    assert report.ok
    assert (report.structure, report.chain, report.update) == ("proven", "proven", "not proven")
    assert report.steps == 6


def test_every_truncation(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(steps=3, optimizer="sgd").read_bytes()
    boundaries = {start for start, _ in frame_bounds(data)}
    seconds = sorted(boundaries)[2:]  # behind SCHEMA and KEYFRAME 0 the file can be read
    cut = tmp_path / "cut"
    cut.write_bytes(data)
    for length in reversed(range(len(data))):
        os.truncate(cut, length)
        verdict = validate(cut).verdict
        if length in seconds:
            assert verdict is Verdict.UNSEALED, length
        else:
            assert verdict is Verdict.TORN_TAIL, length


@pytest.mark.parametrize("options", [{"record": "digest"}, {"record": "grads", "dtype": np.float64}])
def test_every_single_bit_flip(record_run: RecordRun, tmp_path: Path, options: dict[str, object]) -> None:
    path = record_run(steps=2, optimizer="sgd", **options)
    data = path.read_bytes()
    seal = frame_bounds(data)[-1][0]
    with path.open("r+b", buffering=0) as file:
        for offset in range(len(data)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([data[offset] ^ 1 << bit]), offset)
                verdict = validate(path).verdict
                if 256 <= offset < seal:
                    assert verdict is Verdict.CORRUPT, (offset, bit)
                else:
                    expected = (Verdict.CORRUPT, Verdict.UNSUPPORTED, Verdict.TORN_TAIL)
                    assert verdict in expected, (offset, bit)
            os.pwrite(file.fileno(), data[offset : offset + 1], offset)
    assert validate(path).ok


def test_flip_bit_changes_one_bit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00\x00\x00")
    flip_bit(tmp_path / "a", tmp_path / "b", 1, 3)
    assert (tmp_path / "b").read_bytes() == b"\x00\x08\x00"


@pytest.mark.parametrize("act", ["swap", "duplicate", "delete"])
def test_moved_frames_break_the_chain(record_run: RecordRun, tmp_path: Path, act: str) -> None:
    data = record_run().read_bytes()
    bounds = frame_bounds(data)
    parts = [data[start:end] for start, end in bounds]
    for i in range(2, len(parts) - 2):
        moved = list(parts)
        if act == "swap":
            moved[i], moved[i + 1] = moved[i + 1], moved[i]
        elif act == "duplicate":
            moved.insert(i, parts[i])
        else:
            del moved[i]
        assert verdict_of(tmp_path / "moved", data[:256] + b"".join(moved)) is Verdict.CHAIN, i


def test_a_frame_of_another_file_is_foreign(record_run: RecordRun, tmp_path: Path) -> None:
    ours = record_run("a.dgrr").read_bytes()
    theirs = record_run("b.dgrr", salt=bytes(range(16))).read_bytes()
    start, end = frame_bounds(ours)[4]
    assert verdict_of(tmp_path / "mixed", ours[:start] + theirs[start:end] + ours[end:]) is Verdict.CORRUPT


def test_a_frame_of_another_run_with_our_salt_breaks_the_chain(record_run: RecordRun, tmp_path: Path) -> None:
    ours = record_run("a.dgrr").read_bytes()
    theirs = record_run("b.dgrr", diverge=0).read_bytes()
    start, end = frame_bounds(ours)[5]
    assert verdict_of(tmp_path / "mixed", ours[:start] + theirs[start:end] + ours[end:]) is Verdict.CHAIN


def test_bytes_behind_the_seal(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    assert verdict_of(tmp_path / "long", data + b"\0" * 8) is Verdict.CORRUPT


def test_a_commit_behind_the_damage_tells_corruption_from_a_torn_tail(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(seal=False, commit_every=2, steps=6).read_bytes()
    bounds = frame_bounds(data)
    commits = [start for start, _ in bounds if data[start + 4] == 4]
    steps = [start for start, _ in bounds if data[start + 4] == 3]
    assert len(commits) == 3
    before, behind = bytearray(data), bytearray(data)
    before[steps[3] + 60] ^= 1
    assert verdict_of(tmp_path / "before", before) is Verdict.CORRUPT
    behind = bytearray(data[: commits[2]])
    behind[steps[5] + 60] ^= 1
    assert verdict_of(tmp_path / "behind", behind) is Verdict.TORN_TAIL


def test_zeroed_bytes(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(steps=2).read_bytes()
    for offset in range(256, len(data) - 8, 8):
        if any(data[offset : offset + 8]):
            zeroed = data[:offset] + bytes(8) + data[offset + 8 :]
            assert verdict_of(tmp_path / "zeroed", zeroed) is not Verdict.OK


def test_modes_of_reading(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(seal=False, commit_every=3, steps=6).read_bytes()
    steps = [start for start, _ in frame_bounds(data) if data[start + 4] == 3]
    torn, corrupt = tmp_path / "torn", tmp_path / "corrupt"
    torn.write_bytes(data[: steps[4] + 100])
    damaged = bytearray(data)
    damaged[steps[1] + 60] ^= 1
    corrupt.write_bytes(damaged)
    with pytest.raises(InvalidTraceError, match="torn-tail: the file ends inside a frame"):
        open_trace(torn)
    with open_trace(torn, mode="tolerate_tail") as trace:
        assert len(trace) == 4
        assert trace.damage is not None
        assert trace.damage.verdict is Verdict.TORN_TAIL
    with pytest.raises(InvalidTraceError, match="corrupt: the CRC of a front is wrong, and data"):
        open_trace(corrupt, mode="tolerate_tail")
    with open_trace(corrupt, mode="point_in_time") as trace:
        assert len(trace) == 1
