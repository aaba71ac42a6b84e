"""The version 1 loop against the same program in C at -O2, and the time to validate a million records.

    python tests/bench/v1_vs_c.py

Everything is measured in one process, ours and C's in turn, and medians are compared; first the bytes of both
are. The C program is given a good CRC (slicing by 16). `records`: the loop alone, into a block of memory,
against C that computes the file CRC over the records, and against C that knows it in closed form as ours
does. `file`: the whole program, fsync and rename included.
"""

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dgrr.trace.v1.compiled import train_block
from dgrr.trace.v1.reader import BLOCK_RECORDS, TraceReaderV1
from dgrr.trace.v1.train import train
from dgrr.trace.v1.validation.validate import validate
from dgrr.trace.v1.writer import WriterV1

STEPS = 2**20
SEED, LEARNING_RATE = 42, 0.01
ROUNDS = 15


def build(folder: Path) -> ctypes.CDLL:
    """Compile the C program with the machine's own compiler at -O2."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("this benchmark needs gcc or cc")
    library = folder / "v1_loop.so"
    source = Path(__file__).with_name("v1_loop.c")
    command = [compiler, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", library, source]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    u64, f64, pointer = ctypes.c_uint64, ctypes.c_double, ctypes.c_void_p
    loaded.train_block.argtypes = [pointer, ctypes.c_long, u64, u64, f64, pointer, pointer, ctypes.c_int]
    loaded.train_block.restype = ctypes.c_long
    loaded.train_file.argtypes = [ctypes.c_char_p, ctypes.c_char_p, u64, u64, f64, ctypes.c_int64]
    loaded.train_file.restype = ctypes.c_long
    return loaded


def our_records() -> None:
    """Fill one block over and over."""
    block, state = np.empty((BLOCK_RECORDS, 9), np.uint64), np.zeros(4)
    for first in range(0, STEPS, BLOCK_RECORDS):
        train_block(block, first, SEED, LEARNING_RATE, state)


def c_records(c: ctypes.CDLL, file_crc_by_bytes: int) -> None:
    """Fill one block over and over, in C."""
    block, state, crc = np.empty((BLOCK_RECORDS, 9), np.uint64), np.zeros(4), np.zeros(1, np.uint32)
    at = block.ctypes.data, state.ctypes.data, crc.ctypes.data
    for first in range(0, STEPS, BLOCK_RECORDS):
        c.train_block(at[0], BLOCK_RECORDS, first, SEED, LEARNING_RATE, at[1], at[2], file_crc_by_bytes)


def our_file(path: Path) -> None:
    """Train into a file."""
    with WriterV1(str(path), SEED, LEARNING_RATE, 0) as writer:
        train(writer, STEPS, LEARNING_RATE, SEED)
        writer.seal()


def c_file(c: ctypes.CDLL, path: Path) -> None:
    """Train into a file, in C."""
    done = c.train_file(bytes(path), bytes(path) + b".partial", STEPS, SEED, LEARNING_RATE, 1)
    assert done == STEPS


def medians(runs: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Time all runs in turn, several rounds; return the median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def require_equal_bytes(ours: Path, theirs: Path) -> None:
    """Compare the two files but for the creation time."""
    a, b = ours.read_bytes(), theirs.read_bytes()
    if a[:40] + a[48:] != b[:40] + b[48:]:
        raise SystemExit("the bytes differ")


def show(label: str, ours: float, theirs: float) -> None:
    """Print steps a second of both, and the ratio."""
    rates = f"ours {STEPS / ours / 1e6:7.2f} M steps/s   C -O2 {STEPS / theirs / 1e6:7.2f} M steps/s"
    print(f"{label:<34} {rates}   ratio {theirs / ours:.2f}")


def main() -> None:
    """Compare bytes, then times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        c = build(folder)
        ours, theirs = folder / "ours.dgrr", folder / "c.dgrr"
        our_file(ours)
        c_file(c, theirs)
        require_equal_bytes(ours, theirs)
        print(f"{STEPS} steps: the bytes are equal")
        taken = medians(
            {
                "records": our_records,
                "by bytes": lambda: c_records(c, 1),
                "closed form": lambda: c_records(c, 0),
                "file": lambda: our_file(ours),
                "c file": lambda: c_file(c, theirs),
            }
        )
        show("records", taken["records"], taken["by bytes"])
        show("records, file CRC in closed form", taken["records"], taken["closed form"])
        show("file", taken["file"], taken["c file"])

        def validate_file() -> None:
            with TraceReaderV1(str(ours)) as trace:
                assert not validate(trace).failures

        seconds = medians({"validate": validate_file})["validate"] * 1e6 / STEPS
        print(f"validate, a million records: {seconds:.3f} s (limit 0.15)")


if __name__ == "__main__":
    main()
