"""What a trace exports without other packages: tables, CSV, JSON and weights."""

import csv
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Trainer
from dgrr.tape import NUMERICS, nn
from dgrr.trace import CompletedStep, RebuildError, export, open_trace
from dgrr.trace.cli import main
from dgrr.trace.exporting import long_form, tables
from dgrr.trace.exporting.weights import weights_before

from ...keeping import kept, recorder_of

RecordRun = Callable[..., Path]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_for_each_step(record_run: RecordRun, tmp_path: Path, dtype: type) -> None:
    """To the bit: float32 is widened, and CSV has as many digits as tell the number."""
    path = record_run(dtype=dtype)
    export(path, tmp_path / "wide.csv", "csv")
    found = rows_of(tmp_path / "wide.csv")
    with open_trace(path) as trace:
        assert list(found[0]) == ["step", "loss", *trace[0].hyper, "micro_batches", "nonfinite"]
        assert [float(row["loss"]) for row in found] == [float(view.loss) for view in trace]
        assert [float(row["lr"]) for row in found] == [view.hyper["lr"] for view in trace]
    assert [row["step"] for row in found] == list("012345")
    assert {(row["micro_batches"], row["nonfinite"]) for row in found} == {("1", "False")}


def test_metrics_are_columns(tmp_path: Path) -> None:
    """NaN where a step has none; of a column's name, said to be a metric."""
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": NUMERICS, "state": {}}
    told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {}, "params": {}, "state": {}, "batch": np.ones(1)}
    with recorder_of(tmp_path / "t", params={}, **run) as recorder:
        for step, metrics in enumerate([{"lr": 2.0}, {}, {"accuracy": 0.25, "lr": 3.0}]):
            recorder.step(CompletedStep(step=step, loss=np.array(1.0), metrics=metrics, **told))
    export(tmp_path / "t", tmp_path / "wide.csv", "csv")
    found = rows_of(tmp_path / "wide.csv")
    assert [*found[0]][-3:] == ["nonfinite", "metric lr", "accuracy"]
    assert [(row["lr"], row["metric lr"], row["accuracy"]) for row in found] == [
        ("0.5", "2.0", "nan"),
        ("0.5", "nan", "nan"),
        ("0.5", "3.0", "0.25"),
    ]
    export(tmp_path / "t", tmp_path / "long.csv", "csv", form="long")
    assert [row["value"] for row in rows_of(tmp_path / "long.csv") if row["statistic"] == "metric lr"] == [
        "2.0",
        "nan",
        "3.0",
    ]


def test_validations_are_columns(tmp_path: Path) -> None:
    """In the row of the step that they stand behind; of a column's name, said to be of a validation."""
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": NUMERICS, "state": {}}
    told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {}, "params": {}, "state": {}, "batch": np.ones(1)}
    with recorder_of(tmp_path / "t", params={}, **run) as recorder:
        for step in range(3):
            recorder.step(CompletedStep(step=step, loss=np.array(1.0), **told))
            if step:
                recorder.validation({"validation_loss": 0.5 * step, "lr": 7.0})
    export(tmp_path / "t", tmp_path / "wide.csv", "csv")
    found = rows_of(tmp_path / "wide.csv")
    assert [*found[0]][-3:] == ["nonfinite", "validation_loss", "validation lr"]
    assert [row["validation_loss"] for row in found] == ["nan", "0.5", "1.0"]
    assert [row["validation lr"] for row in found] == ["nan", "7.0", "7.0"]


