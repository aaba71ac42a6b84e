"""``--json``: every command answers with one object of the tables on the page, whatever happens."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgrr
from dgrr.base import kernel_cache
from dgrr.base.runs.called_op import CalledOp
from dgrr.base.runs.run import RuleGroup, Run
from dgrr.tape.numerics.engine.code_for import target
from dgrr.tape.numerics.engine.side_by_side import Task
from dgrr.trace import CompletedStep, Keep, Verdict, open_recorder
from dgrr.trace.cli import main, warm
from dgrr.trace.cli.answer import Answer
from dgrr.trace.cli.commands import commands
from dgrr.trace.exit_codes import Exit
from dgrr.trace.v2.repair.forge import flip_bit

from .answer_tables import Tables

RecordRun = Callable[..., Path]
pytestmark = pytest.mark.xdist_group("answers as JSON")  # one process sees which tables they use

MODEL = """
import numpy as np
from dgrr.runtime import SGD, Keep, Trainer, capture

PARAMS = {"w": np.ones(3)}
BATCHES = [np.arange(3.0), np.ones(3)]


def loss_fn(p, x):
    return (p["w"] * x).sum(), {"mean": p["w"].mean()}


def run():
    print("a word on the way")
    return loss_fn, BATCHES


def another_run():
    return (lambda p, x: (p["w"] * x * 2).sum()), BATCHES


def make():
    return capture(loss_fn, PARAMS, SGD(0.1), BATCHES[0])


def broken():
    made = make()
    made.plan
    hyper = next(v for v in made.graph.values.values() if v.name == "hyper")
    made.record(BATCHES[0]).step.bound.memory[hyper.id].view(np.float64)[0] = 0.2
    return made


def train(trace):
    trace = Keep(trace, ops="first") if isinstance(trace, str) else trace
    Trainer(loss_fn, PARAMS, SGD(0.1), trace=trace, clip_norm=0.5).fit(BATCHES, steps=4)


def train_otherwise(trace):
    Trainer(loss_fn, PARAMS, SGD(0.2), trace=trace, clip_norm=0.5).fit(BATCHES, steps=4)


def train_with_a_parameter_too_many(trace):
    Trainer(loss_fn, {**PARAMS, "forgotten": np.ones(3)}, SGD(0.1), trace=trace).fit(BATCHES, epochs=2)


def train_with_notes(trace):
    trace = Keep(trace, notes={"lr": 0.1, "layers": [2, 3], "data": "digits"})
    Trainer(loss_fn, PARAMS, SGD(0.1), trace=trace).fit(BATCHES, epochs=2, validation=BATCHES)


def train_on_other_ops(trace):
    options = {"trace": Keep(trace, ops="first"), "clip_norm": 0.5}
    Trainer(lambda p, x: (p["w"] * x * 2).sum(), PARAMS, SGD(0.1), **options).fit(BATCHES, steps=4)
