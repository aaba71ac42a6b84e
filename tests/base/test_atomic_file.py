"""Files that are replaced as a whole: what stands under the name must be a file, for every writer there is."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.base import system
from dgrr.base.atomic_file import replacing, require_replaceable
from dgrr.runtime import SGD, Keep, Trainer
from dgrr.tape import NUMERICS, nn
from dgrr.trace import RuleGroup, Run, TraceWriteError, open_recorder, resume_recorder
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.v1.writer import WriterV1
from dgrr.trace.v2.repair.forge import flip_bit, forge_gradient
from dgrr.trace.v2.repair.rollback import rollback_v2

PARAMS = {"w": np.ones(2)}
RUN = Run(PARAMS, {}, [RuleGroup("sgd@1", ("lr",))], numerics=NUMERICS)
NO_FILE = "it exists and is not a regular file"


@pytest.mark.parametrize("name", ["/dev/null", "/dev", "/dev/stdin"])
def test_what_is_no_file_cannot_be_replaced(name: str) -> None:
    if stat.S_ISREG(os.stat(name).st_mode):
        pytest.skip("standard input is a file")
    with pytest.raises(OSError, match=NO_FILE) as caught:
        require_replaceable(name)
    assert caught.value.filename == name


def test_what_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    for name in ("file", "link", "nowhere", "free"):
        require_replaceable(tmp_path / name)
        with replacing(tmp_path / name) as file:
            file.write(b"new")
        assert (tmp_path / name).read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link", "nowhere", "free"}


def record(path: Path, *, overwrite: bool = True) -> None:
    open_recorder(Keep(path, overwrite=overwrite), RUN).seal()


def resume(path: Path) -> None:
    resume_recorder(path, RUN, steps=0).seal()


def trained(trace: Path | None = None) -> Trainer:
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), PARAMS, SGD(0.1), trace=trace and Keep(trace, overwrite=True))
    trainer.fit([np.ones(2)], steps=1)
    return trainer


def a_trace(path: Path) -> Path:
    source = path.with_name("source.dgrr")
    if not source.exists():
        trained(source)
    return source


WRITERS: dict[str, Callable[[Path], object]] = {
    "open_recorder": record,
    "open_recorder, no overwriting": lambda path: record(path, overwrite=False),
    "resume_recorder": resume,
    "Trainer(trace=)": trained,
    "Trainer.save": lambda path: trained().save(path),
    "nn.save": lambda path: nn.save(path, PARAMS),
    "rollback": lambda path: rollback_v2(a_trace(path), 1, path),
    "flip_bit": lambda path: flip_bit(a_trace(path), path, 0, 0),
    "forge_gradient": lambda path: forge_gradient(a_trace(path), path, 0, "w"),
    "version 1": lambda path: WriterV1(str(path), 0, 0.1, 0),
}


@pytest.mark.parametrize("kind", ["a FIFO", "a folder"])
@pytest.mark.parametrize("writer", WRITERS)
def test_no_writer_replaces_what_is_no_file(tmp_path: Path, writer: str, kind: str) -> None:
    path = tmp_path / "out"
    make: Callable[[Path], object] = os.mkfifo if kind == "a FIFO" else Path.mkdir
    make(path)
    before = os.stat(path)
    expected = "writes only new files" if writer == "rollback" else NO_FILE
    with pytest.raises((OSError, TraceWriteError, TraceFileError, ValueError), match=expected):
        WRITERS[writer](path)
    assert os.path.samestat(os.stat(path), before)
    assert {entry.name for entry in tmp_path.iterdir()} <= {"out", "source.dgrr"}


@pytest.mark.parametrize("kind", ["a FIFO", "a folder"])
@pytest.mark.parametrize("writer", WRITERS)
def test_nor_under_the_name_of_the_unfinished_file(tmp_path: Path, writer: str, kind: str) -> None:
    """Opening a FIFO for writing would wait for a reader, for ever."""
    path = tmp_path / "out"
    make: Callable[[Path], object] = os.mkfifo if kind == "a FIFO" else Path.mkdir
    for name in ("out.tmp", "out.partial"):
        make(tmp_path / name)
    with pytest.raises((OSError, TraceWriteError, TraceFileError), match=NO_FILE):
        WRITERS[writer](path)
    assert {entry.name for entry in tmp_path.iterdir()} <= {"out.tmp", "out.partial", "source.dgrr"}


def test_a_name_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(TraceWriteError, match=r"trace: cannot write .*xxx: File name too long"):
        record(path)


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    """And not the one that becomes it, whose name nobody gave."""
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "no" / "out"):
        pass
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{tmp_path}/no/out'"
    (tmp_path / "out").mkdir()
    with pytest.raises(OSError, match=r"it exists and is not a regular file: '.*/out'$"), replacing(tmp_path / "out"):
        pass


def test_a_rename_that_fails_names_the_file_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(a: Path, b: Path) -> None:
        raise OSError(1, "Operation not permitted", str(a), None, str(b))

    monkeypatch.setattr(system, "replace", refuse)
    with pytest.raises(OSError, match=r"^\[Errno 1\] Operation not permitted: '.*/out'$"), replacing(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []
