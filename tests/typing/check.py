"""mypy strict and pyright strict over the installed package and the programs beside this file, then over the pages.

Run by ``python tests/typing/check.py`` in an environment where dgrr is installed as a wheel. Every error that
a checker finds in a program must be announced by an ``# E: mypy code | pyright rule`` on its line, and every
announcement must come true. In pages and examples (`page_programs`) none may be found.
"""

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import page_programs
from checkers import ROOT, Finding, mypy, pyright

HERE = Path(__file__).parent
PROGRAMS = sorted(HERE.glob("accepted_*.py")) + sorted(HERE.glob("refused_*.py"))
Errors = dict[tuple[str, int], set[str]]


def announced(column: int) -> Errors:
    """The errors that the programs announce, by file and line."""
    found: Errors = {}
    for path in PROGRAMS:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.search(r"# E: (\S+) \| (\S+)", line)
            if match and match[column] != "-":
                found[path.name, number] = {match[column]}
    return found


def by_line(findings: Sequence[Finding]) -> Errors:
    """The rules that are broken, by file and line."""
    found: Errors = {}
    for finding in findings:
        found.setdefault((finding.file.name, finding.line), set()).add(finding.rule)
    return found


def of_programs() -> dict[str, Errors]:
    """What each checker finds in the programs, and pyright in the installed package besides."""
    package = Path(str(find_spec("dgrr").origin)).parent  # type: ignore[union-attr]
    strict = {"typeCheckingMode": "strict", "extraPaths": [str(HERE)]}
    by_mypy = mypy(PROGRAMS, ROOT / "pyproject.toml")
    return {"mypy": by_line(by_mypy), "pyright": by_line(pyright([package, *PROGRAMS], strict))}


def compare(checker: str, expected: Errors, found: Errors) -> int:
    """Print every line where an error is missing or not announced; how many there are."""
    lines = sorted(expected.keys() | found.keys())
    wrong = [at for at in lines if at not in expected or not expected[at] <= found.get(at, set())]
    for name, line in wrong:
        print(f"{checker}: {name}:{line}: expected {expected.get((name, line))}, found {found.get((name, line))}")
    print(f"{checker}: {len(expected)} errors announced, {len(wrong)} differences")
    return len(wrong)


def none_in_pages() -> int:
    """Print what is found in pages and examples; how much it is."""
    found = page_programs.found()
    for checker, lines in found.items():
        print(*(f"{checker}: {line}" for line in lines), sep="\n", end="\n" * bool(lines))
        print(f"{checker}: {len(lines)} errors in {len(page_programs.programs())} pages and examples")
    return sum(map(len, found.values()))


if __name__ == "__main__":
    found = of_programs()
    differences = [compare(checker, announced(i), found[checker]) for i, checker in enumerate(found, 1)]
    sys.exit(bool(sum(differences) + none_in_pages()))
