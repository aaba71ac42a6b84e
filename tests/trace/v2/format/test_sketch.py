"""Sketches: their definition by another text, what they say of distances, and the frames that hold them."""

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.keep import Keep
from dgrr.trace import open_recorder, open_trace, recover, validate
from dgrr.trace.v2.format.sketch import length, sketch

from ..read.test_op_frames import followed_by
from ..write.test_told_frames import W, go_on, run_of
from .minimal import Minimal

SKETCHES = 135
MASK = (1 << 64) - 1


def by_the_page(values: list[float]) -> list[float]:
    """The sums of docs/trace_format.md, in Python's integers and floats."""
    sums = [0.0] * 16
    for i, value in enumerate(values):
        z = (i + 1) * 0x9E3779B97F4A7C15 & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
        for j in range(16):
            sums[j] += -value if z >> j & 1 else value
    return [struct.unpack("<f", struct.pack("<f", x))[0] for x in sums]


@pytest.mark.parametrize("count", [0, 1, 7, 70_000])
def test_a_sketch_is_what_the_page_says(count: int) -> None:
    values = np.random.default_rng(0).normal(size=count)
    assert list(sketch(values)) == by_the_page(values.tolist())
    assert sketch(values.reshape(-1, 1)[::-1][::-1]) == sketch(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_within_a_factor(dtype: Any) -> None:
    draw, wrong = np.random.default_rng(1), 0
    for _ in range(100):
        a = draw.normal(size=500).astype(dtype)
        b = a + (draw.normal(size=500) * 1e-3).astype(dtype)
        said = length([x - y for x, y in zip(sketch(a), sketch(b), strict=True)])
        wrong += not 1 / 1.6 < said / float(np.linalg.norm(a - b)) < 1.6
    assert wrong <= 2


def test_what_is_not_finite_is_in_every_sum() -> None:
    assert math.isnan(length(sketch(np.array([1.0, math.nan]))))
    assert length(sketch(np.array([1.0, math.inf]))) == math.inf


def recorded(path: Path, **options: Any) -> Path:
    with open_recorder(Keep(path, salt=bytes(16), created_at=0, **options), run_of()) as recorder:
        go_on(recorder, 3, None)
    return path


def test_the_last_step_has_them(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", sketches=True)
    assert "recorded, not proven: sketches" in str(validate(path))
    with open_trace(path) as trace:
        assert trace.sketch("w", step=2) == sketch(W + 2)
        assert trace.sketch("w", step=-1, what="after") == sketch(W - 3)
        assert trace.sketch("w", step=1) is None
    assert Minimal(path.read_bytes()).sketches == {(2, 0, 0): sketch(W + 2), (2, 0, 1): sketch(W - 3)}
    recover(path, tmp_path / "new")
    with open_trace(tmp_path / "new") as trace:
        assert trace.sketch("w", step=2) == sketch(W + 2)


def test_without_them_nothing_is_written(tmp_path: Path) -> None:
    with_them, without = recorded(tmp_path / "a", sketches=True), recorded(tmp_path / "b")
    assert SKETCHES not in Minimal(without.read_bytes()).order
    old = Minimal(with_them.read_bytes(), newest=134)
    assert [step.link for step in old.steps] == [step.link for step in Minimal(without.read_bytes()).steps]


def front(tensors: list[tuple[int, int]], sums: int) -> bytes:
    flat = [x for pair in tensors for x in pair]
    return struct.pack(f"<II{len(flat)}I{sums}f", len(tensors), sums, *flat, *range(sums))


BAD = "it names a tensor twice or none of the schema's, or has not 16 sums for each"


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([(SKETCHES, front([(0, 0), (0, 1)], 32), 1)], "unsealed"),
        ([(SKETCHES, front([(0, 0), (0, 0)], 32), 1)], f"corrupt: SKETCHES 1: {BAD}"),
        ([(SKETCHES, front([(99, 1)], 16), 1)], f"corrupt: SKETCHES 1: {BAD}"),
        ([(SKETCHES, front([(0, 2)], 16), 1)], f"corrupt: SKETCHES 1: {BAD}"),
        ([(SKETCHES, front([(0, 1)], 15), 1)], f"corrupt: SKETCHES 1: {BAD}"),
        ([(SKETCHES, front([(0, 1)], 16)[:-1], 1)], "corrupt: SKETCHES 1: its front of 79 bytes ends inside 'sums'"),
        ([(SKETCHES, front([(0, 1)], 16), 0)], "corrupt: SKETCHES 0 after 2 steps"),
    ],
)
def test_sketches_that_lie(tmp_path: Path, frames: Any, text: str) -> None:
    assert text in followed_by(tmp_path, *frames)
