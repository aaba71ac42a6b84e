"""mypy strict and pyright strict over the installed package and the programs beside this file.

Run by ``python tests/typing/check.py`` in an environment where dgrr is installed as a wheel. Every error that
a checker finds must be announced by an ``# E: mypy code | pyright rule`` on its line, and every announcement must
come true.
"""

import json
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
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


def mypy() -> Errors:
    """What mypy strict finds in the programs, by the settings of the package, of which it knows then."""
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", *settings, *map(str, PROGRAMS)]
    output = subprocess.run(command, cwd=HERE, capture_output=True, text=True).stdout
    found: Errors = {}
    for m in re.finditer(r"^(\S+?):(\d+): error: .*\[([\w-]+)\]$", output, re.MULTILINE):
        found.setdefault((Path(m[1]).name, int(m[2])), set()).add(m[3])
    return found


def pyright() -> Errors:
    """What pyright strict finds in the installed package and in the programs."""
    package = Path(str(find_spec("dgrr").origin)).parent  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        root = Path(folder).resolve()
        wanted = [str(package), *map(str, PROGRAMS)]
        include = [str(Path(*[".."] * len(root.parts[1:]), *Path(p).parts[1:])) for p in wanted]
        settings = {"include": include, "exclude": [], "typeCheckingMode": "strict", "extraPaths": [str(HERE)]}
        (root / "pyrightconfig.json").write_text(json.dumps(settings))
        command = [sys.executable, "-m", "pyright", "-p", str(root), "--pythonpath", sys.executable, "--outputjson"]
        report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert report["summary"]["filesAnalyzed"] > 80, report["summary"]
    found: Errors = {}
    for item in report["generalDiagnostics"]:
        if item["severity"] == "error":
            at = (Path(item["file"]).name, item["range"]["start"]["line"] + 1)
            found.setdefault(at, set()).add(item.get("rule", "syntax"))
    return found


def compare(checker: str, expected: Errors, found: Errors) -> int:
    """Print every line where an error is missing or not announced; how many there are."""
    lines = sorted(expected.keys() | found.keys())
    wrong = [at for at in lines if at not in expected or not expected[at] <= found.get(at, set())]
    for name, line in wrong:
        print(f"{checker}: {name}:{line}: expected {expected.get((name, line))}, found {found.get((name, line))}")
    print(f"{checker}: {len(expected)} errors announced, {len(wrong)} differences")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(compare("mypy", announced(1), mypy()) + compare("pyright", announced(2), pyright())))
