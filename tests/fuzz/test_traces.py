"""A short run of the fuzzer; ``tests/fuzz/traces.py`` runs longer, under its cap of memory."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


def test_hostile_traces() -> None:
    """In a process of its own, whose memory is capped."""
    command = [sys.executable, str(Path(__file__).with_name("traces.py")), "--seconds", "120", "--files", "250"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "250 files, 0 findings" in run.stdout


def test_hostile_traces_for_the_judge() -> None:
    """The program in C, compiled with checks of memory; ``tests/fuzz/judging.py`` runs longer."""
    command = [sys.executable, str(Path(__file__).with_name("judging.py")), "--seconds", "120", "--files", "500"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " files, 0 findings" in run.stdout


def test_a_file_taken_apart_and_put_together_is_the_same() -> None:
    """Else mutations would be found for what `surgery` does wrong."""
    program = """if True:
        import sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from surgery import File
        for path in map(Path, sys.argv[2:]):
            data = path.read_bytes()
            assert File.parse(data).encode() == data == File.parse(data).encode(links=False), path
    """
    golden = Path(__file__).parents[1] / "golden"
    files = [str(golden / name) for name in ("v2_digest.dgrr", "v2_grads.dgrr")]
    subprocess.run([sys.executable, "-c", program, str(Path(__file__).parent), *files], check=True)
