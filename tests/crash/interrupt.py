"""Ctrl-C of commands at random moments: ``python tests/crash/interrupt.py [--tries N] [--seed SEED]``.

Each time a command begins anew, and is interrupted at a random moment between its first line and its end. It must end
with 130 and at most one line, or have ended as ever. What is found is printed; exit code 1 if there was anything.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

PROGRAM = """
import os
import sys
from dgrr.base.interruption import arm
arm()
os.write(int(sys.argv.pop()), b".")
from dgrr.__main__ import main
raise SystemExit(main())
"""
"""The program, which arms itself first, and here tells so: before, Ctrl-C is Python's."""

MODEL = """
import numpy as np
from dgrr.runtime import SGD, Trainer

def loss_fn(p, x):
    return (p["w"] * p["w"] * x).sum()

def run():
    return loss_fn, [np.arange(4.0)] * 20

if __name__ == "__main__":
    Trainer(loss_fn, {"w": np.ones(4)}, SGD(0.01), trace="run.dgrr").fit(run()[1])
"""

COMMANDS = (
    "--help",
    "validate run.dgrr",
    "show run.dgrr --json",
    "replay run.dgrr --model model:run",
    "report run.dgrr -o page.html --model model:run",
    "audit run.dgrr --model model:run --jobs 2 --json",
)


class Ended(NamedTuple):
    """How a command ended, and what it said on standard error."""

    code: int
    err: str


def make_run(folder: Path) -> None:
    """A recorded run, and the module of its model."""
    (folder / "model.py").write_text(MODEL)
    subprocess.run([sys.executable, "model.py"], cwd=folder, check=True)


def ended(folder: Path, command: Sequence[str], after: float | None) -> Ended:
    """Run a command, and interrupt all of its processes so many seconds behind its first line; None lets it end."""
    reader, writer = os.pipe()
    line = [sys.executable, "-c", PROGRAM, *command, str(writer)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, cwd=folder, text=True, pass_fds=[writer], start_new_session=True, **quiet) as process:
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        if after is not None:
            time.sleep(after)
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    return Ended(process.returncode, err)


def is_right(found: Ended, uninterrupted: Ended) -> bool:
    """Whether it is what Ctrl-C promises, or came too late."""
    said = found.err.splitlines()
    return found == uninterrupted or (found.code == 130 and len(said) < 2 and all("interrupted" in x for x in said))


def main() -> int:
    """Interrupt commands, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    random, wrong, caught = Random(asked.seed), 0, 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder)
        whole = list[tuple[Sequence[str], Ended, float]]()
        for command in COMMANDS:
            words, began = command.split(), time.perf_counter()
            whole.append((words, ended(folder, words, None), time.perf_counter() - began))
        for _ in range(asked.tries):
            words, uninterrupted, seconds = random.choice(whole)
            after = random.uniform(0, seconds)
            found = ended(folder, words, after)
            caught += found.code == 130
            if not is_right(found, uninterrupted):
                wrong += 1
                print(f"dgrr {' '.join(words)}, after {after:.3f} s: exit code {found.code}\n{found.err}")
    print(f"{asked.tries} commands, {caught} of them interrupted, {wrong} wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
