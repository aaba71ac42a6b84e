"""Libraries meet `bits.json`: natively here; ``python tests/golden/library.py`` runs them on other machines too."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..runtime.library.native import host

SCRIPT = Path(__file__).with_name("library.py")


def met(*options: str) -> None:
    """Have the script find nothing else."""
    done = subprocess.run([sys.executable, SCRIPT, host(), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " digests, 0 others" in done.stdout


@pytest.mark.long
def test_training_by_a_library_is_training() -> None:
    met("--only", "perceptron")


@pytest.mark.long
def test_so_it_is_with_convolutions_norms_and_draws() -> None:
    met("--only", "cnn")


@pytest.mark.long
def test_ops_and_their_derivatives() -> None:
    met("--ops", "57")
