"""What the commands answer for traces of version 2."""

import importlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dgrr.trace import open_trace, validate
from dgrr.trace.cli import main
from dgrr.trace.v2.repair.forge import flip_bit

from .conftest import ModuleOf

RecordRun = Callable[..., Path]
Said = tuple[int, str, str]


@pytest.fixture
def dgrr(
    record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """Run in this process, in a folder with three traces, of which one is cut and one diverges at step 2."""
    (tmp_path / "cut.dgrr").write_bytes(record_run().read_bytes()[:-9])
    record_run("other.dgrr", diverge=2)
    monkeypatch.chdir(tmp_path)

    def run(command: str) -> Said:
        code = main(command.split())
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("validate run.dgrr", 0, "run.dgrr: ok (version 2, 6 steps)"),
        ("validate cut.dgrr", 3, "torn-tail: "),
        ("validate missing", 2, "cannot open missing"),
        ("replay run.dgrr", 0, "update     proven"),
        ("replay --trace run.dgrr", 0, "update     proven"),
        ("replay run.dgrr --step 3", 0, "run.dgrr: step 3\n  loss 0.25 ("),
        ("replay --step 3 run.dgrr", 0, "run.dgrr: step 3\n  loss 0.25 ("),
        ("replay run.dgrr --step 6", 1, "argument --step: run.dgrr has no step 6: it has steps 0 to 5"),
        ("replay run.dgrr --ulp-tol 1", 1, "digests have no tolerance"),
        ("replay run.dgrr --seed 0", 0, "update     proven"),
        ("replay run.dgrr --seed 7", 5, "data: seed: expected 7, the trace says 0"),
        ("replay run.dgrr --numerics 99", 6, "numerics: numerics version: expected 99, the trace says "),
        ("inspect run.dgrr", 0, "param  f32  (3, 2)           w"),
        ("inspect run.dgrr --step 2", 0, "state root "),
        ("inspect run.dgrr --step 6", 1, "argument --step: run.dgrr has no step 6: it has steps 0 to 5"),
        ("inspect cut.dgrr --step 1", 0, "micro-batches 1"),
        ("rollback run.dgrr --step 7", 1, "argument --step: run.dgrr has no state before step 7: expected 0 to 6"),
        ("rollback run.dgrr --step 4 --out run.dgrr", 1, "writes only new files"),
        ("compare run.dgrr run.dgrr", 0, "ok: equal to the bit: 6 steps"),
        ("diff run.dgrr run.dgrr", 0, "ok: equal to the bit: 6 steps"),
        ("diff run.dgrr --proven run.dgrr", 0, "both files are proven from their first byte to their last"),
        ("diff cut.dgrr run.dgrr --proven", 0, "6 steps"),
        ("compare run.dgrr other.dgrr", 4, "diverged (gradient): step 2 is the first"),
        ("compare --a run.dgrr --b other.dgrr --ulp-tol 3", 4, "step 2 is the first"),
        ("diff run.dgrr --policy rtol=1 other.dgrr", 4, "step 2 is the first"),
        ("diff run.dgrr other.dgrr --policy rtol=1e30,atol=1e30", 0, "ok: equal within rtol=1e+30,atol=1e+30: 6 steps"),
        ("diff run.dgrr other.dgrr --policy close", 1, "argument --policy: policy: expected 'bitwise', 'ulp=4' or"),
        (
            "diff run.dgrr other.dgrr --policy ulp=1 --ulp-tol 2",
            1,
            "argument --policy: not allowed with argument --ulp-tol",
        ),
        ("compare run.dgrr missing", 2, "cannot open missing"),
    ],
)
def test_answers(dgrr: Callable[..., Said], command: str, code: int, text: str) -> None:
    found, out, err = dgrr(command)
    assert (found, text in (out if code in (0, 4) else err)) == (code, True), (out, err)
    assert "Traceback" not in err


