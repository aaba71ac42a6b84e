"""CRC-32 by kernels against zlib, on any length, place and beginning."""

from zlib import crc32

import numpy as np
import pytest

from dgrr.tape.numerics.crc32.checksums import Checksum, Checksums
from dgrr.tape.numerics.prepared.prepared_calls import PreparedCalls

NOISE = np.random.default_rng(5).integers(0, 256, 1 << 14, dtype=np.uint8)


@pytest.mark.parametrize("before", [b"", b"salt", b"\xff" * 40])
def test_every_length_at_every_place(before: bytes) -> None:
    data = [NOISE[at : at + n] for n in (*range(70), 1000, 4096, 9999) for at in range(9)]
    outs = np.zeros((len(data), 4), np.uint8)
    pairs = zip(data, outs, strict=True)
    assert PreparedCalls(Checksums([Checksum(one, out, crc32(before)) for one, out in pairs])).run() == 0
    assert outs.view("<u4").ravel().tolist() == [crc32(one.tobytes(), crc32(before)) for one in data]


def test_one_may_be_of_the_one_before() -> None:
    out = np.zeros(12, np.uint8)
    sums = [Checksum(NOISE[:100], out[4:8]), Checksum(out[:8], out[8:])]
    assert PreparedCalls(Checksums(sums)).run() == 0
    whole = bytes(4) + crc32(NOISE[:100].tobytes()).to_bytes(4, "little")
    assert out.tobytes() == whole + crc32(whole).to_bytes(4, "little")
