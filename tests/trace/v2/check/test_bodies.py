"""Bodies are read in blocks, whatever their size, and held against the digests in their fronts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Keep, Trainer
from dgrr.trace import Limits, Verdict
from dgrr.trace.v2.check.validate import validate_v2


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum() * p["s"] + (p["v"] * p["v"]).sum()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    params = {"w": np.ones(7), "s": np.ones(()), "v": np.linspace(0, 1, 41, dtype=np.float64)}
    Trainer(loss_fn, params, Adam(0.1), trace=Keep(tmp_path / "t", record="full")).fit([np.ones(7)] * 3, progress=False)
    return tmp_path / "t"


@pytest.mark.parametrize("block", [8, 56, 100, 392, 1 << 20])
def test_blocks_of_any_size_give_the_same_digests(path: Path, block: int) -> None:
    limits = Limits(block=block)
    assert validate_v2(path, limits=limits).ok
    data = path.read_bytes()
    first = data.index(np.ones(7).tobytes())
    for at in (first, first + 8 * 6):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        report = validate_v2(path, limits=limits)
        assert report.verdict is Verdict.CORRUPT and "is wrong" in report.findings[0].text
    path.write_bytes(data)
