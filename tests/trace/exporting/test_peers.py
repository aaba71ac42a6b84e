"""What is exported by other packages, read back by their own readers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import export, open_trace

RecordRun = Callable[..., Path]
FORMS: Any = pytest.mark.parametrize("form", ["wide", "long"])


def need(package: str, extra: str) -> Any:
    return pytest.importorskip(package, reason=f"this needs {package}: pip install -e '.[{extra}]'")


def columns(frame: Any) -> dict[str, list[Any]]:
    """The columns of a data frame of pandas, None for what is missing among words."""
    return {name: [None if value is np.nan else value for value in frame[name].tolist()] for name in frame}


@FORMS
def test_pandas(record_run: RecordRun, tmp_path: Path, form: Any) -> None:
    pandas = need("pandas", "pandas")
    path = record_run(dtype=np.float32)
    export(path, tmp_path / "t.csv", "csv", form=form)
    with open_trace(path) as trace:
        frame = trace.to_pandas(form)
        losses = [float(view.loss) for view in trace]
    assert isinstance(frame, pandas.DataFrame)
    if form == "wide":
        assert frame["loss"].tolist() == losses
        assert (str(frame["step"].dtype), str(frame["loss"].dtype)) == ("int64", "float64")
    else:
        assert frame[frame.statistic == "loss"].value.tolist() == losses
        assert str(frame["tensor"].dtype) == "category"
        norms = frame.pivot_table("value", "step", ["tensor", "statistic"], observed=True)
        assert norms["w", "gradient norm"].notna().all()
    read = pandas.read_csv(tmp_path / "t.csv", engine="python", dtype={"tensor": object})
    assert columns(read) == columns(frame)


@FORMS
def test_arrow_and_parquet(record_run: RecordRun, tmp_path: Path, form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    need("pyarrow", "arrow")
    from pyarrow import parquet

    path = record_run()
    with open_trace(path) as trace:
        table = trace.to_arrow(form)
        trace.to_parquet(tmp_path / "t.parquet", form)
        monkeypatch.setattr("dgrr.trace.exporting.long_form.TOGETHER", 30)
        trace.to_parquet(tmp_path / "pieces.parquet", form)
    assert table.num_rows == (6 if form == "wide" else 6 * 8 + 10 * 5)
    for name in ("t", "pieces"):
        read = parquet.read_table(tmp_path / f"{name}.parquet")
        assert read.column_names == table.column_names
        assert read.to_pydict() == table.to_pydict()
    groups = parquet.ParquetFile(tmp_path / "pieces.parquet").num_row_groups
    assert groups == (1 if form == "wide" else 3)


@FORMS
def test_polars(record_run: RecordRun, form: Any) -> None:
    polars = need("polars", "polars")
    need("pyarrow", "arrow")
    with open_trace(record_run()) as trace:
        frame, table = trace.to_polars(form), trace.to_arrow(form)
    assert isinstance(frame, polars.DataFrame)
    assert {name: frame[name].to_list() for name in frame.columns} == table.to_pydict()


@FORMS
def test_tensorboard(record_run: RecordRun, tmp_path: Path, form: Any) -> None:
    need("tensorboardX", "tensorboard")
    need("tensorboard", "bench")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = record_run()
    export(path, tmp_path / "runs" / "first", "tensorboard", form=form)
    export(path, tmp_path / "runs" / "first", "tensorboard", form=form)  # in the place of the first
    assert [p.name for p in (tmp_path / "runs" / "first").iterdir()] == ["events.out.tfevents.0.dgrr"]
    found = EventAccumulator(str(tmp_path / "runs" / "first"), size_guidance={"scalars": 0})
    found.Reload()
    tags = found.Tags()["scalars"]
    with open_trace(path) as trace:
        assert [(e.step, e.value) for e in found.Scalars("loss")] == [(v.step, np.float32(v.loss)) for v in trace]
        assert [e.value for e in found.Scalars("lr")] == [np.float32(v.hyper["lr"]) for v in trace]
        if form == "long":
            largest = [(v.step, v.grad("w").max()) for v in trace]
            assert [(e.step, e.value) for e in found.Scalars("gradient_max/w")] == largest
    assert ("gradient_norm/b" in tags) is (form == "long")
