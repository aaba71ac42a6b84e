"""Files larger than the memory: only the samples of a batch are read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.data import Dataset

PROGRAM = """
import resource
import sys
from pathlib import Path

import numpy as np

from dgrr.runtime.data import Dataset

COUNT, WIDTH = 1 << 14, 1 << 20  # 64 GiB of float32
path = Path("large.npy")
file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(COUNT, WIDTH))
file[:: COUNT // 64, 5] = np.arange(64)
file.flush()
del file
assert path.stat().st_size > 64 << 30 and path.stat().st_blocks * 512 < 1 << 30, "the file is sparse"

used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + (256 << 20),) * 2)
try:
    np.ones(1 << 29)
except MemoryError:
    pass
else:
    raise AssertionError("the limit holds nothing back")

data = Dataset(np.load(path, mmap_mode="r"), np.arange(COUNT))
touched = data.take(slice(None, None, COUNT // 64))
assert len(data) == COUNT and data[COUNT // 64][0][5] == 1
assert touched.take(3)[:][0][:, 5].tolist() == [0, 1, 2]

train, test = touched.shuffle(1).split(48, seed=0)
short = train.map(lambda x, y: (x[:6], y))
seen = [(x[5], y) for xs, ys in short.batches(5, seed=3).prefetch(1) for x, y in zip(xs, ys)]
seen += [(x[5], y) for xs, ys in test.batches(4) for x, y in zip(xs, ys)]
assert sorted((int(x), int(y)) for x, y in seen) == [(i, i * COUNT // 64) for i in range(64)]

in_order, shuffled = data.batches(4), data.batches(4, seed=0)
for batches in (in_order, shuffled, short.batches(4).prefetch(1)):
    epoch = batches.epoch(1)
    assert float(next(epoch)[0].sum()) >= 0
    next(epoch)
print("done", repr(data))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux counts it")
@pytest.mark.long
def test_a_file_larger_than_the_memory(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done Dataset(float32[16384, 1048576], int64[16384])\n"


@pytest.mark.parametrize("kind", ["npy", "memmap"])
def test_the_bits_are_those_of_the_array(tmp_path: Path, kind: str) -> None:
    array = np.random.default_rng(0).standard_normal((50, 3))
    mapped: Any
    if kind == "npy":
        np.save(tmp_path / "x.npy", array)
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    else:
        array.tofile(tmp_path / "x.raw")
        mapped = np.memmap(tmp_path / "x.raw", np.float64, "r+", shape=(50, 3))
    ours, theirs = Dataset(mapped), Dataset(array)
    assert np.shares_memory(ours.arrays[0], mapped)
    for some, others in zip(ours.batches(8, seed=1), theirs.batches(8, seed=1), strict=True):
        assert type(some[0]) is np.ndarray
        assert some[0].tobytes() == others[0].tobytes()
    with pytest.raises(ValueError, match="read-only"):
        next(iter(ours.batches(8)))[0][0] = 1
