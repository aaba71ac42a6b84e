"""What the commands print for traces of version 2, and their exit codes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import validate
from dgrr.trace.cli import v2
from dgrr.trace.v2.write.rollback import rollback_v2

RecordRun = Callable[..., Path]

MODEL = """
import numpy as np
def make():
    return (lambda p, batch: None), [np.zeros(3)]
"""


def test_commands(
    record_run: RecordRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = str(record_run()), str(record_run("other.dgrr", diverge=2))
    (tmp_path / "bad").write_bytes(Path(path).read_bytes()[:-9])
    (tmp_path / "some_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    calls: list[tuple[Callable[[], int], int, str]] = [
        (lambda: v2.validate(path), 0, "run.dgrr: ok (version 2, 6 steps)"),
        (lambda: v2.validate("bad"), 3, "torn-tail: "),
        (lambda: v2.validate("missing"), 2, "cannot open missing"),
        (lambda: v2.replay(path, None, 0, None), 0, "update     proven"),
        (lambda: v2.replay(path, 3, 0, None), 0, "run.dgrr: step 3\n  loss 0.25 ("),
        (lambda: v2.replay(path, 6, 0, None), 1, "--step: expected 0 to 5, got 6"),
        (lambda: v2.replay(path, None, 1, None), 1, "digests have no tolerance"),
        (lambda: v2.replay(path, None, 0, "some_model:make"), 5, "data: step 0: the batch is not the one"),
        (lambda: v2.replay(path, None, 0, "some_model"), 1, "--model: expected MODULE:FUNCTION"),
        (lambda: v2.replay(path, None, 0, "some_model:x"), 1, "--model some_model:x: cannot be loaded"),
        (lambda: v2.inspect(path, None), 0, "param  f32  (3, 2)           w"),
        (lambda: v2.inspect(path, 2), 0, "state root "),
        (lambda: v2.inspect(path, 6), 1, "expected a step from 0 to 5, got 6"),
        (lambda: v2.inspect("bad", 1), 0, "micro-batches 1"),
        (lambda: v2.rollback(path, 4, None), 0, "run.before-4.dgrr: steps 0 to 3"),
        (lambda: v2.rollback(path, 4, path), 1, "always writes a new file"),
        (lambda: v2.compare(path, path, 0), 0, "ok: equal to the bit: 6 steps"),
        (lambda: v2.compare(path, other, 0), 4, "diverged (gradient): step 2 is the first"),
        (lambda: v2.compare(path, "missing", 0), 2, "cannot open missing"),
    ]
    for i, (call, code, text) in enumerate(calls):
        assert call() == code, i
        out, err = capsys.readouterr()
        assert text in (err if code not in (0, 4) else out), (i, out, err)
    assert validate("run.before-4.dgrr").steps == 4


def test_inspect_names_the_parent(record_run: RecordRun, tmp_path: Path, capsys: Any) -> None:
    rollback_v2(record_run(), 2, tmp_path / "child")
    assert v2.inspect(str(tmp_path / "child"), None) == 0
    assert "2 steps taken over from" in capsys.readouterr().out