"""

ANSWERS = [
    ("demo --epochs 1", 0),
    ("demo --epochs 1 --out there", 2),
    ("train --steps 2 --out new", 0),
    ("train --steps 9 --lr 1e300 --out new", 4),
    ("train --lr fast", 1),
    ("validate run.dgrr", 0),
    ("validate v1", 0),
    ("validate cut.dgrr", 3),
    ("validate cut-v1", 3),
    ("validate there", 3),
    ("validate short", 3),
    ("validate missing", 2),
    ("validate", 1),
    ("replay run.dgrr", 0),
    ("replay run.dgrr --step 2", 0),
    ("replay mine.dgrr --step 2 --model model_of_json:run", 0),
    ("replay mine.dgrr --model model_of_json:another_run", 5),
    ("replay run.dgrr --model model_of_json:nothing", 1),
    ("replay run.dgrr --numerics 99", 6),
    ("replay v1 --step 1", 0),
    ("replay v1 --step 1 --seed 1", 5),
    ("inspect run.dgrr", 0),
    ("inspect run.dgrr --step 0", 0),
    ("inspect mine.dgrr --step 0", 0),
    ("inspect child.dgrr", 0),
    ("inspect called.dgrr --step 0", 0),
    ("inspect v1 --step 0", 0),
    ("inspect v1 --step 9", 1),
    ("show run.dgrr", 0),
    ("show cut.dgrr", 0),
    ("show remarked.dgrr", 0),
    ("show golden.dgrr --follow", 0),
    ("show noted.dgrr", 0),
    ("show noted.dgrr run.dgrr cut.dgrr v1", 0),
    ("show noted.dgrr missing", 2),
    ("show --follow noted.dgrr run.dgrr", 1),
    ("show mine.dgrr --tensor w", 0),
    ("show mine.dgrr --tensor w --what value --step 0", 0),
    ("show mine.dgrr --tensor w --what update", 6),
    ("show mine.dgrr --tensor v", 1),
    ("inspect noted.dgrr --step 2", 0),
    ("show v1", 1),
    ("show there", 3),
    ("show missing", 2),
    ("ls", 0),
    ("ls missing", 2),
    ("rollback run.dgrr --step 2", 0),
    ("rollback run.dgrr --step 2 --out new", 0),
    ("rollback v1 --step 1", 0),
    ("recover run.dgrr -o new", 0),
    ("recover flipped.dgrr -o new", 7),
    ("recover there -o new", 3),
    ("recover run.dgrr -o run.dgrr", 1),
    ("compare run.dgrr run.dgrr --proven", 0),
    ("spread run.dgrr run.dgrr", 0),
    ("diff run.dgrr other.dgrr", 4),
    ("diff run.dgrr short.dgrr", 4),
    ("diff mine.dgrr ops.dgrr", 4),
    ("diff called.dgrr called-otherwise.dgrr", 4),
    ("diff mine.dgrr --model model_of_json:run", 0),
    ("diff mine.dgrr --model model_of_json:another_run", 4),
    ("diff run.dgrr flipped.dgrr --proven", 3),
    ("bisect run.dgrr other.dgrr", 4),
    ("bisect v1 other-v1", 4),
    ("bisect mine.dgrr --model model_of_json:run", 0),
    ("bisect mine.dgrr --model model_of_json:another_run", 4),
    ("bisect mine.dgrr --model model_of_json:another_run --git", 4),
    ("bisect mine.dgrr --rule a:b", 1),
    ("bisect mine.dgrr --model model_of_json:nothing", 1),
    ("diff v1 v1", 0),
    ("diff v1 other-v1", 4),
    ("diff v1 longer-v1", 4),
    ("diff v1 run.dgrr", 3),
    ("diff --policy near a b", 1),
    ("at mine.dgrr --step 2 --model model_of_json:run", 0),
    ("at mine.dgrr --step 2 --model model_of_json:run --explain w --save new", 0),
    ("at mine.dgrr --step 2 --model model_of_json:run --dot", 0),
    ("at mine.dgrr --step 2 --model model_of_json:another_run", 5),
    ("at golden.dgrr --step 0 --model model_of_json:run", 6),
    ("at mine.dgrr --step 9 --model model_of_json:run", 1),
    ("at v1 --step 0 --model model_of_json:run", 1),
    ("when mine.dgrr any(w*1<1) --model model_of_json:run", 0),
    ("when mine.dgrr max(node('mul'))>0 --model model_of_json:run", 0),
    ("when mine.dgrr any(w<1) --model model_of_json:run --edit w=w*2", 0),
    ("when mine.dgrr loss>1e9", 4),
    ("when mine.dgrr losss>1", 1),
    ("when mine.dgrr max(node('mul'))>0 --model model_of_json:another_run", 5),
    ("when golden.dgrr min(w)<1 --model model_of_json:run", 6),
    ("when v1 loss>1", 1),
    ("fork mine.dgrr --step 2 --steps 2 --model model_of_json:run -o new", 0),
    ("fork mine.dgrr --step 2 --steps 9 --model model_of_json:run --set lr=0.5 -o new", 0),
    ("fork mine.dgrr --step 2 --steps 2 --model model_of_json:another_run -o new", 5),
    ("fork mine.dgrr --step 2 --steps 2 --model model_of_json:run -o there", 1),
    ("export mine.dgrr --format csv -o new", 0),
    ("export mine.dgrr --format safetensors --step 2 -o new", 0),
    ("export golden.dgrr --format safetensors --step 2 -o new", 6),
    ("export mine.dgrr --format csv -o there", 1),
    ("audit mine.dgrr --model model_of_json:run --sample 2 --nonce 00 -o new", 0),
    ("audit mine.dgrr --model model_of_json:another_run --nonce 00", 5),
    ("audit golden.dgrr --model model_of_json:run", 6),
    ("audit cut.dgrr --model model_of_json:run", 3),
    ("audit v1 --model model_of_json:run", 1),
    ("audit mine.dgrr --check there", 3),
    ("report mine.dgrr ops.dgrr -o new --model model_of_json:run --rebuild 2", 0),
    ("report flipped.dgrr -o new", 0),
    ("report run.dgrr -o run.dgrr", 1),
    ("report there -o new", 3),
    ("report missing -o new", 2),
    ("test record new --train model_of_json:train", 0),
    ("test check golden.dgrr --train model_of_json:train", 0),
    ("test check golden.dgrr --train model_of_json:train_otherwise", 4),
    ("test check missing --train model_of_json:train", 2),
    ("test check golden.dgrr --train model_of_json:make", 1),
    ("verify-step model_of_json:make --replays 2", 0),
    ("verify-step model_of_json:broken --replays 2", 5),
    ("verify-step model_of_json:train", 1),
    ("cache", 0),
    ("cache show m:f", 1),
    ("cache export kernels.tar", 0),
    ("cache import there", 2),
    ("cache warm", 2),
    ("cache warm model_of_json:make", 0),
    ("dance", 1),
]

CUT = ("validate cut.dgrr", "validate short", "audit cut.dgrr --model model_of_json:run")

HELD = Tables()


def write_calls(path: str, by: float) -> None:
    """A step of a run of another framework, and what it has called."""
    w = np.ones(3)
    with open_recorder(Keep(path), Run({"w": w}, {}, [RuleGroup("other@1", ("lr",))], numerics=0)) as recorder:
        recorder.calls(0, [CalledOp("aten.mul.Tensor", f"other={by}", (bytes(16),), (bytes(16),), place="a.py:1: x")])
        told: dict[str, Any] = {"hyper": {"lr": 0.1}, "params": {"w": w}, "state": {}}
        recorder.step(CompletedStep(step=0, loss=np.array(by), grads={"w": w * by}, batch=w, **told))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture
def files(folder: Path, record_run: RecordRun, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with traces of both versions, good and bad, and a model."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    if not (folder / "run.dgrr").exists():
        for name, options in {"run": {}, "other": {"diverge": 2}, "short": {"steps": 4}}.items():
            (folder / f"{name}.dgrr").write_bytes(record_run(f"{name}.dgrr", **options).read_bytes())
        run = (folder / "run.dgrr").read_bytes()
        (folder / "cut.dgrr").write_bytes(run[:-9])
        flip_bit("run.dgrr", "flipped.dgrr", len(run) // 2, 0)
        (folder / "there").write_bytes(b"no trace")
        (folder / "short").write_bytes(b"DGRR")
        (folder / "model_of_json.py").write_text(MODEL)
        model = importlib.import_module("model_of_json")
        model.train("mine.dgrr")
        model.train_on_other_ops("ops.dgrr")
        model.train_with_notes("noted.dgrr")
        model.train_with_a_parameter_too_many("remarked.dgrr")
        write_calls("called.dgrr", 1.0)
        write_calls("called-otherwise.dgrr", 2.0)
        for command in (
            "train --steps 3 --out v1",
            "train --steps 3 --out other-v1 --seed 1",
            "train --steps 4 --out longer-v1",
            "rollback run.dgrr --step 2 --out child.dgrr",
            "test record golden.dgrr --train model_of_json:train",
        ):
            assert main(command.split()) == 0
        (folder / "cut-v1").write_bytes((folder / "v1").read_bytes()[:-1])
    for new in folder.glob("new*"):
        new.unlink()
    return folder


@pytest.mark.parametrize(("command", "code"), ANSWERS, ids=[command for command, _ in ANSWERS])
def test_every_answer_is_of_the_tables(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    def fails() -> None:
        raise ValueError("no such kernel")

    monkeypatch.setattr(warm, "tasks", lambda: [Task("fails", fails)])
    if command.startswith("cache export"):  # which takes seconds of all kernels that tests compile
        monkeypatch.setenv("DGRR_CACHE_DIR", str(files / "kernels"))
        assert kernel_cache.keep(f"{target()[1]}/add-12.nbc", b"machine code")
    capsys.readouterr()
    assert main([*command.split(), "--json"]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    answer = json.loads(out)
    HELD.check(answer)
    assert answer["exit_code"] == code
    assert (answer["verdict"] == "torn-tail") is (command in CUT)
    assert answer["version"] == dgrr.__version__
    assert answer["verdict"] in {verdict.value for verdict in Verdict} | {"usage", "failed", "interrupted", "never"}
    assert (answer["verdict"] == "ok") is (code == 0)
    assert answer["command"] == {"diff": "compare", "dance": None}.get(command.split()[0], command.split()[0])
    assert answer["error"] or answer["result"] is not None
    assert (answer["result"] is None) is (answer["command"] is None or code == 1 or _kept_from_it(command))
    (files / "new").unlink(missing_ok=True)
    assert main(command.split()) == code  # and without --json the same is said in words
    assert (answer["error"] or "") in capsys.readouterr().err


def _kept_from_it(command: str) -> bool:
    """Whether the command has no answer at all: a file cannot be opened, is no trace of a version that it knows, or
    does not have the step that was asked for."""
    no_trace = (
        "report there -o new",
        "report missing -o new",
        "demo --epochs 1 --out there",
        "show there",
        "show missing",
        "show noted.dgrr missing",
        "show mine.dgrr --tensor w --what update",
        "ls missing",
        "validate there",
        "validate short",
        "validate missing",
        "diff v1 run.dgrr",
        "at mine.dgrr --step 2 --model model_of_json:another_run",
        "at golden.dgrr --step 0 --model model_of_json:run",
        "when mine.dgrr max(node('mul'))>0 --model model_of_json:another_run",
        "when golden.dgrr min(w)<1 --model model_of_json:run",
        "fork mine.dgrr --step 2 --steps 2 --model model_of_json:another_run -o new",
        "recover there -o new",
        "export golden.dgrr --format safetensors --step 2 -o new",
        "audit golden.dgrr --model model_of_json:run",
        "cache import there",
        "audit cut.dgrr --model model_of_json:run",
        "audit mine.dgrr --check there",
    )
    return command.startswith("test check missing ") or command in (*no_trace, "replay v1 --step 1 --seed 1")


def test_every_table_was_used_by_some_answer() -> None:
    if not HELD.used:
        pytest.skip("the tests before this one were left out")
    named = {name for name in HELD.tables if name != "answer"}
    assert named - HELD.used == set()
    assert {command.name for command in commands()} <= named


def test_what_is_printed_on_the_way_goes_to_standard_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["replay", "mine.dgrr", "--json", "--model", "model_of_json:run"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "ok"
    assert err == "a word on the way\n"


@pytest.mark.parametrize("command", ["validate -- --json", "validate --json=1 x"])
def test_a_path_of_that_name_asks_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) in (1, 2)
    assert capsys.readouterr().out == ""


def test_ctrl_c(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["dgrr.trace.cli.formats"], "version_of", interrupt)
    assert main(["validate", "t", "--json"]) == 130
    answer = json.loads(capsys.readouterr().out)
    HELD.check(answer)
    assert (answer["verdict"], answer["paths"], answer["error"]) == ("interrupted", ["t"], "interrupted")


def test_the_tables_can_be_broken() -> None:
    """A key that is missing, one of another type, and one too many are found."""
    answer: dict[str, Any] = json.loads(
        Answer(Exit.OK, "ok", {"outcome": "written", "comparison": None}).to_json("test", [])
    )
    Tables().check(answer)
    for change in ({"exit_code": "0"}, {"paths": [1]}, {"result": {"outcome": 1, "comparison": None}}, {"more": 1}):
        with pytest.raises(AssertionError):
            Tables().check(answer | change)
    with pytest.raises(AssertionError):
        Tables().check({key: value for key, value in answer.items() if key != "error"})


def test_json_through_the_entry_point(tmp_path: Path) -> None:
    """Paths that no terminal can show, and nothing but ASCII on standard output."""
    program = "import sys; from dgrr.trace.cli import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", program, "validate", b"\xff\xe9", "--json"], capture_output=True, cwd=tmp_path
    )
    assert (ended.returncode, ended.stderr) == (2, b"")
    assert json.loads(ended.stdout.decode("ascii"))["paths"] == ["\udcff\udce9"]
