"""``dgrr show`` and ``dgrr ls``: a run on one screen, while it is recorded too, and the runs of a folder."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD
from dgrr.tape import NUMERICS
from dgrr.trace import CompletedStep, TraceRecorder, Verdict, open_trace
from dgrr.trace.cli import main
from dgrr.trace.showing import overview
from dgrr.trace.showing.follow import follow
from dgrr.trace.showing.overview import RunOverview
from dgrr.trace.v2.check.report import Finding, Report
from dgrr.trace.v2.repair.forge import flip_bit

from ...keeping import recorder_of, resumed
from ..v2.read.test_damage import frame_bounds

RecordRun = Callable[..., Path]
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a command says, in the folder of the traces."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        return main(arguments), *capsys.readouterr()

    return run


class Running:
    """A run that a recorder is told of, step by step; its loss at step k is what `losses` says."""

    def __init__(self, path: Path, losses: list[float], **options: Any) -> None:
        self.rule, self.params = SGD(0.1), {"w": np.ones(3), "b": np.zeros(2)}
        self.losses, self.step = losses, 0
        self.state = self.rule.init(self.params)
        law = {"rule": self.rule.rule, "hyperparameters": list(self.rule.hyperparameters()), "numerics": NUMERICS}
        given: Any = law | {"record": "grads"} | options
        self.recorder: TraceRecorder = recorder_of(path, params=self.params, state=self.state, **given)

    def on(self, w: Any = (3.0, -4.0, 0.5), b: Any = (0.0, 0.0), **more: Any) -> None:
        """One more step, with these gradients."""
        grads = {"w": np.array(w), "b": np.array(b)}
        self.rule.step(self.params, grads, self.state)
        loss, hyper = np.array(self.losses[self.step]), self.rule.hyperparameters()
        told = {"step": self.step, "loss": loss, "hyper": hyper, "grads": grads, "batch": np.ones(2)}
        self.recorder.step(CompletedStep(**told, **more, params=self.params, state=self.state))
        self.recorder.commit()  # else it is written later
        self.step += 1


def recorded(path: Path, losses: list[float], **options: Any) -> Running:
    run = Running(path, losses, **options)
    for _ in losses:
        run.on()
    return run


# ------------------------------------------------------------------ show


def test_a_finished_run_on_one_screen(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "run.dgrr"
    recorded(path, [4.0, 2.0, 1.0, 3.0]).recorder.seal()
    with open_trace(path) as trace:  # as if it had taken two seconds; the clock of files may lag behind
        os.utime(path, ns=(0, trace.header.created_at + 2 * 10**9))
    code, out, err = said("show", "run.dgrr")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "run.dgrr: 4 steps, sealed"
    assert lines[3].startswith("4 ┤") and lines[10].startswith("1 ┤")
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in lines if re.match(r"[a-z]+( loss| root)?  ", line))
    assert facts["best loss"] == "1 at step 2"
    assert facts["last loss"] == "3 at step 3"
    assert facts["speed"] == "2 steps/s on average, by the times of the file"
    assert facts["model"] == "5 parameters in 2 tensors, sgd@1"
    assert facts["recorded"].startswith("grads, ") and facts["recorded"].endswith(" kB, seed 0")
    assert re.fullmatch(r"[0-9a-f]{32}", facts["state root"])
    assert facts["verdict"] == "ok: structure, chain proven; update, gradient, data not proven"
    assert "dgrr replay run.dgrr proves more" in out
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert rows == [["w", "4", "0", "4", "0%", ""], ["b", "0", "0", "0", "100%", "dead"]]
    assert lines[-1] == "seen at 4 steps of 4"


def test_metrics_of_the_last_step(said: Said, tmp_path: Path) -> None:
    run = Running(tmp_path / "run.dgrr", [4.0, 2.0])
    run.on(metrics={"accuracy": 0.25})
    run.on(metrics={"accuracy": 2 / 3, "hits": 12.0})
    assert re.search(r"^metrics +accuracy 0\.666667, hits 12, at the last step$", said("show", "run.dgrr")[1], re.M)
    run.recorder.seal()
    told = json.loads(said("show", "run.dgrr", "--json")[1])["result"]["run"]["metrics"]
    assert told == {"accuracy": 2 / 3, "hits": 12.0}
    code, out, _ = said("inspect", "run.dgrr", "--step", "0")
    assert (code, "  metric accuracy 0.25 (0x1.0000000000000p-2)\n" in out) == (0, True)


CONFIG: dict[str, Any] = {"lr": 0.1, "data": "digits", "layers": [64, 10]}


def noted(path: Path, losses: list[float], **options: Any) -> Running:
    """A run with notes, measured on other data behind every second step."""
    run = Running(path, losses, **({"notes": CONFIG, "created_at": 10**18} | options))
    for k, loss in enumerate(losses):
        run.on()
        if k % 2:
            run.recorder.validation({"validation_loss": loss / 2, "validation_acc": 0.25 * k})
    return run


def test_validations_and_notes(said: Said, tmp_path: Path) -> None:
    noted(tmp_path / "run.dgrr", [4.0, 1.0, 2.0, 3.0]).recorder.seal()
    _, out, _ = said("show", "run.dgrr")
    assert "\nbest validation  loss 0.5 after step 1\n" in out
    assert "\nlast validation  loss 1.5, acc 0.75 after step 3\n" in out
    assert "notes            lr: 0.1\n                 data: digits\n                 layers: [64, 10]\n" in out
    assert re.search(r"^begun            2001-09-09 01:46:40 UTC on .+; dgrr .+, numpy .+, numba .+, python", out, re.M)
    run = json.loads(said("show", "run.dgrr", "--json")[1])["result"]["run"]
    assert run["notes"] == CONFIG
    assert [row["step"] for row in run["validations"]] == [1, 3]
    assert run["noted"][0]["time"] == "2001-09-09T01:46:40Z"
    _, out, _ = said("inspect", "run.dgrr", "--step", "3")
    assert "  validation validation_acc 0.75 (0x1.8000000000000p-1)\n" in out
    _, out, _ = said("inspect", "run.dgrr")
    assert '  after 0 steps, notes: {"lr": 0.1, "data": "digits", "layers": [64, 10]}\n' in out


def test_notes_are_shown_and_not_obeyed(said: Said, tmp_path: Path) -> None:
    noted(tmp_path / "run.dgrr", [4.0], notes={"a\x1b[2J": "b\x1b[2J", "c": "two\nlines"}).recorder.seal()
    for command in (["show", "run.dgrr"], ["ls"], ["inspect", "run.dgrr"]):
        _, out, _ = said(*command)
        assert "\x1b" not in out
        assert "b\\u001b[2J" in out and "two\\nlines" in out


def test_a_resumed_run_says_where_and_when(said: Said, tmp_path: Path) -> None:
    run = noted(tmp_path / "run.dgrr", [4.0, 1.0])
    run.recorder.close()
    law = {"rule": run.rule.rule, "hyperparameters": list(run.rule.hyperparameters()), "numerics": NUMERICS}
    options: Any = {**law, "params": run.params, "state": run.state, "record": "grads", "notes": {"lr": 0.2}}
    resumed(tmp_path / "run.dgrr", steps=2, **options).seal()
    _, out, _ = said("show", "run.dgrr")
    assert "notes            lr: 0.2\n" in out
    assert re.search(r"^begun            2001-09-09 .*\nresumed at 2     20[2-9]\d-", out, re.M)


def test_several_runs_are_a_table(said: Said, tmp_path: Path) -> None:
    """A column for each note that any has, and none for what no run tells."""
    noted(tmp_path / "one.dgrr", [4.0, 1.0, 2.0]).recorder.seal()
    noted(tmp_path / "two.dgrr", [4.0, 3.0], notes={"lr": 0.2, "steps": "few"}).recorder.seal()
    recorded(tmp_path / "bare.dgrr", [5.0]).recorder.seal()
    code, out, err = said("show", "one.dgrr", "two.dgrr", "bare.dgrr")
    assert (code, err) == (0, "")
    title, _, head, *rows = out.splitlines()
    assert title == ".: 3 traces"
    columns = ["trace", "parameters", "rules", "steps", "last loss", "best validation"]
    columns += [*CONFIG, "steps", "begun", "state root", "state"]
    assert [name.strip() for name in head.strip("┃").split("┃")] == columns
    told = [row for line in rows if (row := cells(line))]
    assert [row[:5] for row in told] == [
        ["one.dgrr", "5", "sgd@1", "3", "2"],
        ["two.dgrr", "5", "sgd@1", "2", "3"],
        ["bare.dgrr", "5", "sgd@1", "1", "5"],
    ]
    assert [row[5:-2] for row in told] == [
        ["0.5", "0.1", "digits", "[64, 10]", "-", "2001-09-09 01:46:40 UTC"],
        ["1.5", "0.2", "-", "-", "few", "2001-09-09 01:46:40 UTC"],
        ["-", "-", "-", "-", "-", "-"],
    ]
    assert said("ls")[1].splitlines()[2] == head
    assert "validation" not in said("show", "bare.dgrr", "bare.dgrr")[1]
    runs = json.loads(said("show", "one.dgrr", "bare.dgrr", "--json")[1])["result"]["runs"]
    assert [run["best_validation_loss"] for run in runs] == [0.5, None]
    assert said("show", "one.dgrr", "none.dgrr")[0] == 2
    code, _, err = said("show", "-f", "one.dgrr", "bare.dgrr")
    assert (code, err) == (1, "dgrr: argument --follow: it follows one run at a time\n")


def test_gradients_that_are_not_finite_come_first(said: Said, tmp_path: Path) -> None:
    run = Running(tmp_path / "run.dgrr", [1.0, np.inf, np.nan], on_nonfinite="record")
    run.on()
    run.on(b=(np.nan, 1.0))
    run.on(b=(2.0, np.inf))
    run.recorder.seal()
    _, out, _ = said("show", "run.dgrr")
    table = [line for line in out.splitlines() if line.startswith("│")]
    assert [re.split(r" *│ ?", line)[1] for line in table] == ["b", "w"]
    assert "not finite at 2 steps" in table[0]
    assert "(2 not finite, the first at 1)" in out
    assert "best loss   1 at step 0" in out and "last loss   nan at step 2" in out


def test_a_run_without_gradients_and_one_without_steps(said: Said, tmp_path: Path, record_run: RecordRun) -> None:
    record_run("digest.dgrr", record="digest")
    code, out, _ = said("show", "digest.dgrr")
    assert (code, "gradients" in out, "recorded    digest, " in out) == (0, False, True)
    recorded(tmp_path / "none.dgrr", []).recorder.seal()
    code, out, _ = said("show", "none.dgrr")
    assert code == 0
    assert out.startswith("none.dgrr: 0 steps, sealed\n\nmodel ")


def test_a_run_that_goes_on_and_one_that_was_left(said: Said, tmp_path: Path) -> None:
    run = recorded(tmp_path / "run.dgrr", [4.0, 2.0])
    code, out, err = said("show", "run.dgrr")
    assert (code, out.splitlines()[0], err) == (0, "run.dgrr.partial: 2 steps, running", "")
    run.recorder.close()
    assert said("show", "run.dgrr")[1].startswith("run.dgrr.partial: 2 steps, unfinished\n")
    assert "verdict     unsealed: " in said("show", "run.dgrr.partial")[1]


def test_a_run_with_frames_of_another_is_damaged(said: Said, record_run: RecordRun, tmp_path: Path) -> None:
    """Each frame is whole, but their chain is not that of one run."""
    ours, theirs = record_run("a.dgrr").read_bytes(), record_run("b.dgrr", diverge=0).read_bytes()
    start, end = frame_bounds(ours)[5]
    (tmp_path / "mixed.dgrr").write_bytes(ours[:start] + theirs[start:end] + ours[end:])
    code, out, _ = said("show", "mixed.dgrr")
    assert code == 0
    assert re.match(r"mixed\.dgrr: \d+ steps, damaged\n", out)
    assert "verdict     chain: " in out


@pytest.mark.parametrize(
    ("verdict", "state"), [(Verdict.CHAIN, "damaged"), (Verdict.CORRUPT, "damaged"), (Verdict.UNPROVEN, "sealed")]
)
def test_what_validation_alone_finds_makes_a_run_damaged(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, state: str
) -> None:
    recorded(tmp_path / "run.dgrr", [4.0]).recorder.seal()
    found = Report("run.dgrr", 2, findings=[Finding(verdict, "so it is")])
    monkeypatch.setattr(overview, "validate", lambda path: found)
    assert said("show", "run.dgrr")[1].startswith(f"run.dgrr: 1 step, {state}\n")


def test_a_damaged_run_is_shown_as_far_as_it_is_whole(said: Said, tmp_path: Path) -> None:
    recorded(tmp_path / "run.dgrr", [4.0, 2.0, 1.0]).recorder.seal()
    flip_bit(tmp_path / "run.dgrr", tmp_path / "bad.dgrr", (tmp_path / "run.dgrr").stat().st_size // 2, 1)
    code, out, _ = said("show", "bad.dgrr")
    assert code == 0
    assert out.startswith("bad.dgrr: 3 steps, damaged\n")
    assert "verdict     corrupt: structure" in out
    assert out.endswith("seen at 2 steps of 3\n")
    size = (tmp_path / "run.dgrr").stat().st_size
    (tmp_path / "cut.dgrr").write_bytes((tmp_path / "run.dgrr").read_bytes()[: size - 700])
    code, out, _ = said("show", "cut.dgrr")
    assert (code, re.match(r"cut\.dgrr: [12] steps?, damaged\n", out) is not None) == (0, True)
    assert "verdict     torn-tail: structure failed" in out


def test_what_cannot_be_shown(said: Said, tmp_path: Path) -> None:
    said("train", "--steps", "2", "--out", "v1.dgrr")
    code, _, err = said("show", "v1.dgrr")
    assert code == 1
    assert err.endswith("error: argument PATH: v1.dgrr is of version 1, whose steps dgrr inspect shows\n")
    (tmp_path / "text").write_text("no trace")
    assert said("show", "text")[0] == 3
    assert said("show", "missing")[0] == 2


def test_on_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """In colour, and no line is longer."""
    recorded(tmp_path / "run.dgrr", [4.0, 2.0, 1.0, 3.0]).recorder.seal()
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "40", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    subprocess.run(["stty", "cols", "80", "rows", "40"], stdin=end, check=True)
    program = "import sys; from dgrr.trace.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "show", "run.dgrr"]
    done = subprocess.run(command, stdout=end, stderr=end, cwd=tmp_path, env=environment)
    os.close(end)
    shown = b""
    while b"seen at" not in shown:
        shown += os.read(terminal, 65536)
    os.close(terminal)
    assert done.returncode == 0
    assert b"\x1b[1mrun.dgrr" in shown
    assert b"\x1b[1;32mok" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown.decode())
    assert max(map(len, plain.splitlines())) <= 80


# ------------------------------------------------------------------ following


def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    run = Running(tmp_path / "run.dgrr", [4.0, 2.0, 1.0])
    told: list[RunOverview] = []

    def tell(found: RunOverview) -> None:
        told.append(found)
        if run.step < 3:
            run.on()
        else:
            run.recorder.seal()

    assert follow(str(tmp_path / "run.dgrr"), tell, seconds=0.0) == str(tmp_path / "run.dgrr")
    assert [found.steps for found in told] == [0, 1, 2, 3]
    assert {found.state for found in told} == {"running"}
    assert told[2].line() == "step 2  last loss 2  █▁"
    assert told[0].line() == "step 0  no loss yet"


def test_a_run_whose_writer_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    recorded(tmp_path / "run.dgrr", [4.0]).recorder.close()
    told: list[str] = []
    assert follow(str(tmp_path / "run.dgrr.partial"), lambda run: told.append(run.state)).endswith(".partial")
    assert told == ["unfinished"]


def test_a_later_run_at_the_same_path_is_the_one_that_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "run.dgrr"
    recorded(path, [4.0]).recorder.seal()
    run = recorded(path, [3.0, 2.0], overwrite=True)
    steps: list[int] = []

    def tell(found: RunOverview) -> None:
        steps.append(found.steps)
        run.recorder.seal()

    follow(str(path), tell, seconds=0.0)
    assert steps == [2]


def test_a_line_for_every_look_where_nothing_can_be_redrawn(said: Said, tmp_path: Path) -> None:
    recorded(tmp_path / "run.dgrr", [4.0, 2.0]).recorder.seal()
    code, out, _ = said("show", "-f", "run.dgrr")
    assert code == 0
    assert out.startswith("step 2  last loss 2  █▁\nrun.dgrr: 2 steps, sealed\n")


# ------------------------------------------------------------------ ls


def test_the_traces_of_a_folder(said: Said, tmp_path: Path) -> None:
    recorded(tmp_path / "sealed.dgrr", [4.0, 2.5]).recorder.seal()
    recorded(tmp_path / "left.dgrr", [4.0]).recorder.close()
    running = recorded(tmp_path / "going.dgrr", [4.0, 3.0, 2.0])
    (tmp_path / "begun").write_bytes(b"DGRR\x02")
    (tmp_path / "cut").write_bytes((tmp_path / "sealed.dgrr").read_bytes()[:100])
    (tmp_path / "notes.txt").write_text("no trace")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "deep.dgrr").write_bytes((tmp_path / "sealed.dgrr").read_bytes())
    said("train", "--steps", "2", "--out", "v1.dgrr")
    code, out, err = said("ls")
    assert (code, err, out.splitlines()[0]) == (0, "", ".: 6 traces")
    rows = {row[0]: row[1:] for line in out.splitlines() if (row := cells(line))}
    root = rows["sealed.dgrr"].pop(-2)
    assert re.fullmatch(r"[0-9a-f]{10}", root)
    assert "state root" in out and "digest" not in out
    assert rows["sealed.dgrr"] == ["5", "sgd@1", "2", "2.5", "sealed"]
    assert [rows[name][-1] for name in ("left.dgrr.partial", "going.dgrr.partial")] == ["unfinished", "running"]
    assert [rows[name][-1] for name in ("begun", "cut", "v1.dgrr")] == ["torn-tail", "torn-tail", "version 1"]
    assert rows["begun"][:-1] == ["-"] * 5
    running.recorder.close()
    _, out, _ = said("ls", "--recursive", str(tmp_path))
    assert any(cells(line)[:1] == [os.path.join("below", "deep.dgrr")] for line in out.splitlines())
    assert said("ls", "below")[1].splitlines()[0] == "below: 1 trace"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")] if line.startswith("│") else []


def test_an_empty_folder_and_none(said: Said, tmp_path: Path) -> None:
    code, out, _ = said("ls")
    assert (code, out.splitlines()[0]) == (0, ".: 0 traces")
    for options in ([], ["-r"]):
        code, out, err = said("ls", "missing", *options)
        assert (code, out, err) == (2, "", "dgrr: missing: No such file or directory\n")


def test_equal_runs_have_equal_state_roots(said: Said, tmp_path: Path) -> None:
    for name in ("a", "b"):
        recorded(tmp_path / name, [1.0]).recorder.seal()
    roots = {cells(line)[-2] for line in said("ls")[1].splitlines() if line.startswith("│")}
    assert len(roots) == 1
