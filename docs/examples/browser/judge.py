"""Writes a page in which traces of one run are proven.

``python docs/examples/browser/judge.py JUDGE -o FOLDER`` takes the folder that ``dgrr export --judge TRACE --target
wasm32`` wrote, compiles its program and writes one file, ``index.html``, which opens from the disk and asks the network
for nothing. With ``--target wasm32,wasm32-relaxed`` it also holds the faster judge, for engines that fuse. It needs
clang with its linker of WebAssembly (Debian: ``apt-get install clang lld``).
"""

import argparse
import subprocess
from pathlib import Path

from build import TARGETS, filled, packed, scripts, write

from dgrr.trace.judging import command


def page(judge: Path) -> str:
    """The text of the page."""
    targets = [target for target in TARGETS if (judge / target).is_dir()]
    for target in targets:
        subprocess.run(command(target), shell=True, cwd=judge, check=True)
    names = [*(f"{target}/judge.wasm" for target in targets), "wasm32/step_0.mjs", "judge.mjs", "batches.bin"]
    marks = {
        "TITLE": "dgrr: a run proven in a page",
        "PACKED": packed((name, (judge / name).read_bytes()) for name in names),
        "SCRIPT": scripts("unpacking.js", "judging.js"),
    }
    return filled("judge.html", marks)


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judge", type=Path, metavar="JUDGE", help="the folder of the judge")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER", help="where index.html goes")
    args = parser.parse_args()
    write(args.out, page(args.judge))


if __name__ == "__main__":
    main()
