"""The samples of the golden digests are the same under every floating-point flag of the thread that makes them."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the control word is that of x86"
)

WORDS = {"flush": 0x8040, "upward": 0x4000, "both": 0xC040}
"""What is set in MXCSR: subnormals count as zero, results are rounded upwards."""


@contextmanager
def under(word: int) -> Iterator[None]:
    """A block under these flags."""
    libm, env = ctypes.CDLL("libm.so.6"), ctypes.create_string_buffer(64)
    libm.fegetenv(env)
    changed = ctypes.create_string_buffer(env.raw, 64)
    (control,) = struct.unpack_from("<I", env, 28)
    struct.pack_into("<I", changed, 28, control | word)
    libm.fesetenv(changed)
    try:
        yield
    finally:
        libm.fesetenv(env)


def made(bits: Any) -> list[bytes]:
    """Samples of every kind."""
    found = []
    for dtype in bits.DTYPES:
        found += [array.tobytes() for array in bits.drawn(dtype, 1).values()]
        found += [array.tobytes() for array in (bits.patterns(dtype), *bits.rows_of(dtype), *bits.initial().values())]
        found.append(bits.cotangent_of(bits.AnyTensor(np.ones((3, 7), dtype))).numpy().tobytes())
        for op in bits.OPS.values():
            found += [np.asarray(a).tobytes() for s in bits.samples_of(op, dtype) for a in s.arrays if a is not None]
    return found


@pytest.mark.parametrize("flags", WORDS)
def test_flags_change_no_sample(bits: Any, flags: str) -> None:
    expected = made(bits)
    tiny, third = np.array([1e-310]), np.array([3.0])
    with under(WORDS[flags]):
        halved, divided = (tiny * 0.5)[0], (1.0 / third)[0]
        found = made(bits)
    assert (halved == 0.0, divided > 1 / 3) == (flags != "upward", flags != "flush"), "the flags were not set"
    assert found == expected
