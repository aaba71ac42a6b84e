"""A few of the ops as GPUs run them: ``python tests/golden/gpu_bits.py`` computes all, which takes minutes."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("gpu_bits.py")


@pytest.mark.long
def test_one_part_for_every_element_gives_the_digests() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--share", "7"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
