"""Hostile traces against the judge in C: ``python tests/fuzz/judging.py [--seconds S] [--first SEED] [--files N]``.

The files are those of ``traces.py``. The program is compiled with checks of memory and of undefined behaviour; it must
end within ten seconds of work with a documented exit code, and may say "ok" only of a file that `replay` with the model
proves, but for the contents of frames that prove nothing.
What is found is printed with its seed, which makes it again; exit code 1 if there was anything.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from mutate import mutated
from traces import BATCHES, SECONDS, loss_fn, seeds

from dgrr.trace import replay
from dgrr.trace.judging import write_judge
from dgrr.trace.v2.verdict import Verdict

CODES = {0, 3, 5, 6}
"""With which the judge may end, given a file and its batches."""

UNREAD = re.compile(r"EVENT|INDEX|NODES|OPS|METRICS|VALIDATION|NOTES|SKETCHES|CALLS|SEAL does not list")
"""Frames that prove nothing, whose contents the judge leaves alone: `replay` calls a wrong one corrupt."""

FLAGS = ["-std=c99", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def compiled(folder: Path) -> list[str]:
    """The command that judges a file, all but its name."""
    judge = folder / "judge"
    made = write_judge(folder / "seed0", judge, loss_fn, BATCHES, target="x86-64-v3")
    objects = [str(library.object) for library in made.libraries["x86-64-v3"]]
    program = str(folder / "program")
    command = ["gcc", *FLAGS, f"-I{judge / 'x86-64-v3'}", str(judge / "judge.c"), *objects, "-o", program]
    subprocess.run(command, check=True)
    return [program, str(folder / "t"), str(judge / "batches.bin")]


def fault(command: list[str], path: Path, verdicts: Counter[str]) -> str:
    """What is wrong with how a file is judged; nothing: an empty text."""
    limited = ["prlimit", f"--cpu={SECONDS}", *command]  # a busy machine is no finding
    run = subprocess.run(limited, capture_output=True, text=True, errors="replace", check=False)
    verdicts[run.stdout.partition(":")[0]] += 1
    if run.returncode not in CODES or run.stderr:
        return f"code {run.returncode}: {run.stdout}{run.stderr[:2000]}"
    if run.returncode == 0 and not (report := replay(path, loss_fn=loss_fn, batches=BATCHES)).ok:
        if any(f.verdict is Verdict.CORRUPT and UNREAD.search(f.text) for f in report.findings[:1]):
            return ""
        return f"{run.stdout.strip()}, but replay says {report.verdict.value}: {report.findings[:1]}"
    return ""


def run(seconds: float, first: int, files: int | None) -> int:
    """Fuzz until the time or the files are used up; the number of findings."""
    found, verdicts = 0, Counter[str]()
    with TemporaryDirectory() as folder:
        known = seeds(Path(folder))[:1]
        path, command = Path(folder, "t"), compiled(Path(folder))
        path.write_bytes(known[0])
        if text := fault(command, path, verdicts):
            raise SystemExit(f"the file that is whole: {text}")
        end, seed = time.monotonic() + seconds, first
        while time.monotonic() < end and (files is None or seed < first + files):
            path.write_bytes(mutated(known, Random(seed)))
            if text := fault(command, path, verdicts):
                found += 1
                print(f"seed {seed}: {text}", flush=True)
            seed += 1
    print(f"{seed - first} files, {found} findings; " + ", ".join(f"{v} {n}" for v, n in verdicts.most_common()))
    return found


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--files", type=int)
    args = parser.parse_args()
    return int(run(args.seconds, args.first, args.files) > 0)


if __name__ == "__main__":
    sys.exit(main())
