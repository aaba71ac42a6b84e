"""Twenty watchpoints over 10,000 steps of the digits CNN, each held to the first step that a plain loop has noted.

    python tests/bench/when.py [--steps 10000]

Some minutes. Fails where an answer is another step.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from dgrr.tests.trace.watching.digits import answers


def main() -> None:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000, help="of the run; default: %(default)s")
    wrong = 0
    with TemporaryDirectory() as folder:
        for answer in answers(Path(folder), parser.parse_args().steps):
            if isinstance(answer, str):
                print(answer, flush=True)
                continue
            right = "right" if answer.found == answer.expected else f"WRONG, expected {answer.expected}"
            print(f"{answer.seconds:7.2f} s  step {answer.found!s:>6}  {right}  {answer.condition}", flush=True)
            wrong += answer.found != answer.expected
    raise SystemExit(f"{wrong} answers are wrong" if wrong else 0)


if __name__ == "__main__":
    main()
