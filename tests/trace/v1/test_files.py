"""Paths that are no traces, files that change, disks that fail."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace.file_version import TraceFileError, open_regular, version_of
from dgrr.trace.v1 import reader as reader_module
from dgrr.trace.v1.reader import TraceReaderV1
from dgrr.trace.v1.validation.validate import validate
from dgrr.trace.v1.writer import WriterV1

DGRR = Path(sys.executable).parent / "dgrr"


def commands_on(path):
    return [
        ["validate", path],
        ["replay", "--step", 0, "--trace", path],
        ["inspect", "--step", 0, "--trace", path],
        ["rollback", "--step", 0, "--trace", path],
        ["compare", "--a", path, "--b", path],
    ]


def test_paths_that_are_no_files_are_io_errors(dgrr, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    cases = [
        (tmp_path, "it is a folder"),
        (fifo, "it is not a regular file"),
        ("/dev/null", "it is not a regular file"),
        (tmp_path / "missing", "No such file or directory"),
        ("/proc/self/mem", "Input/output error"),
    ]
    for path, text in cases:
        for command in commands_on(path):
            answer = dgrr(*command)
            assert answer.code == 2, command
            assert text in answer.err
            assert str(path) in answer.err
            assert answer.out == ""


def test_a_fifo_that_takes_the_place_of_a_file_does_not_block(tmp_path, golden, monkeypatch):
    fifo, file = tmp_path / "fifo", tmp_path / "file"
    os.mkfifo(fifo)
    file.write_bytes(golden)
    looked_at = os.stat(file)
    monkeypatch.setattr(os, "stat", lambda path: looked_at)
    with pytest.raises(TraceFileError, match="it is not a regular file"):
        open_regular(str(fifo))


def test_a_file_without_permission_is_an_io_error(dgrr, tmp_path, golden):
    path = tmp_path / "t"
    path.write_bytes(golden)
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # the superuser may read everything
    try:
        answer = dgrr("validate", path)
    finally:
        os.seteuid(user)
    assert answer.code == 2
    assert f"cannot open {path}: Permission denied" in answer.err


def test_version_of(tmp_path, golden):
    path = tmp_path / "t"
    for version in (0, 1, 2, 65535):
        path.write_bytes(b"DGRR" + version.to_bytes(2, "little") + b"\xff\xff")
        assert version_of(str(path)) == version
    path.write_bytes(b"PK\x03\x04 not a trace")
    with pytest.raises(TraceFileError, match="is not a DGRR trace: it begins with b'PK") as caught:
        version_of(str(path))
    assert caught.value.exit == 3


def test_the_reader_judges_magic_and_version_itself(tmp_path, golden):
    path = tmp_path / "t"
    for start, text in ((b"DGRX\1", "not a DGRR trace"), (b"DGRR\2", "unsupported version 2, expected 1")):
        path.write_bytes(start + golden[len(start) :])
        with TraceReaderV1(str(path)) as trace, pytest.raises(TraceFileError, match=text):
            validate(trace)


@pytest.mark.parametrize(("size", "change"), [(1000, "grew from 424 to 1000"), (400, "shrank from 424 to 400")])
def test_a_file_that_changes_its_size_before_the_end(tmp_path, ref, size, change):
    path = tmp_path / "t"
    path.write_bytes(ref.trace_bytes(ref.train(5, 0.01, 42)))
    with TraceReaderV1(str(path)) as trace:
        assert validate(trace).exit == 0
        os.truncate(path, size)
        with pytest.raises(TraceFileError, match=f"{change} bytes while it was read: is it still being written") as e:
            validate(trace)
    assert e.value.exit == 2


def test_a_file_that_shrinks_between_two_blocks(tmp_path, ref, monkeypatch):
    monkeypatch.setattr(reader_module, "BLOCK_RECORDS", 2)
    path = tmp_path / "t"
    path.write_bytes(ref.trace_bytes(ref.train(5, 0.01, 42)))
    with TraceReaderV1(str(path)) as trace:
        blocks = trace.blocks(5)
        assert len(next(blocks)) == 2
        os.truncate(path, 64 + 3 * 72)
        with pytest.raises(TraceFileError, match=r"shrank from 424 to 280 bytes"):
            list(blocks)


CAPPED = """
import resource, sys
from dgrr.trace.cli import main
from dgrr.trace.cli import v1 as commands
main(["validate", sys.argv[1]])
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 16 * 2**20,) * 2)
sys.exit(max(main(["validate", path]) for path in sys.argv[2:]))
"""


def test_absurd_step_counts_need_no_memory(tmp_path, ref, golden):
    (tmp_path / "good").write_bytes(golden)
    bad = [tmp_path / str(count) for count in (2, 10**6, 10**12, 2**63, 2**64 - 1)]
    for path in bad:
        path.write_bytes(ref.pack_file(golden[64:], seed=42, lr=0.01, count=int(path.name)))
    ended = subprocess.run([sys.executable, "-c", CAPPED, tmp_path / "good", *bad], capture_output=True, text=True)
    assert ended.returncode == 3, ended.stderr
    said = re.findall("step_count is|truncated: the records of steps 1 and up are missing", ended.stderr)
    assert len(said) == len(bad), ended.stderr


@pytest.mark.long
def test_a_long_trace_is_read_in_little_memory(tmp_path):
    path = tmp_path / "long"
    assert (
        subprocess.run([DGRR, "train", "--steps", "600000", "--out", path], stdout=subprocess.DEVNULL).returncode == 0
    )
    (tmp_path / "good").symlink_to(path)
    ended = subprocess.run([sys.executable, "-c", CAPPED, path, path], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_writing_onto_what_is_no_file(dgrr, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "t.partial").mkdir()
    for out in (fifo, folder, tmp_path / "t", "/dev/null"):
        answer = dgrr("train", "--out", out)
        assert answer.code == 2
        assert "it exists and is not a regular file" in answer.err
    answer = dgrr("train", "--out", tmp_path / "missing" / "t")
    assert answer.code == 2
    assert "cannot create" in answer.err
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder", "t.partial"]


def test_a_full_disk_leaves_nothing_and_the_old_trace(tmp_path, golden):
    out = tmp_path / "t"
    out.write_bytes(golden)
    ended = subprocess.run(
        ["sh", "-c", 'ulimit -f 2048 && exec "$@"', "sh", DGRR, "train", "--steps", "100000", "--out", out],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert ended.stderr == f"dgrr: cannot write {out}.partial: File too large\n"
    assert os.listdir(tmp_path) == ["t"]
    assert out.read_bytes() == golden


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_failing_fsync_or_rename_is_an_io_error(dgrr, tmp_path, monkeypatch, name):
    def fail(*arguments):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, name, fail)
    answer = dgrr("train", "--out", tmp_path / "t")
    assert answer.code == 2
    assert "Input/output error" in answer.err
    assert os.listdir(tmp_path) == []


def test_short_writes_are_continued(tmp_path, monkeypatch, golden):
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, buffers: writev(fd, [buffers[0][:5]]))
    with WriterV1(str(tmp_path / "t"), 42, 0.01, 0) as writer:
        writer.append(np.frombuffer(golden[64:], np.uint64).reshape(1, 9))
        writer.seal()
    assert (tmp_path / "t").read_bytes() == golden


def test_short_reads_are_continued(dgrr, tmp_path, monkeypatch, golden):
    (tmp_path / "t").write_bytes(golden)
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:5]], offset))
    assert dgrr("validate", tmp_path / "t").code == 0


def test_until_it_is_sealed_a_trace_has_another_name_and_is_invalid(dgrr, tmp_path, golden):
    out = tmp_path / "t"
    with WriterV1(str(out), 42, 0.01, 0) as writer:
        partial = tmp_path / "t.partial"
        assert dgrr("validate", partial).code == 0  # no steps yet
        writer.append(np.frombuffer(golden[64:], np.uint64).reshape(1, 9))
        answer = dgrr("validate", partial)
        assert answer.code == 3
        assert "trailing bytes: 72" in answer.err
        assert not out.exists()
    assert os.listdir(tmp_path) == []


def test_ctrl_c_while_training_leaves_no_trace(tmp_path):
    process = subprocess.Popen(
        [DGRR, "train", "--steps", "1000000000", "--out", tmp_path / "t"], stderr=subprocess.PIPE, text=True
    )
    partial = tmp_path / "t.partial"
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size > 10**6):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "dgrr: interrupted\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.long
def test_a_million_records_are_validated_in_little_time(tmp_path):
    """A tenth of a second and a half is the promise; here only a factor of ten is held, for busy machines."""
    path = tmp_path / "t"
    assert (
        subprocess.run([DGRR, "train", "--steps", "1000000", "--out", path], stdout=subprocess.DEVNULL).returncode == 0
    )
    start = time.perf_counter()
    with TraceReaderV1(str(path)) as trace:
        assert validate(trace).exit == 0
    assert time.perf_counter() - start < 1.5
