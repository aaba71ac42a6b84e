"""What tests of programs and pages share."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., str]
"""``run(folder, program, *arguments)``: what the program prints that runs in a folder."""


@pytest.fixture(scope="session")
def run_program() -> Iterator[Run]:
    """Run programs as ``python -W error`` does, without the second that importing the package takes each.

    They must end well, and leave what they print as ``stdout`` in their folder.
    """
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("fork_server.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        asked, answered = server.stdin, server.stdout
        assert asked and answered

        def run(folder: Path, program: Path, *arguments: str) -> str:
            print(json.dumps([str(folder), str(program), *arguments]), file=asked, flush=True)
            code = answered.readline().strip()
            assert code == "0", f"{program.name} ended with {code}:\n{(folder / 'stderr').read_text()}"
            return (folder / "stdout").read_text()

        yield run
