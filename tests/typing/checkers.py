"""What mypy and pyright find in programs, each finding by its file and line."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mypy_cache"


@dataclass(frozen=True)
class Finding:
    """An error: in which line of which file, by which rule, and what the checker says."""

    file: Path
    line: int
    rule: str
    message: str


def mypy(programs: Sequence[Path], settings: Path) -> list[Finding]:
    """What mypy finds in programs of one folder, by a file of settings."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir", str(CACHE)]
    ended = subprocess.run([*command, *map(str, programs)], cwd=settings.parent, capture_output=True, text=True)
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    lines = re.finditer(r"^(\S+?):(\d+): error: (.*?)(?:  \[([\w-]+)\])?$", ended.stdout, re.MULTILINE)
    return [Finding(Path(m[1]), int(m[2]), m[4] or "syntax", m[3]) for m in lines]


def pyright(wanted: Sequence[Path], settings: Mapping[str, Any]) -> list[Finding]:
    """What pyright finds in files and folders, by its settings."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        root = Path(folder).resolve()
        include = [str(Path(*[".."] * len(root.parts[1:]), *path.resolve().parts[1:])) for path in wanted]
        (root / "pyrightconfig.json").write_text(json.dumps({"include": include, "exclude": [], **settings}))
        command = [sys.executable, "-m", "pyright", "-p", str(root), "--pythonpath", sys.executable, "--outputjson"]
        report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert report["summary"]["filesAnalyzed"] >= len(wanted), report["summary"]
    errors = [item for item in report["generalDiagnostics"] if item["severity"] == "error"]
    at = ((Path(item["file"]), item["range"]["start"]["line"] + 1) for item in errors)
    return [Finding(*at, item.get("rule", "syntax"), item["message"]) for at, item in zip(at, errors, strict=True)]
