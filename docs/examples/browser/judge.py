"""Writes a page in which traces of one run are proven.

``python docs/examples/browser/judge.py JUDGE -o FOLDER`` takes the folder that ``dgrr export --judge TRACE --target
wasm32`` wrote, compiles its program and writes one file, ``index.html``, which opens from the disk and asks the network
for nothing. It needs clang with its linker of WebAssembly (Debian: ``apt-get install clang lld``).
"""

import argparse
import subprocess
from pathlib import Path

from build import filled, packed, scripts, write

from dgrr.trace.judging import command

TARGET = "wasm32"


def page(judge: Path) -> str:
    """The text of the page."""
    subprocess.run(command(TARGET), shell=True, cwd=judge, check=True)
    names = f"{TARGET}/judge.wasm", "batches.bin", "judge.mjs"
    contents = packed((Path(name).name, (judge / name).read_bytes()) for name in names)
    return filled("judge.html", {"PACKED": contents, "SCRIPT": scripts("unpacking.js", "judging.js")})


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judge", type=Path, metavar="JUDGE", help="the folder of the judge")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER", help="where index.html goes")
    args = parser.parse_args()
    write(args.out, page(args.judge))


if __name__ == "__main__":
    main()