def test_rollback_shows_and_writes_nothing(dgrr: Callable[..., Said], tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = dgrr("rollback run.dgrr --step 4")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "run.dgrr: state before step 4; 2 of 6 steps discarded"
    with open_trace("run.dgrr") as trace:
        digests = trace[3].state_digests
    assert lines[1:-1] == [f"  {name} {digest.hex()}" for name, digest in digests.items()]
    assert lines[-1] == "nothing is written; --out PATH would hold steps 0 to 3"
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rollback_to_the_beginning(dgrr: Callable[..., Said]) -> None:
    code, out, _ = dgrr("rollback run.dgrr --step 0")
    assert code == 0
    with open_trace("run.dgrr") as trace:
        assert f"  w {trace.keyframe_digests(0)['w'].hex()}\n" in out
    assert out.endswith("would hold the initial state\n")


def test_rollback_says_where_no_state_is_recorded(
    dgrr: Callable[..., Said], record_run: RecordRun, tmp_path: Path
) -> None:
    record_run("seldom.dgrr", state_every=4)
    assert "  its digests are not recorded here\n" in dgrr("rollback seldom.dgrr --step 3")[1]
    assert "  w " in dgrr("rollback seldom.dgrr --step 4")[1]


def test_rollback_writes_what_it_showed(dgrr: Callable[..., Said]) -> None:
    code, out, _ = dgrr("rollback run.dgrr --step 4 --out child.dgrr")
    assert code == 0
    assert out.endswith("child.dgrr: steps 0 to 3; run.dgrr is unchanged\n")
    assert validate("child.dgrr").steps == 4
    assert "4 steps taken over from" in dgrr("inspect child.dgrr")[1]


@pytest.mark.parametrize("policy", ["bitwise", "ulp=3"])
def test_policies_of_version_1(dgrr: Callable[..., Said], policy: str) -> None:
    assert dgrr("train --steps 2 --out v1")[0] == 0
    assert dgrr(f"diff v1 v1 --policy {policy}")[0] == 0
    code, _, err = dgrr("diff v1 v1 --policy rtol=1")
    assert code == 1
    assert "argument --policy: v1 is of version 1: expected bitwise or ulp=N, got 'rtol=1'" in err


def test_what_version_1_replays(dgrr: Callable[..., Said]) -> None:
    assert dgrr("train --steps 2 --out v1")[0] == 0
    assert dgrr("replay v1 --step 0 --seed 42")[0] == 0
    assert dgrr("replay v1 --step 0 --seed 7") == (5, "", "dgrr: v1: seed: expected 7, the trace says 42\n")
    assert "whose numerics is fixed" in dgrr("replay v1 --step 0 --numerics 1")[2]


MODEL = """
import numpy as np
from dgrr.runtime import SGD, Trainer

PARAMS = {"w": np.ones(3)}
BATCHES = [np.arange(3.0), np.ones(3)]


def loss_fn(p, x):
    return (p["w"] * x).sum()


def run():
    return loss_fn, BATCHES


def another_run():
    return (lambda p, x: (p["w"] * x * 2).sum()), BATCHES


def train(trace):
    Trainer(loss_fn, PARAMS, SGD(0.1), trace=trace).fit(BATCHES, steps=4)


def train_otherwise(trace):
    Trainer(loss_fn, PARAMS, SGD(0.2), trace=trace).fit(BATCHES, steps=4)
"""


@pytest.fixture
def models(
    dgrr: Callable[..., Said], record_run: RecordRun, tmp_path: Path, module_of: ModuleOf
) -> Callable[..., Said]:
    """The same, with a model and its trace."""
    module_of("model_of_diff", MODEL).train("mine.dgrr")
    record_run("bare.dgrr", record="bare")
    with open_trace("mine.dgrr") as trace:
        gradient = trace.tensor("w", step=3).tobytes()
    flip_bit("mine.dgrr", "bad.dgrr", (tmp_path / "mine.dgrr").read_bytes().rindex(gradient), 0)
    return dgrr


def test_a_trace_and_its_model(models: Callable[..., Said]) -> None:
    code, out, err = models("diff mine.dgrr --model model_of_diff:run")
    assert (code, err) == (0, "")
    assert out.startswith("ok: equal to the bit: 4 steps\n")
    assert models("diff mine.dgrr --model model_of_diff:run --proven --policy ulp=4")[0] == 0
    code, out, err = models("diff mine.dgrr --model model_of_diff:another_run")
    assert (code, err) == (4, "")
    assert out.startswith("diverged (gradient): step 0 is the first that differs")


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("diff mine.dgrr mine.dgrr --model model_of_diff:run", 1, "expected one trace with --model, got 2"),
        ("diff --model model_of_diff:run", 1, "expected one trace with --model, got 0"),
        ("diff missing --model model_of_diff:run", 2, "cannot open missing"),
        ("diff mine.dgrr mine.dgrr --rule m:R", 1, "argument --rule: it requires --model"),
        ("diff bare.dgrr --model model_of_diff:run", 1, "argument --model: diff_with_model: the trace holds no values"),
        ("diff bad.dgrr --model model_of_diff:run --proven", 3, "bad.dgrr: the digest of 'w' (grad)"),
    ],
)
def test_a_model_and_a_wrong_command(models: Callable[..., Said], command: str, code: int, text: str) -> None:
    found, out, err = models(command)
    assert (found, text in out + err) == (code, True), (out, err)


