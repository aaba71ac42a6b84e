"""Runs that are killed while they begin or end their file, and systems that refuse there: what the next run finds."""

import errno
import fcntl
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base import atomic_file
from dgrr.runtime import SGD, Trainer
from dgrr.trace import (
    InvalidTraceError,
    TraceWriteError,
    UnsealedTraceWarning,
    Verdict,
    open_trace,
    validate,
)
from dgrr.trace.cli import main

from ....keeping import recorder_of

RecordRun = Callable[..., Path]
PARAMS = {"w": np.ones(3)}


def begin(path: Path, **options: Any) -> Any:
    return recorder_of(path, params=PARAMS, state={}, rule="none@1", hyperparameters=[], numerics=1, **options)


def beginning(folder: Path) -> bytes:
    """A `.partial` as it stands before its first step."""
    begin(folder / "whole").close()
    data = (folder / "whole.partial").read_bytes()
    (folder / "whole.partial").unlink()
    return data


# Killed at the beginning.


def test_a_file_cut_anywhere_before_its_first_step_is_torn_and_begun_anew(tmp_path: Path) -> None:
    data, partial = beginning(tmp_path), tmp_path / "t.partial"
    for length in (*range(0, len(data), 23), 8, 255, 256, 257, len(data) - 1):
        partial.write_bytes(data[:length])
        report = validate(partial)
        assert (report.verdict, report.steps) == (Verdict.TORN_TAIL if length < len(data) else Verdict.UNSEALED, 0)
        begin(tmp_path / "t").close()
        assert validate(partial).verdict is Verdict.UNSEALED


def test_what_a_torn_beginning_is_called(tmp_path: Path) -> None:
    for length in (0, 7, 100, 300):
        (tmp_path / "t").write_bytes(beginning(tmp_path)[:length])
        for mode in ("strict", "tolerate_tail", "point_in_time", "salvage"):
            with pytest.raises(InvalidTraceError) as caught:
                open_trace(tmp_path / "t", mode=mode)
            assert caught.value.verdict is Verdict.TORN_TAIL


def test_what_is_no_torn_beginning_stays(tmp_path: Path) -> None:
    """Other files, and a first step that is damaged in front of what was committed, are not begun anew."""
    partial = tmp_path / "t.partial"
    recorder = begin(tmp_path / "t")
    recorder.commit()
    recorder.close()
    committed = bytearray(partial.read_bytes())
    committed[256 + 60] ^= 1  # in the SCHEMA
    behind_schema = bytearray(partial.read_bytes())
    behind_schema[256 + 48 + int.from_bytes(committed[280:284], "little") + 40] ^= 1  # in KEYFRAME 0
    for data in (b"my notes", b"\0" * 300, bytes(committed), bytes(behind_schema)):
        partial.write_bytes(data)
        assert validate(partial).verdict is Verdict.CORRUPT
        with pytest.raises(TraceWriteError, match=r"t\.partial exists: its run is unfinished, or still going on"):
            begin(tmp_path / "t")
        assert partial.read_bytes() == data


def test_a_trainer_begins_anew_where_a_run_was_killed_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.partial").write_bytes(beginning(tmp_path)[:200])
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), PARAMS, SGD(0.5), trace=tmp_path / "t", mode="eager")
    trainer.fit([np.ones(3)] * 2)
    assert (validate(tmp_path / "t").steps, os.listdir(tmp_path)) == (2, ["t"])


# Killed at the end, between the seal and the name.


@pytest.fixture
def unnamed(record_run: RecordRun) -> Path:
    """The final name of a trace that is sealed and does not have it."""
    path = record_run()
    path.rename(f"{path}.partial")
    return path


