"""Files of a trace's tables, for other programs."""

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

from ...base.atomic_file import replacing
from ...base.errors import DomainError
from ...base.packages import package
from ...base.system import FilePath
from ..json_value import json_value
from ..v2.read.reader import TraceLike, TraceReader, reading
from .columns import Columns
from .frames import arrow_table
from .tables import Form, require_form, tables

Format: TypeAlias = Literal["csv", "json", "parquet", "tensorboard"]


def export(trace: TraceLike, path: FilePath, format: Format, *, form: Form = "wide") -> None:
    """Write what a trace records of its steps to a file for other programs.

    The file is whole, or the one that stood there before. The forms and their columns are those of `Trace.to_pandas`.

    Args:
        trace: its path, or an open trace.
        path: the file; for "tensorboard" the folder of the run, which gets one file of events.
        format: "csv": numbers in as many digits as tell them, nothing where there is no tensor; "json": a list with an
            object for each row, `"nan"`, `"inf"` and `"-inf"` as texts; "parquet", by pyarrow (extra `arrow`);
            "tensorboard": a scalar for each number of a step, by tensorboardX (extra `tensorboard`), as float32, which
            is all that TensorBoard has; none for NaN, but of a loss.
        form: "wide", a row for each step, or "long", a row for each number of each tensor.

    Raises:
        DomainError: another format or form, or the path is that of the trace.
        ModuleNotFoundError: the package that writes the format is not installed.
        InvalidTraceError, TraceFileError: the trace cannot be read.
        OSError: the file cannot be written.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Trainer
    >>> from dgrr.trace import export
    >>> with TemporaryDirectory() as folder:
    ...     run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), trace=f"{folder}/run.dgrr")
    ...     _ = run.fit([np.array([1.0, 2.0])], steps=2)
    ...     export(f"{folder}/run.dgrr", f"{folder}/run.csv", "csv")
    ...     lines = Path(folder, "run.csv").read_text().splitlines()
    >>> lines[0].split(",")[:3], lines[1].split(",")[:3], lines[2].split(",")[:3]
    (['step', 'loss', 'lr'], ['0', '3.0', '0.5'], ['1', '0.5', '0.5'])
    """
    call = "trace.export"
    if format not in get_args(Format):
        formats = ", ".join(map(repr, get_args(Format)))
        raise DomainError(f"{call}: argument 'format': expected one of {formats}, got {format!r}")
    require_form(call, form)
    with reading(trace) as opened:
        _export(opened, path, format, form)


def _export(trace: TraceReader, path: FilePath, format: Format, form: Form) -> None:
    if os.path.exists(path) and os.path.samefile(path, trace.path):
        raise DomainError(
            f"trace.export: argument 'path': expected another file than the trace, got {os.fspath(path)!r}"
        )
    if format == "tensorboard":
        _write_events(trace, Path(path), form)
        return
    writers: dict[Format, Callable[[IO[bytes], Iterator[Columns]], None]]
    writers = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}
    if format == "parquet":
        package("trace.export", "pyarrow.parquet")  # before a file is begun
    with replacing(path) as file:
        writers[format](file, tables(trace, form))


def _write_csv(file: IO[bytes], pieces: Iterator[Columns]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer, first = csv.writer(text, lineterminator="\n"), next(pieces)
    writer.writerow(first)
    for piece in chain([first], pieces):
        writer.writerows(_rows(piece))  # floats as `repr` has them, None as nothing
    text.detach()


def _write_json(file: IO[bytes], pieces: Iterator[Columns]) -> None:
    separator = "[\n"
    for piece in pieces:
        for row in _rows(piece):
            named = dict(zip(piece, map(json_value, row), strict=True))
            file.write(f"{separator}{json.dumps(named, allow_nan=False)}".encode())
            separator = ",\n"
    file.write(b"[]\n" if separator == "[\n" else b"\n]\n")


def _write_parquet(file: IO[bytes], pieces: Iterator[Columns]) -> None:
    parquet = package("trace.export", "pyarrow.parquet")
    first = arrow_table("trace.export", next(pieces))
    with parquet.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for piece in pieces:
            writer.write_table(arrow_table("trace.export", piece))


def _write_events(trace: TraceReader, folder: Path, form: Form) -> None:
    """One file of events in a folder, with a time that depends on the trace alone."""
    call = "trace.export"
    record_writer = package(call, "tensorboardX.record_writer").RecordWriter
    event, summary = package(call, "tensorboardX.proto.event_pb2").Event, package(call, "tensorboardX.summary")
    seconds = trace.header.created_at / 1e9
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / f"events.out.tfevents.{int(seconds)}.dgrr") as file:
        writer = record_writer(file.name)
        writer.write(event(wall_time=seconds, file_version="brain.Event:2").SerializeToString())
        for step, tag, value in _scalars(trace, form):
            if value != value and tag != "loss":  # there is none
                continue
            told = event(wall_time=seconds, step=step, summary=summary.scalar(tag, value))
            writer.write(told.SerializeToString())
        writer.close()


def _scalars(trace: TraceReader, form: Form) -> Iterator[tuple[int, str, float]]:
    """Every number with its step and its name, that of a tensor behind what it is of it."""
    for piece in tables(trace, form):
        for step, *rest in _rows(piece):
            if form == "wide":
                yield from ((step, name, value) for name, value in zip(list(piece)[1:], rest, strict=True))
            else:
                tensor, statistic, value = rest
                yield step, statistic if tensor is None else f"{statistic}/{tensor}", value


def _rows(piece: Columns) -> Iterator[tuple[Any, ...]]:
    """The rows as Python's own numbers, texts and None."""
    return zip(*[column.tolist() for column in piece.values()], strict=True)