def test_a_golden_trace(models: Callable[..., Said], tmp_path: Path) -> None:
    check, record = (f"test {action} golden.dgrr --train model_of_diff:" for action in ("check", "record"))
    code, _, err = models(f"{check}train")
    assert (code, "cannot open golden.dgrr" in err) == (2, True)
    assert models(f"{record}train") == (0, "golden.dgrr: written\n", "")
    before = (tmp_path / "golden.dgrr").read_bytes()
    assert models(f"{check}train") == (0, "golden.dgrr: verified: equal to the bit: 4 steps\n", "")
    assert models(f"{record}train") == (0, "golden.dgrr: unchanged: the run is the same\n", "")
    code, out, err = models(f"{check}train_otherwise --policy bitwise")
    assert (code, err) == (4, "")
    assert out.startswith("diverged (rule): step 0 is the first that differs: it has another lr: 0.1 -> 0.2")
    assert (tmp_path / "golden.dgrr").read_bytes() == before
    (tmp_path / "golden.dgrr.txt").write_text("another")
    assert models(f"{check}train")[0] == 3
    assert models(f"{record}train_otherwise")[1] == "golden.dgrr: updated: the run is another\n"


def test_a_golden_trace_that_cannot_be_written(models: Callable[..., Said], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    code, out, err = models("test record fifo --train model_of_diff:train")
    assert (code, out) == (2, "")
    assert "it exists and is not a regular file" in err
    assert models("test record missing/x/golden.dgrr --train model_of_diff:train")[0] == 0
    (tmp_path / "file").write_text("")
    assert models("test record file/golden.dgrr --train model_of_diff:train")[0] == 2


def test_inspect_shows_the_ops_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    (kept,) = (Path(__file__).parents[1] / "golden" / "kept").rglob("*.dgrr")
    assert main(["inspect", str(kept), "--step", "3"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  op ")]
    assert len(lines) == 10
    digest = "[0-9a-f]{32}"
    assert re.fullmatch(rf"op #1 leaf '0.weight' float32 \(32, 64\): {digest}, gradient {digest}", lines[1])
    assert re.fullmatch(rf"op #4 relu float32 \(64, 32\) in layer 1: {digest}, gradient {digest}", lines[4])


COUNTING = """
import itertools
import numpy as np
from dgrr.runtime import SGD, Trainer

BATCHES = [np.full(3, float(i)) for i in range(40)]


def run():
    calls = itertools.count(1)
    return lambda p, x: (p["w"] * x).sum() * float(next(calls)), BATCHES


def train(path):
    loss_fn, batches = run()
    Trainer(loss_fn, {"w": np.ones(3)}, SGD(0.1), trace=path, mode="eager").fit(batches, progress=False)
"""


def test_a_model_with_a_state_of_its_own_is_replayed_op_by_op(dgrr: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "counting_model.py").write_text(COUNTING)
    sys.path.insert(0, str(tmp_path))
    try:
        importlib.import_module("counting_model").train("counting.dgrr")
        assert dgrr("replay counting.dgrr --model counting_model:run --mode eager")[0] == 0
        assert dgrr("replay counting.dgrr --model counting_model:run")[0] == 5
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("counting_model", None)