def test_the_next_reader_gives_a_sealed_file_its_name(unnamed: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_trace(unnamed) as trace:
            assert (trace.sealed, trace.path) == (True, str(unnamed))
    assert os.listdir(unnamed.parent) == [unnamed.name]


def test_the_next_run_gives_a_sealed_file_its_name_and_is_refused(unnamed: Path) -> None:
    data = Path(f"{unnamed}.partial").read_bytes()
    with pytest.raises(TraceWriteError, match="is finished, and is not overwritten"):
        begin(unnamed)
    assert os.listdir(unnamed.parent) == [unnamed.name]
    assert unnamed.read_bytes() == data


def test_a_run_that_overwrites_leaves_it_until_it_is_sealed(unnamed: Path) -> None:
    recorder = begin(unnamed, overwrite=True)
    assert validate(unnamed).ok
    recorder.seal()
    assert validate(unnamed).steps == 0


def test_a_file_whose_writer_lives_is_left_alone(unnamed: Path) -> None:
    with Path(f"{unnamed}.partial").open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        with pytest.warns(UnsealedTraceWarning, match="reading the unfinished"), open_trace(unnamed) as trace:
            assert trace.sealed
        with pytest.raises(TraceWriteError, match="exists: its run is unfinished, or still going on"):
            begin(unnamed)
    assert not unnamed.exists()


def test_a_damaged_file_gets_no_name(unnamed: Path) -> None:
    partial = Path(f"{unnamed}.partial")
    data = bytearray(partial.read_bytes())
    data[256 + 60] ^= 1  # in the SCHEMA
    partial.write_bytes(data)
    with pytest.warns(UnsealedTraceWarning), pytest.raises(InvalidTraceError):
        open_trace(unnamed)
    assert not unnamed.exists()


# Systems that refuse.


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, when: Callable[..., bool] = lambda *_: True) -> None:
    real = getattr(os, name)

    def refusing(*args: Any, **options: Any) -> Any:
        if when(*args):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*args, **options)

    monkeypatch.setattr(os, name, refusing)


def is_folder(descriptor: int) -> bool:
    return os.path.isdir(f"/proc/self/fd/{descriptor}")


def test_no_temporary_file_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write() -> None:
        with atomic_file.replacing(tmp_path / "t") as file:
            file.write(b"new")

    (tmp_path / "t").write_bytes(b"old")
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            refuse(patch, name)
            with pytest.raises(OSError, match="Input/output error"):
                write()
        assert os.listdir(tmp_path) == ["t"]
        assert (tmp_path / "t").read_bytes() == b"old"
    (tmp_path / "folder" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"), atomic_file.replacing(tmp_path / "folder") as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "t"]


def test_a_name_that_a_power_cut_may_take_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "cannot sync the folder, so that a power cut may take the names in it back: Input/output error"
    recorder = begin(tmp_path / "t")
    refuse(monkeypatch, "fsync", is_folder)
    with pytest.raises(OSError, match=text) as caught, atomic_file.replacing(tmp_path / "model") as file:
        file.write(b"new")
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(tmp_path))
    assert (tmp_path / "model").read_bytes() == b"new"
    with pytest.raises(TraceWriteError) as refused:
        recorder.seal()
    assert str(refused.value) == f"trace: {tmp_path / 't'} is whole and has its name, but {text}"
    assert validate(tmp_path / "t").ok


LONG = "x" * 300


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["inspect", "--trace", LONG], f"cannot open {LONG}: File name too long"),
        (["rollback", "--trace", "run.dgrr", "--step", "1", "--out", LONG], f"cannot write {LONG}: File name too long"),
        (["replay", "--trace", LONG], f"cannot open {LONG}: File name too long"),
        (["demo", "--epochs", "1", "--out", LONG], f"{LONG}: File name too long"),
        (["train", "--steps", "1", "--out", LONG], f"cannot write {LONG}: File name too long"),
    ],
)
def test_names_that_are_too_long(
    command: list[str], text: str, record_run: RecordRun, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(record_run().parent)
    assert main(command) == 2
    assert text in capsys.readouterr().err.replace("\n", "")


def test_a_name_too_long_for_its_partial_is_read(record_run: RecordRun) -> None:
    path = record_run()
    longest = path.with_name("x" * 250)
    path.rename(longest)
    with open_trace(longest) as trace:
        assert len(trace) == 6


# Rolling back.


def test_a_rollback_never_copies_damage(record_run: RecordRun, capsys: Any) -> None:
    path = record_run(record="full")
    good = path.read_bytes()
    out = path.with_name("child")
    for offset in range(256, len(good), 31):
        data = bytearray(good)
        data[offset] ^= 4
        path.write_bytes(data)
        assert main(["rollback", "--trace", str(path), "--step", "6", "--out", str(out)]) == 3
        assert not out.exists()
        assert "(at byte " in capsys.readouterr().err
    path.write_bytes(good)
    assert main(["rollback", "--trace", str(path), "--step", "6", "--out", str(out)]) == 0
    assert validate(out).ok