def test_a_row_for_each_number(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run(record="full")
    export(path, tmp_path / "long.csv", "csv", form="long")
    found = rows_of(tmp_path / "long.csv")
    assert list(found[0]) == ["step", "tensor", "statistic", "value"]
    values = {(int(row["step"]), row["tensor"], row["statistic"]): float(row["value"]) for row in found}
    assert len(values) == len(found)
    with open_trace(path) as trace:
        for view in trace:
            assert values[view.step, "", "loss"] == float(view.loss)
            assert values[view.step, "", "lr"] == view.hyper["lr"]
            for what, arrays in (("gradient", view.gradients()), ("value", view.after())):
                for name, array in arrays.items():
                    assert values[view.step, name, f"{what} min"] == array.min()
                    assert values[view.step, name, f"{what} max"] == array.max()
                    norm = math.sqrt(float((array.astype(np.float64) ** 2).sum()))
                    assert values[view.step, name, f"{what} norm"] == pytest.approx(norm, rel=1e-12)
                    assert values[view.step, name, f"{what} zeros"] == (array == 0).sum()
        numbers = sum(len(view.gradients()) + len(view.after()) for view in trace) * 5
        assert len(found) == numbers + len(trace) * (len(trace[0].hyper) + 3)
    assert (2, "b", "gradient norm") not in values  # that step had none of b


def test_pieces_make_the_same_rows(record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are held at once."""
    path = record_run()
    export(path, tmp_path / "whole.csv", "csv", form="long")
    monkeypatch.setattr(long_form, "TOGETHER", 30)
    with open_trace(path) as trace:
        assert len(list(tables.tables(trace, "long"))) == 3
    export(path, tmp_path / "pieces.csv", "csv", form="long")
    assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("form", ["wide", "long"])
def test_json_says_what_csv_says(record_run: RecordRun, tmp_path: Path, form: Any) -> None:
    path = record_run()
    export(path, tmp_path / "t.csv", "csv", form=form)
    export(path, tmp_path / "t.json", "json", form=form)
    rows = json.loads((tmp_path / "t.json").read_text())
    assert [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows] == rows_of(
        tmp_path / "t.csv"
    )
    assert {type(row["step"]) for row in rows} == {int}


def train(path: Path, steps: int, **options: Any) -> Any:
    batches = [np.array([1.0, 2.0 + i]) for i in range(4)]

    def loss_fn(p: Any, x: Any, ctx: Any) -> Any:
        ctx.update("seen", ctx.state["seen"] + 1.0)
        return (p["w"] * p["w"] * x).sum(), ctx.state

    rule, params = options.pop("rule", SGD(0.125)), {"w": np.ones(2)}
    trainer = Trainer(loss_fn, params, rule, model_state={"seen": np.zeros(())}, mode="eager", **kept(path, options))
    if steps:
        trainer.fit(batches, steps=steps, progress=False)
    return loss_fn, batches, trainer


def test_numbers_that_are_none(tmp_path: Path) -> None:
    """Clipping is a column where any step was clipped, and what is not finite keeps its sign."""
    train(tmp_path / "run", 3, clip_norm=0.5, rule=SGD(1e200), on_nonfinite="record")
    for format in ("csv", "json"):
        export(tmp_path / "run", tmp_path / f"t.{format}", format)  # type: ignore[arg-type]
    rows = rows_of(tmp_path / "t.csv")
    assert list(rows[0])[:2] == ["step", "loss"] and list(rows[0])[-4:] == [
        "clip_norm",
        "clip_scale",
        "micro_batches",
        "nonfinite",
    ]
    assert [row["nonfinite"] for row in rows] == ["False", "True", "True"]
    assert not math.isfinite(float(rows[2]["loss"]))
    assert json.loads((tmp_path / "t.json").read_text())[2]["loss"] == rows[2]["loss"]


def test_a_trace_without_steps(tmp_path: Path, record_run: RecordRun) -> None:
    path = record_run(steps=0)
    for form in ("wide", "long"):
        export(path, tmp_path / form, "csv", form=form)  # type: ignore[arg-type]
        export(path, tmp_path / f"{form}.json", "json", form=form)  # type: ignore[arg-type]
        assert json.loads((tmp_path / f"{form}.json").read_text()) == []
    assert (tmp_path / "wide").read_text() == "step,loss,micro_batches,nonfinite\n"
    assert (tmp_path / "long").read_text() == "step,tensor,statistic,value\n"


def test_what_is_left_of_a_damaged_trace(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    with open_trace(tmp_path / "run.dgrr") as trace:
        middle = trace._locator.step(3)[0].offset
    (tmp_path / "bad").write_bytes(data[: middle + 60] + b"\xff" + data[middle + 61 :])
    with open_trace(tmp_path / "bad", mode="salvage") as trace:
        export(trace, tmp_path / "t.csv", "csv")
    assert [row["step"] for row in rows_of(tmp_path / "t.csv")] == list("01245")


def test_a_file_is_whole_or_as_it_was(record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record_run()
    (tmp_path / "t.csv").write_text("old")

    def broken(trace: Any, form: Any) -> Any:
        yield tables.wide(trace)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("dgrr.trace.exporting.files.tables", broken)
        with pytest.raises(OSError, match="Input/output error"):
            export(path, tmp_path / "t.csv", "csv")
    assert (tmp_path / "t.csv").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.dgrr", "t.csv"]
    export(path, tmp_path / "t.csv", "csv")
    assert len(rows_of(tmp_path / "t.csv")) == 6


def test_what_is_refused(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run()
    before = path.read_bytes()
    for arguments, text in (
        (
            (path, tmp_path / "t", "xml"),
            "argument 'format': expected one of 'csv', 'json', 'parquet', 'tensorboard', got 'xml'",
        ),
        ((path, path, "csv"), f"argument 'path': expected another file than the trace, got '{path}'"),
    ):
        with pytest.raises(ValueError, match="trace.export") as caught:
            export(*arguments)  # type: ignore[arg-type]
        assert str(caught.value) == f"trace.export: {text}"
    with open_trace(path) as trace:
        for name in ("pandas", "arrow", "polars"):
            with pytest.raises(
                ValueError, match=f"trace.to_{name}: argument 'form': expected 'wide' or 'long', got 'tall'"
            ):
                getattr(trace, f"to_{name}")("tall")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.dgrr"]


def test_packages_that_are_missing(record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record_run()
    for name in ("pandas", "pyarrow", "polars", "tensorboardX"):
        for module in [module for module in sys.modules if module.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)
    with open_trace(path) as trace:
        for call, package, extra in (
            (trace.to_pandas, "pandas", "pandas"),
            (trace.to_arrow, "pyarrow", "arrow"),
            (trace.to_polars, "polars", "polars"),
        ):
            with pytest.raises(ModuleNotFoundError) as caught:
                call()
            text = f"trace.to_{extra}: expected {package} to be installed: pip install 'dgrr[{extra}]'"
            assert str(caught.value) == text
    for format, package, extra in (("parquet", "pyarrow", "arrow"), ("tensorboard", "tensorboardX", "tensorboard")):
        with pytest.raises(ModuleNotFoundError) as caught:
            export(path, tmp_path / "t", format)  # type: ignore[arg-type]
        text = f"trace.export: expected {package} to be installed: pip install 'dgrr[{extra}]'"
        assert str(caught.value) == text
        assert main(["export", str(path), "--format", format, "-o", str(tmp_path / "t")]) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["run.dgrr"]


@pytest.mark.parametrize("record", ["grads", "digest"])
def test_the_weights_before_any_step(tmp_path: Path, record: str) -> None:
    """As training had them: read, made of gradients, or computed again; the last of all too."""
    states: list[Any] = []
    for steps in range(6):
        _, _, trainer = train(tmp_path / f"{steps}", steps, rule=Adam(0.1))
        states.append((trainer.params["w"].tolist(), float(trainer.model_state["seen"])))
    loss_fn, batches, _ = train(tmp_path / "run", 5, rule=Adam(0.1), record=record, keyframe_every=3)
    run = () if record == "grads" else (loss_fn, batches)
    with open_trace(tmp_path / "run") as trace:
        for step, (w, seen) in enumerate(states):
            found = weights_before(trace, step, *run)
            assert (found.params["w"].tolist(), float(found.model_state["seen"])) == (w, seen)
            assert set(found.params) == {"w"}
        with pytest.raises(IndexError, match="expected a step from 0 to 5, got 6"):
            weights_before(trace, 6, *run)
        if record == "digest":
            with pytest.raises(
                LookupError, match="the state before step 4 is not recorded, and neither are gradients: give"
            ):
                weights_before(trace, 4)
            with pytest.raises(RebuildError, match="the batch is not the one that was recorded"):
                weights_before(trace, 5, loss_fn, batches[::-1])


def test_weights_that_are_not_what_was_recorded(tmp_path: Path) -> None:
    """Digests of another state than the recorded gradients make."""
    start, grads = {"w": np.ones(2)}, {"w": np.array([0.5, 1.0])}
    rule = SGD(0.5)
    law: dict[str, Any] = {"rule": rule.rule, "hyperparameters": list(rule.hyperparameters()), "numerics": NUMERICS}
    state = rule.init(start)
    with recorder_of(tmp_path / "run", record="grads", params=start, state=state, **law) as recorder:
        for step in range(2):
            params = {"w": start["w"].copy()}
            rule.step(params, grads, state)
            params["w"][1] += step * 2.0**-40
            told: dict[str, Any] = {"loss": np.array(1.0), "hyper": rule.hyperparameters(), "batch": start["w"]}
            recorder.step(CompletedStep(step=step, grads=grads, params=params, state=state, **told))
            start = params
    with open_trace(tmp_path / "run") as trace:
        assert weights_before(trace, 1).params["w"].tolist() == [0.75, 0.5]
        with pytest.raises(RebuildError, match="update: step 1, 'w': the state after it is not what was recorded"):
            weights_before(trace, 2)


MODULE = """
import numpy as np

BATCHES = [np.arange(3.0), np.ones(3)]


def loss_fn(p, x):
    return (p["w"] * x).sum()


def run():
    return loss_fn, BATCHES
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a run of digests alone and its model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "model_of_export.py").write_text(MODULE)

    def loss_fn(p: Any, x: Any) -> Any:
        return (p["w"] * x).sum()

    trainer = Trainer(loss_fn, {"w": np.ones(3)}, SGD(0.5), mode="eager", trace="run.dgrr", record="digest")
    trainer.fit([np.arange(3.0), np.ones(3)], steps=4, progress=False)
    return tmp_path


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "run.dgrr", "--format", "csv", "-o", "t.csv"]) == 0
    assert capsys.readouterr().out == "t.csv: 4 steps of run.dgrr, as csv, wide\n"
    assert main(["export", "run.dgrr", "--format", "json", "--form", "long", "-o", "t.json", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result == {"format": "json", "written": "t.json", "form": "long", "step": None}
    assert len(json.loads(Path("t.json").read_text())) == 4 * 8
    model = "--model model_of_export:run"
    assert main(f"export run.dgrr --format safetensors --step 1 {model} -o 1.safetensors".split()) == 0
    assert capsys.readouterr().out == "1.safetensors: the weights of run.dgrr before step 1\n"
    assert nn.load("1.safetensors")["w"].tolist() == [1.0, 0.5, 0.0]
    assert main(f"export run.dgrr --format safetensors {model} -o end.safetensors".split()) == 0
    assert capsys.readouterr().out == "end.safetensors: the weights of run.dgrr after the last step\n"
    assert nn.load("end.safetensors")["w"].tolist() == [0.0, -1.0, -2.0]


@pytest.mark.parametrize("options", ["--format csv", "--format safetensors --model model_of_export:run"])
def test_the_command_says_that_the_end_of_a_copy_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str], options: str
) -> None:
    Path("torn.dgrr").write_bytes(Path("run.dgrr").read_bytes()[:-100])
    assert main(["export", "torn.dgrr", *options.split(), "-o", "made"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("dgrr: torn.dgrr: its end is missing (torn-tail: the file ends inside a frame")
    assert err.endswith(": what was written holds its first 4 whole steps alone\n")
    assert Path("made").exists()
    assert main(["export", "torn.dgrr", *options.split(), "-o", "again", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert f"dgrr: {answer['error']}\n" == err
    assert answer["verdict"] == "ok"


@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("run.dgrr --format csv -o run.dgrr", 1, "argument --out: run.dgrr is there already"),
        ("run.dgrr --format csv --step 1 -o new", 1, "argument --step: it goes with --format safetensors"),
        ("run.dgrr --format csv --model m:f -o new", 1, "argument --model: it goes with --format safetensors"),
        ("run.dgrr --format safetensors --form long -o new", 1, "argument --form: it is not for --format safetensors"),
        ("run.dgrr --format safetensors --step 5 -o new", 1, "run.dgrr has no state before step 5: expected 0 to 4"),
        (
            "run.dgrr --format safetensors --step 2 -o new",
            6,
            "before step 2 is not recorded, and neither are",
        ),
        ("run.dgrr --format xml -o new", 1, "argument --format: invalid choice: 'xml'"),
        ("run.dgrr --format csv -o missing/new", 2, "No such file or directory"),
        ("v1 --format csv -o new", 1, "argument PATH: v1 is of version 1, whose steps dgrr inspect shows"),
    ],
)
def test_what_the_command_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, code: int, error: str
) -> None:
    if command.startswith("v1"):
        assert main(["train", "--steps", "2", "--out", "v1"]) == 0
        capsys.readouterr()
    assert main(["export", *command.split()]) == code
    out, err = capsys.readouterr()
    assert error in err and out == ""
    assert not Path("new").exists()
