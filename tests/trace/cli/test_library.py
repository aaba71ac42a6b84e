"""``dgrr export --library``: a captured function as a library, and every way in which there is none."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace.cli import main

MODEL = """
import numpy as np
from dgrr.runtime import capture_function

def double():
    return capture_function(lambda x: x + x, np.zeros(3, np.float32))

def nothing():
    return 3
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dgrr(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run in this process, in a folder with a model, and return (code, out, err)."""
    (tmp_path / "model_of_library.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(*arguments: Any) -> tuple[int, str, str]:
        code = main(list(map(str, arguments)))
        return (code, *capsys.readouterr())

    return run


def test_files_for_each_target(dgrr: Run, tmp_path: Path) -> None:
    code, out, err = dgrr(
        "export", "--library", "model_of_library:double", "--target", "wasm32,riscv64", "-o", "made", "--json"
    )
    assert code == 0, err
    answer = json.loads(out)["result"]
    assert (answer["format"], answer["written"]) == ("library", "made")
    made = {str(p.relative_to(tmp_path / "made")) for p in (tmp_path / "made").rglob("*.*")}
    expected = {f"{t}/double.{end}" for t in ("wasm32", "riscv64") for end in ("o", "h", "json")}
    assert made == expected | {f"wasm32/double.{end}" for end in ("wasm", "mjs", "d.mts")}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--library model_of_library:nothing -o made", "expected what dgrr.runtime.capture_function or capture makes"),
        ("--library model_of_library:double --target pdp11 -o made", "argument 'target': expected one of x86-64-v4"),
        ("--library model_of_library:double --name 3d -o made", "argument 'name': expected letters, digits and _"),
        ("--library model_of_library:double -o .", "argument --out: . is there already"),
        (
            "--library model_of_library:double --format csv -o made",
            "argument --library: --format cannot be used with it",
        ),
        ("run.dgrr --library model_of_library:double -o made", "argument --library: PATH cannot be used with it"),
        ("run.dgrr --format csv --target wasm32 -o made", "argument --target: it needs --library or --judge"),
        ("-o made", "the following arguments are required: PATH, --format"),
        ("run.dgrr -o made", "the following arguments are required: --format"),
    ],
)
def test_usage_errors(dgrr: Run, tmp_path: Path, arguments: str, text: str) -> None:
    code, _, err = dgrr("export", *arguments.split())
    assert code == 1
    assert text in err
    assert not (tmp_path / "made").exists()
