"""The bytes of a C program for the same training: tests/bench/v1_loop.c."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
COMPILER = shutil.which("gcc") or shutil.which("cc")


@pytest.mark.parametrize(("steps", "lr", "seed"), [(0, 0.01, 42), (20000, 0.01, 42), (9000, 100.0, 2**64 - 1)])
def test_a_c_program_writes_the_same_bytes(dgrr, tmp_path, golden, steps, lr, seed):
    assert (TESTS / "golden" / "v1_one_step.dgrr").read_bytes() == golden
    if COMPILER is None:  # no second language here: the golden file above is what is left
        return
    library = tmp_path / "v1_loop.so"
    source = TESTS / "bench" / "v1_loop.c"
    command = [
        COMPILER,
        "-O2",
        "-ffp-contract=off",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        library,
        source,
    ]
    subprocess.run(command, check=True)
    c = ctypes.CDLL(str(library))
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    c.train_file(
        bytes(theirs),
        bytes(theirs) + b".partial",
        ctypes.c_uint64(steps),
        ctypes.c_uint64(seed),
        ctypes.c_double(lr),
        ctypes.c_int64(5),
    )
    arguments = ["--steps", steps, "--lr", lr, "--seed", seed, "--out", ours, "--created-at", 5]
    assert dgrr("train", *arguments).code == (4 if lr > 1 else 0)
    assert ours.read_bytes() == theirs.read_bytes()
