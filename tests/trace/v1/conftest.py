"""An independent reading of the format page, in plain Python: what the code under test is held against."""

import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from dgrr.trace.cli import main

MASK = 2**64 - 1


class Rec(NamedTuple):
    """A record without its CRC."""

    step_id: int
    w_before: float
    b_before: float
    grad_w: float
    grad_b: float
    w_after: float
    b_after: float
    loss: float


def splitmix64(seed: int, count: int) -> list[int]:
    state, values = seed, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        values.append(z ^ (z >> 31))
    return values


def samples(seed: int, count: int) -> list[tuple[float, float]]:
    u = [(value >> 11) * 2.0**-53 for value in splitmix64(seed, 2 * count)]
    pairs = []
    for u1, u2 in zip(u[::2], u[1::2], strict=True):
        x = 4 * u1 - 2
        pairs.append((x, (2 * x + 1) + 0.1 * (u2 - 0.5)))
    return pairs


def step(step_id: int, w: float, b: float, x: float, y: float, lr: float) -> Rec:
    e = (w * x + b) - y
    gw, gb = (2 * e) * x, 2 * e
    return Rec(step_id, w, b, gw, gb, w - lr * gw, b - lr * gb, e * e)


def train(steps: int, lr: float, seed: int) -> list[Rec]:
    w = b = 0.0
    records = []
    for i, (x, y) in enumerate(samples(seed, steps)):
        records.append(step(i, w, b, x, y, lr))
        w, b = records[-1].w_after, records[-1].b_after
    return records


def pack_record(record: Rec) -> bytes:
    body = struct.pack("<Q7d", *record)
    return body + struct.pack("<II", zlib.crc32(body), 0)


def pack_file(records: bytes, *, seed: int, lr: float, created_at: int = 0, count: int | None = None) -> bytes:
    steps = len(records) // 72 if count is None else count
    start = b"DGRR" + struct.pack("<HHQQdI", 1, 0, seed, steps, lr, zlib.crc32(records))
    return start + struct.pack("<Iq", zlib.crc32(start), created_at) + bytes(16) + records


def trace_bytes(records: Sequence[Rec], *, seed: int = 42, lr: float = 0.01, created_at: int = 0) -> bytes:
    return pack_file(b"".join(map(pack_record, records)), seed=seed, lr=lr, created_at=created_at)


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Dgrr = Callable[..., Answer]


class Reference:
    """The functions above, for tests that cannot import this file."""

    Rec = Rec
    splitmix64 = staticmethod(splitmix64)
    samples = staticmethod(samples)
    step = staticmethod(step)
    train = staticmethod(train)
    pack_record = staticmethod(pack_record)
    pack_file = staticmethod(pack_file)
    trace_bytes = staticmethod(trace_bytes)


@pytest.fixture(scope="session")
def ref() -> type[Reference]:
    return Reference


@pytest.fixture(scope="session")
def golden() -> bytes:
    """The golden file, built from the numbers of the format page."""
    return trace_bytes([step(0, 0.5, 0.1, 2.0, 3.0, 0.01)], seed=42, lr=0.01, created_at=0)


@pytest.fixture
def dgrr(capsys: pytest.CaptureFixture[str]) -> Dgrr:
    """Run the command line in this process; every run must end without a traceback."""

    def run(*arguments: str | Path | int) -> Answer:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Answer(code, out, err)

    return run


@pytest.fixture
def checked(tmp_path: Path, dgrr: Dgrr) -> Callable[[bytes], Answer]:
    """Validate bytes as a file."""

    def check(data: bytes) -> Answer:
        path = tmp_path / "checked file.dgrr"
        path.write_bytes(data)
        return dgrr("validate", path)

    return check
