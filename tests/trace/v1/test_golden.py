"""The golden file: one record, kept for ever."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace.v1.layout import HeaderV1, Record, header_crc32, record_crc32
from dgrr.trace.v1.writer import WriterV1

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parents[2] / "golden" / "v1_one_step.dgrr"
SHA256 = "0739ecc5f19dea8ea7e89aaff611d82618b21898eeb62590290fc5a0da55843b"


def test_the_file_is_what_the_page_says(golden):
    assert hashlib.sha256(golden).hexdigest() == SHA256
    assert GOLDEN.read_bytes() == golden


def test_the_writer_writes_it(golden, tmp_path):
    out = tmp_path / "golden.dgrr"
    records = np.frombuffer(golden[64:], "<u8").reshape(1, 9).astype(np.uint64)
    with WriterV1(str(out), 42, 0.01, 0) as writer:
        writer.append(records)
        writer.seal()
    assert out.read_bytes() == golden


def test_its_fields_are_read(golden):
    header, record = HeaderV1.unpack(golden[:64]), Record.unpack(golden[64:])
    assert header == (b"DGRR", 1, 0, 42, 1, 0.01, 0x6522DF69, 0x08AA6BCA, 0, bytes(16))
    assert record == (0, 0.5, 0.1, -7.6, -3.8, 0.576, 0.138, 3.61, 0x39D21761, 0)
    assert header_crc32(golden[:64]) == 0x08AA6BCA
    assert record_crc32(golden[64:]) == 0x39D21761


def test_it_is_valid_though_it_does_not_follow_from_its_seed(dgrr):
    code, out, err = dgrr("validate", GOLDEN)
    assert (code, err) == (0, "")
    assert "valid, 1 steps, seed 42, learning rate 0.01" in out
    assert "1 steps do not follow from seed 42; step 0: data: the recorded gradients belong to x = 2.0," in out


def test_it_is_replayed_inspected_and_compared(dgrr):
    assert dgrr("replay", "--step", 0, "--trace", GOLDEN).code == 0
    shown = dgrr("inspect", "--step", 0, "--trace", GOLDEN)
    assert shown.code == 0
    assert "0.576                    0x1.26e978d4fdf3bp-1       3fe26e978d4fdf3b" in shown.out
    assert "stored 39d21761, computed 39d21761" in shown.out
    assert dgrr("compare", "--a", GOLDEN, "--b", GOLDEN).code == 0
